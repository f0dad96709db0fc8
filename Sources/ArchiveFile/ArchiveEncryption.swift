import AgeEncryption
import DrydockErrors

/// How an archive is encrypted, as its first bytes show without a key.
package struct ArchiveEncryption: Sendable, Hashable, CustomStringConvertible {
  /// For messages, such as `encrypted to 2 recipients (X25519)`.
  package let description: String
  /// Whether a passphrase opens it, and not an identity.
  package let needsPassphrase: Bool

  init(_ header: AgeHeader) {
    (description, needsPassphrase) = (header.summary, header.needsPassphrase)
  }

  /// How a file is encrypted; nil when it is not.
  ///
  /// - Throws: `DrydockError`: `encrypted` when it is armored, `damaged` when its header is, `io`.
  package static func of(_ source: ArchiveSource) throws -> ArchiveEncryption? {
    guard try isAge(source) else { return nil }
    return try DrydockError.translating {
      ArchiveEncryption(try AgeHeader.read(size: source.size) { try source.readExactly($0, at: $1) })
    }
  }

  /// Whether a file is a binary age file. Throws `DrydockError` `.encrypted` for an armored one, `.io`.
  static func isAge(_ source: ArchiveSource) throws -> Bool {
    let head = try source.beginning(AgeHeader.probeLength)
    guard AgeHeader.isPresent(in: head) else { return false }
    guard head.first == UInt8(ascii: "a") else { throw DrydockError.armored }
    return true
  }
}

extension AgeReader {
  /// Opens the age file that an encrypted archive is; nil for an archive that is not encrypted. The end of the file is
  /// authenticated, so that a cut is found here.
  ///
  /// - Throws: `DrydockError`: `noIdentity` when no key opens it, `encrypted` when it is armored, `damaged`, `io`.
  static func opening(_ source: ArchiveSource, keys: AgeKeys) throws -> AgeReader? {
    guard try ArchiveEncryption.isAge(source) else { return nil }
    // One request for a whole run of frames.
    let batch = source.isRemote ? UInt64(FetchedRuns.longest(in: FetchedRuns.allRoom) >> 16) + 2 : 1
    return try DrydockError.translating {
      try AgeReader(size: source.size, keys: keys, batch: batch) { try source.readExactly($0, at: $1) }
    }
  }

  /// What an age file holds, of which only the chunks that are asked for are decrypted.
  ///
  /// - Parameter requests: how many the file's source sends to a server at a time.
  func content(requests: Int) -> ArchiveSource {
    ArchiveSource(size: plainSize, requests: requests) { target, offset in
      try DrydockError.translating { try self.read(into: target, at: offset) }
    }
  }
}

extension DrydockError {
  /// Runs a step of encryption or decryption; its errors become errors about an archive.
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
    // The key is known to fit: the message must not ask for another one.
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

  /// An age file as text allows no random access.
  static let armored = DrydockError(
    .encrypted,
    "the archive is encrypted as armored text, and only binary age files are supported; convert it: "
      + "`age -d -i KEY.txt ARCHIVE | age -r age1… > ARCHIVE.tar.zst.age`")
}
