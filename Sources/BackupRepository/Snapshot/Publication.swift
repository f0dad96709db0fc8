import AppContainer
import ArchiveFile

/// The way of an archive to its place: written under a private name beside it, published in one step.
struct Publication {
  private static let prefix = ".drydock-writing-"

  private let folder: Directory
  private let fileName: String?

  /// - Throws: ``RepositoryError``: `overlap` when the container and the place contain each other, `notFound`.
  init(_ target: SnapshotOptions.Target, _ container: Container) throws {
    try self.init(target)
    try refuseOverlap(container)
  }

  /// - Throws: ``RepositoryError``: `overlap` when the file exists, `notFound`.
  init(_ target: SnapshotOptions.Target) throws {
    switch target {
    case .repository(let path):
      folder = try Self.open(path, "the repository")
      fileName = nil
    case .file(let path):
      let slash = path.lastIndex(of: "/")
      let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
      let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
      guard !name.isEmpty else {
        throw RepositoryError(.notFound, "name the archive's file, not a directory", path: path)
      }
      folder = try Self.open(parent, "the archive's directory")
      fileName = name
      guard try folder.status(ContainerPath(name)) == nil else {
        throw RepositoryError(
          .overlap, "already exists; an archive never replaces a file, choose another name", path: path)
      }
    }
  }

  private static func open(_ path: String, _ what: String) throws -> Directory {
    do {
      return try Directory(realPath(path) ?? path)
    } catch let error as ContainerError where error.code == .notFound {
      throw RepositoryError(.notFound, "\(what) does not exist; make it with mkdir", path: path, cause: error)
    }
  }

  private func refuseOverlap(_ container: Container) throws {
    let inside = folder.path == container.anchor || folder.path.hasPrefix(container.anchor + "/")
    guard !inside else {
      throw RepositoryError(
        .overlap,
        "an archive inside the container that it is of would be part of itself; choose a place outside",
        path: folder.path)
    }
    guard fileName != nil || !container.anchor.hasPrefix(folder.path == "/" ? "/" : folder.path + "/")
    else {
      throw RepositoryError(
        .overlap, "the container is inside the repository; choose a repository elsewhere", path: folder.path)
    }
  }

  /// Runs the body with a private directory beside the target; what killed runs left is removed first.
  func with<T>(_ body: (Directory) throws -> T) throws -> T {
    try ScratchDirectory.with(Self.prefix, in: folder, body)
  }

  /// Gives the written file its name, never replacing one; on disk when this returns. Gives the path.
  func publish(_ file: ContainerPath, in scratch: Directory, as name: String) throws -> String {
    let target = try ContainerPath(fileName ?? name)
    try scratch.renameNew(file, in: folder, to: target)
    try folder.sync()
    return folder.full(target)
  }
}
