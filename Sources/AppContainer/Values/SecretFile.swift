import AgeEncryption
import SystemPackage

/// Reads what is secret into memory that is wiped.
public enum SecretFile {
  /// The whole of a file, or of a pipe that is named like one.
  ///
  /// - Parameter limit: the most bytes that are read.
  /// - Throws: ``ContainerError``: `unsupported` when there is more, and what reading it throws.
  public static func read(_ path: String, limit: Int) throws -> SecretBytes {
    let file: FileDescriptor
    do {
      file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
    } catch let error as Errno {
      throw ContainerError.system("cannot read", path, error)
    }
    defer { try? file.close() }
    return try read(file, limit: limit, path: path)
  }

  /// All that comes from a descriptor until its end.
  public static func read(_ file: FileDescriptor, limit: Int, path: String) throws -> SecretBytes {
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
        throw ContainerError.system("cannot read", path, error)
      }
    }
    guard count <= limit else {
      throw ContainerError(.unsupported, "more than the \(limit) bytes that are read here", path: path)
    }
    return room.withBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }
}
