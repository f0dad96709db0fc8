import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem

/// A directory of archives.
package struct Repository: Sendable {
  /// Its path.
  package let path: String

  /// A repository at a path.
  package init(_ path: String) {
    let trimmed = path.prefix(path.count - path.reversed().prefix { $0 == "/" }.count)
    self.path = trimmed.isEmpty ? path : String(trimmed)
  }

  /// Reads the headers of all archives, and nothing else of them. Whatever is not named like an archive is left
  /// alone. Of encrypted ones that no key opens, the name is all that is told.
  ///
  /// - Parameter keys: what opens encrypted ones.
  /// - Throws: ``DrydockError``: `notFound`, `permission`, `io`.
  package func list(keys: AgeKeys = AgeKeys()) throws -> Listing {
    let directory: Directory
    let names: [[UInt8]]
    do {
      directory = try Directory(path)
      names = try directory.names()
    } catch let error as DrydockError where error.code == .notFound {
      throw DrydockError(.notFound, "no such repository; check the path", path: path, cause: error)
    } catch let error as DrydockError {
      throw DrydockError.place(error, path: path)
    }
    var listing = Listing(repository: path)
    for bytes in names where ArchiveName.isArchive(bytes) {
      let name = ContainerPath(name: bytes)
      do {
        switch try found(name, in: directory, keys) {
        case .item(let item): listing.items.append(item)
        case .sealed(let sealed): listing.sealed.append(sealed)
        case nil: break
        }
      } catch let error as DrydockError {
        listing.unreadable.append(.init(path: directory.full(name), reason: error.message, error: error))
      }
    }
    listing.sort()
    return listing
  }

  private enum Found { case item(Item), sealed(Sealed) }

  /// An archive by its file; nil when it is gone.
  private func found(_ name: ContainerPath, in directory: Directory, _ keys: AgeKeys) throws -> Found? {
    guard let status = try directory.status(name) else { return nil }
    let path = directory.full(name)
    guard status.type == .file else {
      throw DrydockError(
        .damaged, "it is no file; links are not followed, put the archive itself here", path: path)
    }
    guard String(decoding: name.bytes, as: UTF8.self).utf8.elementsEqual(name.bytes) else {
      throw DrydockError(.damaged, "its name is not UTF-8; rename it", path: path)
    }
    do {
      // Without waiting, should it be replaced by a FIFO.
      let file = try directory.open(name, .readOnly, options: .nonBlocking)
      defer { try? file.close() }
      do {
        let start = try Archive.start(file, keys: keys, path: path)
        return .item(
          Item(
            path: path, size: status.size, modified: status.modified, header: start.header,
            encryption: start.encryption, contentSize: start.contentSize, identity: status.identity))
      } catch let error as DrydockError where error.code == .noIdentity {
        guard let encryption = try ArchiveEncryption.of(file) else { throw error }
        return .sealed(
          Sealed(
            path: path, size: status.size, modified: status.modified,
            label: ArchiveName.label(of: lastName(path)), encryption: encryption, error: error.at(path)))
      }
    } catch let error as DrydockError where error.code == .notFound {
      return nil
    } catch let error as DrydockError where error.code == .permission {
      throw DrydockError(.permission, "it may not be read; run it as its owner", path: path, cause: error)
    }
  }

  /// The archive that a person means; see ``Listing/find(_:)``.
  ///
  /// - Throws: ``DrydockError``.
  package func find(_ name: String, keys: AgeKeys = AgeKeys()) throws -> String {
    try list(keys: keys).find(name)
  }

  /// Removes an archive, on disk when this returns. Nobody writes into the repository meanwhile; who is reading the
  /// archive can read it to its end.
  ///
  /// - Parameter lockTimeout: seconds to wait for those who write.
  /// - Throws: ``DrydockError``: `locked`, `notFound` when that archive is not behind its path any more,
  ///   `permission`.
  package func remove(_ item: Item, lockTimeout: Double = 0) throws {
    let directory = try RepositoryLock(path, exclusive: true, timeout: lockTimeout).directory
    let name = try ContainerPath(item.fileName)
    guard directory.full(name) == item.path, let present = try directory.status(name),
      present.identity == item.identity, present.size == item.size, present.modified == item.modified
    else {
      throw DrydockError(
        .notFound, "the archive is not there any more; `drydock list -r` shows what there is",
        path: item.path)
    }
    do {
      try directory.removeFile(name)
      try directory.sync()
    } catch let error as DrydockError {
      throw DrydockError.place(error, path: path)
    }
  }
}
