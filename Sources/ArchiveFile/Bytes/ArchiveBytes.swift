import AgeEncryption
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#endif

/// The bytes of an archive, at any place and from any thread: those of a file, or what is sealed in an age file.
enum ArchiveBytes: Sendable {
  /// A file that is not encrypted, and its size.
  case plain(FileDescriptor, size: UInt64)
  /// What an age file holds, of which only the chunks that are asked for are decrypted.
  case sealed(AgeReader)

  /// The bytes of an open file. Of an age file the end is authenticated, so that a cut is noticed here.
  ///
  /// - Throws: `DrydockError`: `noIdentity` when no key opens it, `encrypted` when it is armored, `damaged`, `io`.
  init(_ file: FileDescriptor, size: UInt64, keys: AgeKeys) throws {
    guard try ArchiveEncryption.isAge(file, size: size) else {
      self = .plain(file, size: size)
      return
    }
    let source: AgeReader.Source = { try file.readExactly($0, at: $1) }
    do {
      self = .sealed(try DrydockError.translating { try AgeReader(size: size, keys: keys, source: source) })
    } catch let error as DrydockError where error.code == .noIdentity {
      let header = try DrydockError.translating { try AgeHeader.read(size: size, source) }
      throw error.advising(
        header.needsPassphrase ? "--identity-passphrase-file FILE" : "--identity FILE, or DRYDOCK_IDENTITY")
    }
  }

  /// How many there are.
  var size: UInt64 {
    switch self {
    case .plain(_, let size): size
    case .sealed(let reader): reader.plainSize
    }
  }

  /// How they are encrypted; nil when they are not.
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

  /// As above, into an array.
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

  /// Lets the system forget what it holds of a file in memory, where it can be asked to: what is read next comes from
  /// the disk.
  func forgetCached() {
    #if canImport(Glibc)
      posix_fadvise(rawValue, 0, 0, POSIX_FADV_DONTNEED)
    #endif
  }
}
