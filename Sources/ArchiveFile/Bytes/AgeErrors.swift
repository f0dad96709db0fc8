import AgeEncryption

/// The one place that turns errors of encryption into this module's.
extension ArchiveError {
  /// Runs a step of encryption or decryption.
  static func translating<T>(_ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as AgeError {
      throw ArchiveError(error)
    }
  }

  private init(_ error: AgeError) {
    let (code, message): (Code, String) =
      switch error.code {
      case .noIdentity: (.noIdentity, "the archive is \(error.message)")
      case .header, .mac: (.damaged, error.message)
      // That the key fits was found before: who reads this need not look for another.
      case .payload: (.damaged, "the key fits, but \(error.message)")
      case .armor: (.encrypted, error.message)
      case .malformed: (.invalidUse, error.message)
      case .cryptography: (.io, error.message)
      }
    self.init(code, message, cause: error)
  }

  /// The same error, with the option that helps.
  func advising(_ option: String) -> ArchiveError {
    ArchiveError(code, "\(message) (\(option))", path: path, cause: cause)
  }

  /// An age file as text, in which no place can be found without reading all before it.
  static let armored = ArchiveError(
    .encrypted,
    "the archive is encrypted and armored (as text), and only binary age files are read; turn it into one first: "
      + "`age -d -i KEY.txt ARCHIVE | age -r age1… > ARCHIVE.tar.zst.age`")
}
