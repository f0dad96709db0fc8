import AppContainer
import ArchiveFile
import BackupRepository
import DrydockErrors

extension Container {
  /// Runs a body with a container that is only read: a directory, an `.xcappdata` bundle, or either of them packed into
  /// one file (zip, tar, tar.gz, tar.zst), which is unpacked into a private directory for as long as the body runs.
  ///
  /// - Parameters:
  ///   - path: the directory, bundle or file.
  ///   - instance: overrides the instance's name.
  ///   - limit: how large a packed one may be when it is unpacked.
  /// - Throws: as ``Container/init(at:configuration:instance:)`` and ``PackedContainer/with(_:limit:_:)``, and what the
  ///   body throws; errors about what was unpacked name the file.
  package static func reading<T>(
    at path: String, configuration: Configuration = Configuration(), instance: String? = nil,
    limit: ExpansionLimit = .standard, _ body: (Container) throws -> T
  ) throws -> T {
    guard PackedContainer.isOne(path) else {
      return try body(Container(at: path, configuration: configuration, instance: instance))
    }
    // The groups of this machine are none of what is packed.
    var configuration = configuration
    configuration.groups = [:]
    return try PackedContainer.with(path, limit: limit) { [configuration] place in
      do {
        return try body(Container(at: place, configuration: configuration, instance: instance))
      } catch var error as DrydockError {
        error.path = error.path.map { packedPath($0, place, path) }
        throw error
      }
    }
  }

  /// A path below where a file was unpacked, as one below the file.
  private static func packedPath(_ path: String, _ place: String, _ file: String) -> String {
    path == place || path.hasPrefix(place + "/") ? file + path.dropFirst(place.count) : path
  }
}
