import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// The lock of a repository: `flock` on its directory. Those who write hold it shared, who removes holds it alone.
///
/// The kernel gives it back when a process dies, so that none is ever stale, and there is no file of it. Who reads
/// takes none: an archive that is open stays readable to its end when its name is removed, and a repository on a
/// medium that cannot be written, or of another user, can be read. On a network file system it holds among the
/// processes of one machine.
struct RepositoryLock {
  /// The open, locked repository.
  let directory: Directory

  /// - Parameter timeout: seconds to wait; 0 waits for a tenth of a second.
  /// - Throws: ``DrydockError`` with code `locked`, naming who holds it, or as ``Repository/open(_:)``.
  init(_ path: String, exclusive: Bool, timeout: Double) throws {
    do {
      guard let directory = try Directory.locked(path, exclusive: exclusive, timeout: timeout) else {
        throw DrydockError(
          .locked,
          "the repository is locked by \(try LockHolders.names(path)); wait for it, or give --lock-timeout SECONDS",
          path: path)
      }
      self.directory = directory
    } catch let error as DrydockError {
      throw DrydockError.place(error, path: path)
    }
  }
}

extension DrydockError {
  /// What the file system says of a place for archives.
  static func place(_ error: DrydockError, _ what: String = "the repository", path: String)
    -> DrydockError
  {
    switch error.code {
    case .notFound:
      DrydockError(
        .notFound, "\(what) does not exist; check the path, or make it with mkdir", path: path, cause: error)
    case .notAContainer:
      DrydockError(.notFound, "\(what) is not a directory; check the path", path: path, cause: error)
    case .permission:
      DrydockError(
        .permission,
        "\(what) cannot be used: \(error.cause.map { "\($0)" } ?? error.message); run it as its owner, or choose another "
          + "place", path: path, cause: error)
    default: error.at(path)
    }
  }
}
