import AppContainer
import ArchiveFile
import BackupRepository
import DrydockErrors
import FileSystem

extension Container {
  /// Opens a container for reading: a directory, an `.xcappdata` bundle, or a foreign archive of either (zip, tar, tar.gz,
  /// tar.zst), which is unpacked into a private directory while the body runs.
  ///
  /// The limit is how large a foreign archive may become when it is unpacked. Errors about what was unpacked name the file.
  public static func reading<T>(
    at path: String, configuration: ContainerConfiguration = ContainerConfiguration(),
    instance: String? = nil,
    limit: ExpansionLimit = .standard, _ body: (Container) throws -> T
  ) throws -> T {
    guard ForeignContainer.isForeignArchive(path) else {
      return try body(Container(at: path, configuration: configuration, instance: instance))
    }
    // A foreign archive does not contain the groups of this machine.
    var configuration = configuration
    configuration.groups = [:]
    return try ForeignContainer.with(path, limit: limit) { [configuration] place, lost in
      do {
        var container = try Container(at: place, configuration: configuration, instance: instance)
        let data: ContainerPath = container.root == container.anchor ? .root : "AppData"
        container.lost = lost.filter { $0.isInside(data) }.map { $0.rebased(from: data, to: .root) }
        return try body(container)
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
