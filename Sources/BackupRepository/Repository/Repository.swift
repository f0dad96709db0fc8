import AppContainer
import ArchiveFile

/// A directory of archives.
public struct Repository: Sendable {
  /// Its path.
  public let path: String

  /// One archive of it, as its header says.
  public struct Item: Sendable {
    /// The file, and its size in bytes.
    public var path: String, size: UInt64
    /// What it is.
    public var header: ArchiveHeader
  }

  /// What a look at a repository found.
  public struct Listing: Sendable {
    /// The archives that can be read, oldest first.
    public var items: [Item]
    /// Files that are named like archives and cannot be read, with the reason.
    public var unreadable: [(path: String, reason: String)]
  }

  /// A repository at a path.
  public init(_ path: String) { self.path = path }

  /// Reads the headers of all archives.
  public func list() throws -> Listing {
    let directory: Directory
    do {
      directory = try Directory(path)
    } catch let error as ContainerError where error.code == .notFound {
      throw RepositoryError(.notFound, "no such repository; check the path", path: path, cause: error)
    }
    var listing = Listing(items: [], unreadable: [])
    for bytes in try directory.names() {
      let name = ContainerPath(name: bytes)
      guard name.nameString.hasSuffix(ArchiveName.suffix), let status = try directory.status(name),
        status.type == .file
      else { continue }
      let path = directory.full(name)
      do {
        listing.items.append(Item(path: path, size: status.size, header: try Archive.header(path: path)))
      } catch let error as ArchiveError {
        listing.unreadable.append((path, error.message))
      } catch let error as RepositoryError {
        listing.unreadable.append((path, error.message))
      }
    }
    listing.items.sort { ($0.header.time, $0.path) < ($1.header.time, $1.path) }
    return listing
  }

  /// The archive that a person means: an id prefix, `INSTANCE@latest`, `INSTANCE@2026-11-14` (the newest not
  /// later), or `latest` where there is one instance only.
  ///
  /// - Throws: ``RepositoryError``: `notFound`, or `ambiguous` with the candidates.
  public func find(_ name: String) throws -> String {
    let items = try list().items
    let candidates: [Item]
    if name == "latest" || name.contains("@") {
      let parts = name.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let when = parts.count == 2 ? parts[1] : "latest"
      let of = parts.count == 2 ? items.filter { $0.header.instance == parts[0] } : items
      let instances = Set(of.map { "\($0.header.app) \($0.header.instance)" })
      guard instances.count < 2 else {
        throw RepositoryError(
          .ambiguous,
          "there are archives of \(instances.sorted().joined(separator: ", ")); say which as "
            + "INSTANCE@latest", path: path)
      }
      // Times are text that sorts; a day stands for all of it.
      candidates = of.filter { when == "latest" || $0.header.time.prefix(when.count) <= when }.suffix(1)
    } else {
      candidates = items.filter {
        !name.isEmpty && $0.header.archive.description.hasPrefix(name.lowercased())
      }
    }
    guard let found = candidates.first else {
      throw RepositoryError(
        .notFound, "no archive is \(name); `drydock list -r` shows what there is", path: path)
    }
    guard candidates.count == 1 else {
      throw RepositoryError(
        .ambiguous, "\(name) fits \(candidates.count) archives; give more of the id", path: path)
    }
    return found.path
  }
}
