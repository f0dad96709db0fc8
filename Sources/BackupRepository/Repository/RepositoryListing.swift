import AppContainer

extension Repository {
  /// One archive of a repository, as its header says, whatever its file is named.
  public struct Item: Sendable {
    /// The file.
    public var path: String
    /// Its size in bytes, and when it was last written, in nanoseconds since 1970.
    public var size: UInt64, modified: Int64
    /// What it is.
    public var header: ArchiveHeader

    /// App and instance, which together own archives: `com.example.notes/red`.
    public var owner: String { "\(header.app)/\(header.instance)" }
    /// The file's name.
    public var fileName: String { lastName(path) }
  }

  /// What is named like an archive and cannot be read.
  public struct Unreadable: Sendable {
    /// The file.
    public var path: String
    /// Why, in words.
    public var reason: String
    /// Why: an error of any module.
    public var error: any Error
  }

  /// What a look at a repository found.
  public struct Listing: Sendable {
    /// The repository's path.
    public let repository: String
    /// The archives that can be read, oldest first; those of one second in the order in which they were written.
    public internal(set) var items: [Item] = []
    /// What is named like an archive and cannot be read, by name.
    public internal(set) var unreadable: [Unreadable] = []

    init(repository: String) { self.repository = repository }

    /// How many digits tell all ids of the list apart, 8 or more.
    public var idLength: Int {
      let ids = Set(items.map(\.header.archive.description)).sorted()
      let shared = zip(ids, ids.dropFirst()).map { zip($0, $1).prefix { $0 == $1 }.count }
      return max(8, (shared.max() ?? 0) + 1)
    }
  }
}

extension Repository.Listing {
  /// The path of the archive that a person means: the name of its file, the beginning of its id (4 digits or more),
  /// `INSTANCE@latest`, `INSTANCE@2026-11-14` (the newest not later), and where that fits several apps
  /// `APP/INSTANCE@latest`. Without an instance, `latest` and a time mean the only one that there is.
  ///
  /// - Throws: ``RepositoryError``: `notFound`, or `ambiguous` with the candidates and what to say instead.
  public func find(_ name: String) throws -> String {
    let files = items.map(\.path) + unreadable.map(\.path)
    if let file = files.first(where: { lastName($0) == name }) { return file }
    switch try ArchiveReference(name, repository: repository) {
    case .id(let prefix): return try withID(prefix)
    case .newest(let owner, let limit):
      let when = name.lastIndex(of: "@").map { String(name[name.index(after: $0)...]) } ?? name
      return try newest(of: owner, notAfter: limit, when)
    }
  }

  private func withID(_ prefix: String) throws -> String {
    let found = items.filter { $0.header.archive.description.lowercased().hasPrefix(prefix) }
    guard let first = found.first else {
      throw error(.notFound, "no archive is \(prefix); `drydock list -r` shows what there is")
    }
    guard found.allSatisfy({ $0.header.archive == first.header.archive }) else {
      let candidates = found.map {
        "\($0.header.archive.description.prefix(idLength)) (\($0.header.time), \($0.header.instance))"
      }
      throw error(
        .ambiguous, "\(prefix) fits \(found.count) archives; give more of the id: \(list(candidates))")
    }
    // Copies of one archive: any of them.
    guard found.allSatisfy({ $0.size == first.size }) else {
      throw error(
        .ambiguous,
        "\(found.count) files say that they are \(prefix), and their sizes differ; `drydock verify --data` tells "
          + "which is good, give its file: \(list(found.map(\.fileName)))")
    }
    return first.path
  }

  private func newest(of owner: String?, notAfter limit: String?, _ when: String) throws -> String {
    let owned = owner.map(archives(of:)) ?? items
    let owners = Set(owned.map(\.owner))
    guard let oldest = owned.first else {
      let there = Set(items.map(\.owner)).sorted().map { named($0, when) }
      throw error(
        .notFound,
        there.isEmpty
          ? "there are no archives that can be read"
          : "no archive is \(owner.map { $0 + "@" } ?? "")\(when); there are \(list(there))")
    }
    guard owners.count == 1 else {
      throw error(
        .ambiguous,
        "there are archives of \(owners.count) instances; say INSTANCE@\(when): "
          + list(owners.sorted().map { named($0, when) }))
    }
    guard
      let found = owned.last(where: { item in limit.map { item.header.time.prefix($0.count) <= $0 } ?? true })
    else {
      throw error(.notFound, "no archive is of \(when) or before; the oldest is of \(oldest.header.time)")
    }
    return found.path
  }

  /// Those of an `APP/INSTANCE`, else of an instance, else of an app.
  private func archives(of owner: String) -> [Repository.Item] {
    for isMeant in [\.owner, \.header.instance, \.header.app] as [KeyPath<Repository.Item, String>] {
      let found = items.filter { $0[keyPath: isMeant] == owner }
      if !found.isEmpty { return found }
    }
    return []
  }

  /// What to say for an owner: its instance alone where no other app has one of that name.
  private func named(_ owner: String, _ when: String) -> String {
    let instance = items.first { $0.owner == owner }?.header.instance ?? owner
    return (Set(archives(of: instance).map(\.owner)) == [owner] ? instance : owner) + "@" + when
  }

  private func list(_ candidates: [String]) -> String {
    let more = candidates.count - 10
    return candidates.prefix(10).joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
  }

  private func error(_ code: RepositoryError.Code, _ message: String) -> RepositoryError {
    RepositoryError(code, message.printable, path: repository)
  }
}

private func lastName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
