import AgeEncryption
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#endif

/// How an archive is encrypted, as its first bytes show without a key.
package struct ArchiveEncryption: Sendable, Hashable, CustomStringConvertible {
  /// For messages, such as `encrypted to 2 recipients (X25519)`.
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
      // Without waiting: a FIFO must be refused instead of hanging.
      return try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
    } catch {
      throw DrydockError.io("opening the archive", error)
    }
  }
}

/// The bytes of an archive, at any place and from any thread: those of a file, or what is sealed in an age file.
enum ArchiveBytes: Sendable {
  /// A file that is not encrypted, and its size.
  case plain(FileDescriptor, size: UInt64)
  /// What an age file holds, of which only the chunks that are asked for are decrypted.
  case sealed(AgeReader)

  /// The bytes of an open file. The end of an age file is authenticated, so that a cut is found here.
  ///
  /// - Throws: `DrydockError`: `noIdentity` when no key opens it, `encrypted` when it is armored, `damaged`, `io`.
  init(_ file: FileDescriptor, size: UInt64, keys: AgeKeys) throws {
    guard try ArchiveEncryption.isAge(file, size: size) else {
      self = .plain(file, size: size)
      return
    }
    let source: AgeReader.Source = { try file.readExactly($0, at: $1) }
    self = .sealed(try DrydockError.translating { try AgeReader(size: size, keys: keys, source: source) })
  }

  var size: UInt64 {
    switch self {
    case .plain(_, let size): size
    case .sealed(let reader): reader.plainSize
    }
  }

  var encryption: ArchiveEncryption? {
    switch self {
    case .plain: nil
    case .sealed(let reader): ArchiveEncryption(reader.header)
    }
  }

  /// Reads that many bytes at a place.
  ///
  /// - Throws: `DrydockError`: `truncated` when they end before, `damaged` when they were changed, `io`.
  func readExactly(_ target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    switch self {
    case .plain(let file, _): try file.readExactly(target, at: offset)
    case .sealed(let reader): try DrydockError.translating { try reader.read(into: target, at: offset) }
    }
  }

  func readExactly(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withUnsafeMutableBytes { try readExactly($0, at: offset) }
    return bytes
  }
}

extension FileDescriptor {
  /// The file's size in bytes. Throws `DrydockError` `.io`, as for a pipe.
  func size() throws -> UInt64 {
    do {
      return UInt64(clamping: try seek(offset: 0, from: .end))
    } catch {
      throw DrydockError.io("finding the archive's size", error)
    }
  }

  /// Reads that many bytes at a place. Throws `DrydockError` `.truncated` when the file ends before.
  func readExactly(_ target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    var done = 0
    while done < target.count {
      let count: Int
      do {
        count = try read(
          fromAbsoluteOffset: Int64(clamping: offset) + Int64(done),
          into: UnsafeMutableRawBufferPointer(rebasing: target[done...]))
      } catch {
        throw DrydockError.io("reading the archive", error)
      }
      guard count > 0 else { throw DrydockError.truncated("the archive shrank while it was read") }
      done += count
    }
  }

  /// Drops the file from the page cache where the system allows it, so that the next read comes from the disk.
  func forgetCached() {
    #if canImport(Glibc)
      posix_fadvise(rawValue, 0, 0, POSIX_FADV_DONTNEED)
    #endif
  }
}

/// Where the bytes of an archive go, in their order: into a file as they are, or sealed on their way.
///
/// Sealing takes less time than any other step (3 GB/s on one core, ten times what compressing gives), so that the one
/// worker whose frame is next in line does it while others compress.
///
/// Unchecked because the compiler cannot see that one thread at a time uses it: that worker, then the caller who ends
/// the archive.
final class ArchiveSink: @unchecked Sendable {
  private let output: FileOutput
  private let seal: AgeWriter?

  /// - Parameter encryption: to whom it is encrypted; nil for one that everybody can read.
  init(_ file: FileDescriptor, encryption: AgeTarget? = nil) throws {
    let output = FileOutput(file)
    self.output = output
    seal = try DrydockError.translating { try encryption.map { try AgeWriter(to: $0, sink: output.append) } }
  }

  var fileSize: UInt64 { output.size }

  /// Adds bytes. Throws `DrydockError` `.io`.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    if let seal { return try DrydockError.translating { try seal.write(bytes) } }
    try output.append(bytes)
  }

  /// What was written, once it is finished, read back with the key that it was written with. Throws `DrydockError`.
  func written(to file: FileDescriptor) throws -> ArchiveBytes {
    let size = try file.size()
    guard let seal else { return .plain(file, size: size) }
    return .sealed(
      try DrydockError.translating {
        try AgeReader(size: size, writtenWith: seal.start) { try file.readExactly($0, at: $1) }
      })
  }

  /// Ends the archive. Throws `DrydockError` `.io`.
  func finish() throws {
    try DrydockError.translating { try seal?.finish() }
    try output.flush()
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
