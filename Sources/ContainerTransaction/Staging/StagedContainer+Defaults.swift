import AppContainer
import DrydockErrors
import FileSystem
import Formats

extension StagedContainer {
  /// A settings file as it will be; nil when there is none.
  ///
  /// - Throws: `DrydockError` with code `malformed` when it is no property list with a dictionary on top.
  package func defaults(_ path: ContainerPath) throws -> PropertyListFile? {
    guard try status(of: path) != nil else { return nil }
    do {
      return try settings(in: read(path))
    } catch var error as DrydockError where error.code == .malformed {
      error.path = path.description
      throw error
    }
  }

  /// The settings in a file's bytes. The last ones are kept: a migration asks for them again and again, and large ones
  /// take a second to read.
  func settings(in bytes: [UInt8]) throws -> PropertyListFile {
    if let known = parsedSettings.first(where: { $0.bytes == bytes }) { return known.file }
    let file = try PropertyListFile(bytes: bytes)
    parsedSettings = parsedSettings.suffix(1) + [(bytes, file)]
    return file
  }

  /// The settings in a file's bytes; nil when they are none.
  func settingsIfAny(in bytes: [UInt8]) throws -> PropertyListDictionary? {
    do {
      return try settings(in: bytes).root
    } catch let error as DrydockError where error.code == .malformed {
      return nil
    }
  }

  /// Writes a settings file, in its own format.
  package func setDefaults(_ file: PropertyListFile, at path: ContainerPath) throws {
    let bytes = try file.encoded()
    try write(bytes, to: path)
    // XML rounds dates, so that what is read is not always what was written.
    if file.format == .binary { parsedSettings = parsedSettings.suffix(1) + [(bytes, file)] }
  }
}
