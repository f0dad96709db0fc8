import CPlatform
import DrydockErrors

extension Directory {
  /// The names in this directory, in no order, directories apart from everything else. Most file systems tell that with
  /// the names, so that nothing has to be looked at.
  package func namesByKind() throws -> (directories: [ContainerPath], others: [ContainerPath]) {
    guard let stream = platform_directory_open(descriptor.rawValue) else {
      throw DrydockError.lastCall("cannot list", path)
    }
    defer { platform_directory_close(stream) }
    var (directories, others): ([ContainerPath], [ContainerPath]) = ([], [])
    var kind: Int32 = 0
    while let bytes = platform_directory_next_kind(stream, &kind) {
      let name = ContainerPath(cString: bytes)
      // Two calls on two streams: looking at a path does not move this one.
      let isDirectory = try kind == 0 ? status(name)?.type == .directory : kind == 1
      if isDirectory { directories.append(name) } else { others.append(name) }
    }
    guard currentErrno().rawValue == 0 else { throw DrydockError.lastCall("cannot list", path) }
    return (directories, others)
  }
}

extension ContainerPath {
  fileprivate init(cString: UnsafePointer<CChar>) {
    var bytes: [UInt8] = []
    var next = cString
    while next.pointee != 0 {
      bytes.append(UInt8(bitPattern: next.pointee))
      next += 1
    }
    self.init(unchecked: bytes)
  }
}
