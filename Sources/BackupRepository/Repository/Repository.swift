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
      candidates = try newest(of: items, name)
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

  /// The newest archive for `latest`, `INSTANCE@latest` or `INSTANCE@TIME`; an instance's name may have an `@`.
  private func newest(of items: [Item], _ name: String) throws -> [Item] {
    let at = name.lastIndex(of: "@")
    let when = at.map { String(name[name.index(after: $0)...]) } ?? name
    let of = at.map { at in items.filter { $0.header.instance == name[..<at] } } ?? items
    guard when == "latest" || Self.isTime(when) else {
      throw RepositoryError(
        .notFound, "\(name) names no time; say INSTANCE@latest or INSTANCE@2026-11-14", path: path)
    }
    let instances = Set(of.map { "\($0.header.app) \($0.header.instance)" })
    guard instances.count < 2 else {
      throw RepositoryError(
        .ambiguous,
        "there are archives of \(instances.sorted().joined(separator: ", ")); "
          + (at == nil
            ? "say which as INSTANCE@latest" : "give an archive's id, which `drydock list -r` shows"),
        path: path)
    }
    // Times are text that sorts; a day stands for all of it.
    return of.filter { when == "latest" || $0.header.time.prefix(when.count) <= when }.suffix(1)
  }

  /// Whether a text is the beginning of a time, from a year on.
  private static func isTime(_ text: String) -> Bool {
    let form = "0000-00-00T00:00:00Z"
    return (4...form.count).contains(text.count)
      && zip(text, form).allSatisfy { $1 == "0" ? $0.isASCII && $0.isWholeNumber : $0 == $1 }
  }
}
