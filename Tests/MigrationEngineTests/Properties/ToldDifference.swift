import ContainerDiff
import TestSupport
import Testing

/// What a dry run told, next to what is found to differ.
struct ToldDifference {
  private let told: ContainerDifference

  init(_ told: ContainerDifference) { self.told = told }

  func expect(
    _ before: Stores, _ after: Stores, _ treeBefore: TreeListing, _ treeAfter: TreeListing, _ comment: Comment
  ) {
    let settings = Set(told.settings.map { "\($0.file) \($0.key) \($0.change.rawValue)" })
    #expect(settings == Self.settings(before, after), comment)
    let items = told.vault.flatMap { $0.items ?? [] }
    let names = Set(items.map { "\($0.name) \($0.change.rawValue)" })
    #expect(names == Self.changes(before.items, after.items), comment)
    #expect(databases == Self.changes(before.databases, after.databases), comment)
    for database in told.databases where database.change != .removed {
      let path = database.path.description
      let old = before.databases[database.movedFrom?.description ?? path] ?? []
      let new = after.databases[path] ?? []
      for table in database.tables {
        let start = table.name + ": "
        let more: Int = new.count { $0.hasPrefix(start) } - old.count { $0.hasPrefix(start) }
        let expected: Int = table.added - table.removed
        #expect(more == expected, "\(database) \(comment)")
      }
    }
    #expect(files == Self.files(treeBefore, treeAfter), comment)
  }

  private var databases: Set<String> {
    Set(
      told.databases.flatMap { item in
        guard let from = item.movedFrom else { return ["\(item.path) \(item.change.rawValue)"] }
        return ["\(from) removed", "\(item.path) added"]
      })
  }

  /// Files, links and directories; not those that other stores tell of.
  private var files: Set<String> {
    Set(
      told.files.flatMap { item -> [String] in
        if Self.isElsewhere(item.path.description) { return [] }
        // Of what only got another time nothing was changed that an app sees.
        if item.change == .changed && item.movedFrom == nil && item.aspects == [.time] { return [] }
        guard let from = item.movedFrom else { return ["\(item.path) \(item.change.rawValue)"] }
        return ["\(from) removed", "\(item.path) \(item.change.rawValue)"]
      })
  }

  private static func isElsewhere(_ path: String) -> Bool {
    path == Stores.history || path.hasPrefix(Stores.history + "/") || path == Stores.vault
  }

  private static func settings(_ before: Stores, _ after: Stores) -> Set<String> {
    Set(
      Set(before.settings.keys).union(after.settings.keys).flatMap { file in
        let (old, new) = (before.settings[file] ?? [:], after.settings[file] ?? [:])
        return old.differingKeys(from: new).map { key in
          "\(file) \(key) \(change(old[key], new[key]))"
        }
      })
  }

  private static func changes<V: Equatable>(_ before: [String: V], _ after: [String: V]) -> Set<String> {
    Set(
      Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }.map { key in
        "\(key) \(change(before[key], after[key]))"
      })
  }

  private static func change<V>(_ before: V?, _ after: V?) -> String {
    before == nil ? "added" : after == nil ? "removed" : "changed"
  }

  private static func files(_ before: TreeListing, _ after: TreeListing) -> Set<String> {
    func comparable(_ tree: TreeListing) -> [String: String] {
      var result: [String: String] = [:]
      let magic = Array("SQLite format 3\0".utf8)
      let mains = tree.entries.filter { $0.value.content.starts(with: magic) }.keys
      let units = Set(
        mains.flatMap { main in ["", "-wal", "-shm", "-journal"].map { main + Array($0.utf8) } })
      for (bytes, entry) in tree.entries where !units.contains(bytes) {
        let path = String(decoding: bytes, as: UTF8.self)
        if isElsewhere(path) { continue }
        let isSettings = path.hasPrefix("Library/Preferences/") && path.hasSuffix(".plist")
        // Of settings the keys are told.
        result[path] =
          isSettings
          ? "settings \(entry.mode)"
          : "\(entry.kind) \(entry.mode) \(entry.content.base64EncodedString()) \(entry.linkTarget ?? []) \(entry.attributes)"
      }
      return result
    }
    return changes(comparable(before), comparable(after))
  }
}
