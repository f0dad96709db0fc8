import AppContainer

extension StagedContainer {
  /// A settings file as it will be; nil when there is none.
  ///
  /// - Throws: `ContainerError` with code `malformed` when it is no property list with a dictionary on top.
  public func defaults(_ path: ContainerPath) throws -> PropertyListFile? {
    guard try status(of: path) != nil else { return nil }
    do {
      return try PropertyListFile(bytes: read(path))
    } catch var error as ContainerError where error.code == .malformed {
      error.path = path.description
      throw error
    }
  }

  /// Writes a settings file, in its own format.
  public func setDefaults(_ file: PropertyListFile, at path: ContainerPath) throws {
    try write(file.encoded(), to: path)
  }
}
