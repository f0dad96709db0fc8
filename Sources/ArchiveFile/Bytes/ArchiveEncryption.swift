import AgeEncryption
import DrydockErrors
import SystemPackage

/// How an archive is encrypted, as its first bytes tell everybody.
package struct ArchiveEncryption: Sendable, Hashable, CustomStringConvertible {
  /// In words, such as `encrypted to 2 recipients (X25519)`.
  package let description: String
  /// Whether a passphrase opens it, and not an identity.
  package let needsPassphrase: Bool

  init(_ header: AgeHeader) {
    (description, needsPassphrase) = (header.summary, header.needsPassphrase)
  }

  /// How an open file is encrypted; nil when it is not. Its position is moved.
  ///
  /// - Throws: `DrydockError`: `encrypted` when it is armored, `damaged` when its header is, `io`.
  package static func of(_ file: FileDescriptor) throws -> ArchiveEncryption? {
    let size = try file.size()
    guard try isAge(file, size: size) else { return nil }
    return try DrydockError.translating {
      ArchiveEncryption(try AgeHeader.read(size: size) { try file.readExactly($0, at: $1) })
    }
  }

  /// As above, by path.
  package static func of(path: String) throws -> ArchiveEncryption? {
    do {
      let file = try FileDescriptor.openArchive(path)
      return try file.closeAfter { try of(file) }
    } catch let error as DrydockError {
      throw error.at(path)
    }
  }

  /// Whether a file is a binary age file. Throws `DrydockError` `.encrypted` for an armored one, `.io`.
  static func isAge(_ file: FileDescriptor, size: UInt64) throws -> Bool {
    var head = [UInt8](repeating: 0, count: Int(min(size, UInt64(AgeHeader.probeLength))))
    try head.withUnsafeMutableBytes { try file.readExactly($0, at: 0) }
    guard AgeHeader.isPresent(in: head) else { return false }
    guard head.first == UInt8(ascii: "a") else { throw DrydockError.armored }
    return true
  }
}

extension FileDescriptor {
  /// Opens an archive for reading. Throws `DrydockError` `.io`.
  static func openArchive(_ path: String) throws -> FileDescriptor {
    do {
      // Without waiting, so that a FIFO is refused instead of hanging; nothing else minds.
      return try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
    } catch {
      throw DrydockError.io("opening the archive", error)
    }
  }
}
