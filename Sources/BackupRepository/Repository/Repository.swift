import AppContainer
import ArchiveFile

/// A directory of archives.
public struct Repository: Sendable {
  /// Its path.
  public let path: String

  /// A repository at a path.
  public init(_ path: String) {
    let trimmed = path.prefix(path.count - path.reversed().prefix { $0 == "/" }.count)
    self.path = trimmed.isEmpty ? path : String(trimmed)
  }

  /// Reads the headers of all archives, and nothing else of them. Whatever is not named like an archive is left
  /// alone.
  ///
  /// - Throws: ``RepositoryError``: `notFound`, `permission`, `io`.
  public func list() throws -> Listing {
    let directory: Directory
    let names: [[UInt8]]
    do {
      directory = try Directory(path)
      names = try directory.names()
    } catch let error as ContainerError where error.code == .notFound {
      throw RepositoryError(.notFound, "no such repository; check the path", path: path, cause: error)
    } catch let error as ContainerError {
      throw RepositoryError.place(error, path: path)
    }
    var listing = Listing(repository: path)
    for bytes in names where ArchiveName.isArchive(bytes) {
      let name = ContainerPath(name: bytes)
      do {
        if let item = try item(name, in: directory) { listing.items.append(item) }
      } catch let error as ArchiveError {
        listing.unreadable.append(.init(path: directory.full(name), reason: error.message, error: error))
      } catch let error as RepositoryError {
        listing.unreadable.append(.init(path: directory.full(name), reason: error.message, error: error))
      } catch let error as ContainerError {
        listing.unreadable.append(.init(path: directory.full(name), reason: error.message, error: error))
      }
    }
    listing.items.sort { ($0.header.time, $0.modified, $0.path) < ($1.header.time, $1.modified, $1.path) }
    return listing
  }

  /// An archive by its file; nil when it is gone.
  private func item(_ name: ContainerPath, in directory: Directory) throws -> Item? {
    guard let status = try directory.status(name) else { return nil }
    let path = directory.full(name)
    guard status.type == .file else {
      throw RepositoryError(
        .damaged, "it is no file; links are not followed, put the archive itself here", path: path)
    }
    guard String(decoding: name.bytes, as: UTF8.self).utf8.elementsEqual(name.bytes) else {
      throw RepositoryError(.damaged, "its name is not UTF-8; rename it", path: path)
    }
    do {
      // Without waiting, should it be replaced by a FIFO.
      let file = try directory.open(name, .readOnly, options: .nonBlocking)
      defer { try? file.close() }
      return Item(
        path: path, size: status.size, modified: status.modified, header: try Archive.header(file, path: path)
      )
    } catch let error as ContainerError where error.code == .notFound {
      return nil
    } catch let error as ContainerError where error.code == .permission {
      throw RepositoryError(.permission, "it may not be read; run it as its owner", path: path, cause: error)
    }
  }

  /// The archive that a person means; see ``Listing/find(_:)``.
  ///
  /// - Throws: ``RepositoryError``.
  public func find(_ name: String) throws -> String { try list().find(name) }

  /// Removes an archive, on disk when this returns. Nobody writes into the repository meanwhile; who is reading the
  /// archive can read it to its end.
  ///
  /// - Parameter lockTimeout: seconds to wait for those who write.
  /// - Throws: ``RepositoryError``: `locked`, `notFound` when that archive is not behind its path any more,
  ///   `permission`.
  public func remove(_ item: Item, lockTimeout: Double = 0) throws {
    let directory = try RepositoryLock(path, exclusive: true, timeout: lockTimeout).directory
    do {
      let name = try ContainerPath(item.fileName)
      guard directory.full(name) == item.path, let present = try self.item(name, in: directory),
        present.header == item.header
      else {
        throw RepositoryError(
          .notFound, "the archive is not there any more; `drydock list -r` shows what there is",
          path: item.path)
      }
      try directory.removeFile(name)
      try directory.sync()
    } catch let error as ContainerError {
      throw RepositoryError.place(error, path: path)
    }
  }
}
