import SystemPackage

/// The header fields that say how a database is written: bytes 18 and 19 are 2 when it has a write-ahead log.
extension Directory {
  /// Whether a closed database file says that it is written through a log.
  public func hasWriteAheadLog(_ path: ContainerPath) throws -> Bool {
    let file = try open(path, .readOnly)
    defer { try? file.close() }
    var versions: [UInt8] = [0, 0]
    do {
      _ = try versions.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 18, into: $0) }
    } catch let error as Errno {
      throw ContainerError.system("cannot read", full(path), error)
    }
    return versions == [2, 2]
  }

  /// Makes a closed database file, without sidecars, say that it is written through a log, as it said before.
  public func setWriteAheadLog(_ path: ContainerPath) throws {
    let file = try open(path, .readWrite)
    defer { try? file.close() }
    do {
      _ = try file.writeAll(toAbsoluteOffset: 18, [2, 2] as [UInt8])
    } catch let error as Errno {
      throw ContainerError.system("cannot write", full(path), error)
    }
  }
}
