import AgeEncryption
import CPlatform
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Reads what is secret into memory that is wiped.
package enum SecretFile {
  /// The whole of a file, or of a pipe that is named like one.
  ///
  /// - Parameter limit: the most bytes that are read.
  /// - Throws: ``DrydockError``: `unsupported` when there is more, and what reading it throws.
  package static func read(_ path: String, limit: Int) throws -> SecretBytes {
    let file: FileDescriptor
    do {
      file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
    } catch let error as Errno {
      throw DrydockError.system("cannot read", path, error)
    }
    defer { try? file.close() }
    return try read(file, limit: limit, path: path)
  }

  /// All that comes from standard input until its end.
  package static func readStandardInput(limit: Int) throws -> SecretBytes {
    try read(.standardInput, limit: limit, path: "standard input")
  }

  /// Writes a new file that only its owner can read, and waits until it is on disk: it may hold the only copy of a
  /// key. What could not be written whole is removed again.
  ///
  /// - Throws: ``DrydockError``; a file that is there already is never replaced.
  package static func create(_ path: String, _ secret: SecretBytes) throws {
    do {
      let file = try FileDescriptor.open(
        FilePath(path), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: [.ownerReadWrite])
      do {
        try file.closeAfter {
          _ = try secret.withBytes { try file.writeAll($0) }
          try sync(file)
        }
      } catch {
        _ = FilePath(path).withPlatformString { unlink($0) }
        throw error
      }
      let parent = FilePath(path).removingLastComponent()
      let directory = try FileDescriptor.open(
        parent.isEmpty ? "." : parent, .readOnly, options: [.directory, .closeOnExec])
      try directory.closeAfter { try sync(directory) }
    } catch Errno.fileExists {
      throw DrydockError(
        .io, "already exists, and is not replaced; give another name, or move it away", path: path)
    } catch let error as Errno {
      throw DrydockError.system("cannot write", path, error)
    }
  }

  private static func sync(_ file: FileDescriptor) throws(Errno) {
    guard platform_sync(file.rawValue) == 0 else { throw currentErrno() }
  }

  /// All that comes from a descriptor until its end.
  private static func read(_ file: FileDescriptor, limit: Int, path: String) throws -> SecretBytes {
    var count = 0
    // One byte more than may come tells that there is more.
    let room = try SecretBytes(count: limit + 1) { room in
      do {
        while count < room.count {
          let read = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: room[count...]))
          if read == 0 { break }
          count += read
        }
      } catch let error as Errno {
        throw DrydockError.system("cannot read", path, error)
      }
    }
    guard count <= limit else {
      throw DrydockError(.unsupported, "more than the \(limit) bytes that are read here", path: path)
    }
    return room.withBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }
}
