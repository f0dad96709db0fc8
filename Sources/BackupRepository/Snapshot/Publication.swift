import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

/// The way of an archive to its place: written under a private name beside it, published in one step.
struct Publication {
  /// What the names of directories for archives in the making start with.
  static let prefix = ".drydock-writing-"

  /// Of a repository, locked: nothing is removed from it meanwhile.
  private var folder: Directory
  private let fileName: String?

  /// - Parameter lockTimeout: seconds to wait for the lock of a repository.
  /// - Throws: ``DrydockError``: `overlap` when the container and the place contain each other, `notFound`,
  ///   `locked` while something is removed from the repository.
  init(_ target: SnapshotOptions.Target, _ container: Container, lockTimeout: Double) throws {
    try self.init(target) { try $0.refuseOverlap(container) }
    try lock(timeout: lockTimeout)
  }

  /// - Parameter lockTimeout: seconds to wait for the lock of a repository.
  /// - Throws: ``DrydockError``: `overlap` when the file exists, `notFound`, `locked`.
  init(_ target: SnapshotOptions.Target, lockTimeout: Double) throws {
    try self.init(target) { _ in }
    try lock(timeout: lockTimeout)
  }

  private mutating func lock(timeout: Double) throws {
    guard fileName == nil else { return }
    folder = try RepositoryLock(folder.path, exclusive: false, timeout: timeout).directory
  }

  private init(_ target: SnapshotOptions.Target, check: (Publication) throws -> Void) throws {
    switch target {
    case .repository(let path):
      folder = try Self.open(path, "the repository")
      fileName = nil
    case .file(let path):
      let slash = path.lastIndex(of: "/")
      let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
      let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
      guard !name.isEmpty else {
        throw DrydockError(.notFound, "name the archive's file, not a directory", path: path)
      }
      folder = try Self.open(parent, "the archive's directory")
      fileName = name
      guard try folder.status(ContainerPath(name)) == nil else {
        throw DrydockError(
          .overlap, "already exists; an archive never replaces a file, choose another name", path: path)
      }
    }
    try check(self)
  }

  private static func open(_ path: String, _ what: String) throws -> Directory {
    do {
      return try Directory(ownRealPath(path) ?? path)
    } catch let error as DrydockError {
      throw DrydockError.place(error, what, path: path)
    }
  }

  private func refuseOverlap(_ container: Container) throws {
    for root in [container.anchor] + container.groups.map(\.root) {
      guard folder.path != root, !folder.path.hasPrefix(root + "/") else {
        throw DrydockError(
          .overlap,
          "an archive inside the container that it is of, or a group of it, would be part of itself; choose a place "
            + "outside", path: folder.path)
      }
      guard fileName != nil || !root.hasPrefix(folder.path == "/" ? "/" : folder.path + "/") else {
        throw DrydockError(
          .overlap,
          "the container, or a group of it, is inside the repository; choose a repository elsewhere",
          path: folder.path)
      }
    }
  }

  /// Runs the body with a private directory beside the target; what killed runs left is removed first.
  func with<T>(_ body: (Directory) throws -> T) throws -> T {
    var isMade = false
    do {
      return try ScratchDirectory.with(Self.prefix, in: folder) { scratch in
        isMade = true
        return try body(scratch)
      }
    } catch let error as DrydockError where error.code == .io {
      throw error.at(folder.path)
    } catch let error as DrydockError where !isMade {
      throw DrydockError.place(
        error, fileName == nil ? "the repository" : "the directory", path: folder.path)
    }
  }

  /// What there is to say about the clock when a repository has an archive of the same app and instance and of a later
  /// time: that one, and the beginning of the id of the newest.
  ///
  /// Names of files tell whether there is one, so that usually no archive is opened.
  func later(than time: String, _ app: String, _ instance: String) throws -> (
    ArchiveLabel, String, newest: String
  )? {
    guard fileName == nil else { return nil }
    let isOwn = { (label: ArchiveLabel) in
      [label.app, label.instance].map { ArchiveName.plain($0, 95) }
        == [app, instance].map { ArchiveName.plain($0, 95) }
    }
    let later = try folder.names().compactMap { bytes -> (ArchiveLabel, String)? in
      guard ArchiveName.isArchive(bytes) else { return nil }
      return ArchiveName.label(of: String(decoding: bytes, as: UTF8.self)).map {
        ($0, folder.full(ContainerPath(name: bytes)))
      }
    }.filter { isOwn($0.0) && $0.0.time > time }.max { ($0.0.time, $0.1) < ($1.0.time, $1.1) }
    guard let later else { return nil }
    let newest = try Repository(folder.path).list().entries.compactMap(\.place).last { isOwn($0.label) }
    return (later.0, later.1, String((newest?.label ?? later.0).id.prefix(8)))
  }

  /// Gives the written file its name, never replacing one; on disk when this returns. Gives the path.
  ///
  /// - Parameter names: for a repository; the first that is free.
  /// - Throws: ``DrydockError``: `overlap` when none is.
  func publish(_ file: ContainerPath, in scratch: Directory, as names: [String]) throws -> String {
    for name in fileName.map({ [$0] }) ?? names {
      let target = try ContainerPath(name)
      guard try place(file, in: scratch, as: target) else { continue }
      do { try folder.sync() } catch let error as DrydockError {
        throw DrydockError(
          .io, "the archive is here, but \(error.reason); check the disk, then run `drydock verify` on it",
          path: folder.full(target), cause: error)
      }
      return folder.full(target)
    }
    throw DrydockError(
      .overlap, "there is an archive of that name by now; an archive never replaces a file, run it again",
      path: folder.full(try ContainerPath(fileName ?? names.first ?? "")))
  }

  /// - Returns: false when there is a file of that name.
  private func place(_ file: ContainerPath, in scratch: Directory, as target: ContainerPath) throws -> Bool {
    do {
      do {
        try scratch.renameNew(file, in: folder, to: target)
      } catch let error as DrydockError where error.cause as? Errno == .invalidArgument {
        // Network file systems know no such rename; a further name for the file replaces nothing either.
        try scratch.link(file, in: folder, to: target)
        try scratch.removeFile(file)
      }
      return true
    } catch let error as DrydockError where error.cause as? Errno == .fileExists {
      return false
    }
  }
}
