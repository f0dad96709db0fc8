import AgeEncryption
import DrydockErrors

/// What an error of encryption means for an archive.
extension DrydockError {
  /// Runs a step of encryption or decryption.
  static func translating<T>(_ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DrydockError {
      throw error.aboutArchive
    }
  }

  private var aboutArchive: DrydockError {
    switch code {
    case .noIdentity: about(.noIdentity, "the archive is \(message)")
    case .header, .mac: about(.damaged, message)
    // The key was found to fit before: nobody needs to look for another.
    case .payload: about(.damaged, "the key fits, but \(message)")
    case .armor: about(.encrypted, message)
    case .badKey: about(.invalidUse, message)
    case .cryptography: about(.io, message)
    default: self
    }
  }

  private func about(_ code: Code, _ message: String) -> DrydockError {
    DrydockError(code, message, path: path, cause: self)
  }

  /// The same error, with the option that helps.
  func advising(_ option: String) -> DrydockError {
    DrydockError(code, "\(message) (\(option))", path: path, cause: cause)
  }

  /// An age file as text, in which no place can be found without reading all before it.
  static let armored = DrydockError(
    .encrypted,
    "the archive is encrypted and armored (as text), and only binary age files are read; turn it into one first: "
      + "`age -d -i KEY.txt ARCHIVE | age -r age1… > ARCHIVE.tar.zst.age`")
}
