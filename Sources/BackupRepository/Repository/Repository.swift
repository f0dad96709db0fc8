import AgeEncryption
import AppContainer
import ArchiveFile
import ContainerTransaction
import DrydockErrors
import FileSystem

public struct Repository: Sendable {
  public let path: String

  public init(_ path: String) {
    let trimmed = path.prefix(path.count - path.reversed().prefix { $0 == "/" }.count)
    self.path = trimmed.isEmpty ? path : String(trimmed)
  }

  /// Reads the headers of all archives, and nothing else of them. Other files are ignored.
  /// Of encrypted ones that no key opens, only the name is known.
  ///
  /// - Parameter keys: what opens encrypted ones.
  /// - Throws: `DrydockError`: `notFound`, `permission`, `io`.
  public func list(keys: AgeKeys = AgeKeys()) throws -> Listing { try list(keys: keys) { _ in true } }

  /// Lists only files whose names are those of certain archives, and files without such a name.
  package func list(
    keys: AgeKeys, progress: WorkProgress? = nil, where isWanted: (ArchiveLabel) -> Bool = { _ in true }
  ) throws -> Listing {
    do {
      return try list(Directory(path), keys, progress: progress, where: isWanted)
    } catch let error as DrydockError where error.code == .notFound {
      throw DrydockError(.notFound, "no such repository; check the path", path: path, cause: error)
    } catch let error as DrydockError {
      throw DrydockError.unusable("the repository", path: path, error)
    }
  }

  func list(
    _ directory: Directory, _ keys: AgeKeys, progress: WorkProgress? = nil,
    where isWanted: (ArchiveLabel) -> Bool = { _ in true }
  ) throws -> Listing {
    let names = try directory.names()
    var listing = Listing(repository: path)
    progress?.begin(.list, totalFiles: names.count { ArchiveName.isArchive($0) })
    for bytes in names where ArchiveName.isArchive(bytes) {
      progress?.add(files: 1)
      if let label = ArchiveName.label(of: String(decoding: bytes, as: UTF8.self)), !isWanted(label) {
        continue
      }
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
    try listing.readTags(names, in: directory)
    listing.nameOwners()
    listing.sort()
    return listing
  }

  /// An archive by its file; nil when it is gone.
  private func found(_ name: ContainerPath, in directory: Directory, _ keys: AgeKeys) throws -> Listing.Entry?
  {
    guard let status = try directory.status(name) else { return nil }
    let path = directory.full(name)
    guard status.type == .file else {
      throw DrydockError(
        .damaged, "not a file; links are not followed, put the archive itself here", path: path)
    }
    guard String(decoding: name.bytes, as: UTF8.self).utf8.elementsEqual(name.bytes) else {
      throw DrydockError(.damaged, "its name is not UTF-8; rename it", path: path)
    }
    do {
      // Without waiting: it may be replaced by a FIFO.
      let file = try directory.open(name, .readOnly, options: .nonBlocking)
      defer { try? file.close() }
      do {
        let reader = try ArchiveReader(file, keys: keys)
        return .item(
          Item(
            path: path, size: status.size, modified: status.modified,
            header: try ArchivePart.header(reader, path), encryption: reader.encryption,
            contentSize: reader.contentSize, identity: status.identity))
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
      throw DrydockError(.permission, "permission denied; run it as its owner", path: path, cause: error)
    }
  }

  /// The path of the archive that a name means; see ``Listing/find(_:)``.
  package func find(_ name: String, keys: AgeKeys = AgeKeys()) throws -> String {
    try list(keys: keys).find(name)
  }

  /// Removes an archive, on disk when this returns. It waits for those who write into the
  /// repository; who is reading the archive can read it to its end.
  ///
  /// - Parameter lockTimeout: seconds to wait for the repository's lock.
  /// - Throws: `DrydockError`: `locked`, `notFound` when that archive is gone or replaced,
  ///   `permission`, `checkFailed` when another archive needs it.
  public func remove(_ item: Item, lockTimeout: Double = 0) throws {
    let directory = try RepositoryLock(path, exclusive: true, timeout: lockTimeout).directory
    let name = try ContainerPath(item.fileName)
    guard directory.full(name) == item.path, let present = try directory.status(name),
      present.identity == item.identity, present.size == item.size, present.modified == item.modified
    else {
      throw DrydockError(
        .notFound, "the archive is gone or was replaced; `drydock list` lists the archives",
        path: item.path)
    }
    do {
      let archives = try list(directory, AgeKeys()).stored
      let others = archives.filter { !$0.paths.contains(item.path) }
      let own = archives.filter {
        $0.paths.contains(item.path) || $0.label.id == item.header.archive.description
      }
      if own.allSatisfy({ $0.paths == [item.path] }) {
        try own.requireUnneeded(by: others)
        try ArchiveTags.remove(of: item.header.archive.description, in: directory)
      }
      try directory.removeFile(name)
      try directory.sync()
    } catch let error as DrydockError where error.code == .checkFailed {
      throw error
    } catch let error as DrydockError {
      throw DrydockError.unusable("the repository", path: path, error)
    }
  }
}

/// The lock of a repository: `flock` on its directory. Writing takes it shared, removing exclusive.
///
/// The kernel releases it when a process dies, so that it is never stale, and it needs no file. Reading takes no lock:
/// an open archive stays readable to its end when its name is removed, and a read-only repository, or another user's,
/// can be read. On a network file system it holds among the
/// processes of one machine.
struct RepositoryLock {
  let directory: Directory

  /// - Parameter timeout: seconds to wait; 0 waits for a tenth of a second.
  /// - Throws: `DrydockError`: `locked`, naming the holders; `notFound`, `permission`.
  init(_ path: String, exclusive: Bool, timeout: Double) throws {
    do {
      guard let directory = try Directory.locked(path, exclusive: exclusive, timeout: timeout) else {
        throw DrydockError(
          .locked,
          "the repository is locked by \(try LockHolders.names(path)); wait for it",
          path: path)
      }
      self.directory = directory
    } catch let error as DrydockError {
      throw DrydockError.unusable("the repository", path: path, error)
    }
  }
}

extension DrydockError {
  /// An error of the file system about a directory for archives.
  static func unusable(_ what: String, path: String, _ error: DrydockError) -> DrydockError {
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
