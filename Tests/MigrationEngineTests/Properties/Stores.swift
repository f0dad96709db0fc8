import AppStores
import Formats
import Foundation
import GRDB
import TestSupport

/// What is in a container, store by store, as an app would see it: read with nothing of the engine, and nothing of how it
/// stages, captures or compares.
struct Stores: Equatable {
  static let history = "Library/Application Support/.drydock"
  static let vault = "Library/Vault/vault.age"

  /// Settings by file and key.
  var settings: [String: PropertyListDictionary] = [:]
  /// In which format each settings file is.
  var formats: [String: PropertyListFile.Format] = [:]
  /// Vault items, whatever they are sealed to.
  var items: [String: String] = [:]
  /// The schema and all rows of each database, whatever its pages are.
  var databases: [String: [String]] = [:]
  /// Everything else: content, mode, attributes, target. No times.
  var files: [String: String] = [:]

  init(_ tree: TreeListing, keys: DeviceKeys?) throws {
    let databases = tree.entries.filter { $0.value.content.starts(with: Array("SQLite format 3\0".utf8)) }
    let sidecars = Set(
      databases.keys.flatMap { path in ["-wal", "-shm", "-journal"].map { path + Array($0.utf8) } })
    for (bytes, entry) in tree.entries where !sidecars.contains(bytes) {
      let path = String(decoding: bytes, as: UTF8.self)
      if path == Self.history || path.hasPrefix(Self.history + "/") { continue }
      // An empty vault stays when its last item goes; what counts are the items.
      if path == "Library/Vault" { continue }
      if databases[bytes] != nil {
        let log = tree.entries[bytes + Array("-wal".utf8)]?.content
        self.databases[path] = try Self.dump(entry.content, log: log)
      } else if path == Self.vault {
        guard let keys else { continue }
        let vault = try Vault(opening: Array(entry.content), with: keys, path: path)
        for item in vault.sorted {
          let value = item.value.withBytes { Data($0).base64EncodedString() }
          let control = item.accessControl?.description ?? "-"
          items["\(item)"] =
            "\(item.accessibility) \(control) \(item.label ?? "-") \(item.accessGroup ?? "-") \(value)"
        }
      } else if path.hasPrefix("Library/Preferences/"), path.hasSuffix(".plist") {
        let file = try PropertyListFile(bytes: Array(entry.content))
        (settings[path], formats[path]) = (file.root, file.format)
      } else {
        files[path] = Self.text(entry)
      }
    }
  }

  private static func text(_ entry: TreeEntry) -> String {
    let attributes = entry.attributes.map { "\($0.key)=\($0.value)" }.sorted()
    return "\(entry.kind) \(String(entry.mode, radix: 8)) \(entry.content.base64EncodedString()) "
      + "\(entry.linkTarget ?? []) \(attributes)"
  }

  private static func dump(_ main: Data, log: Data?) throws -> [String] {
    try TemporaryDirectory.with { folder in
      try main.write(to: URL(fileURLWithPath: folder("d")))
      if let log { try log.write(to: URL(fileURLWithPath: folder("d-wal"))) }
      let queue = try DatabaseQueue(path: folder("d"))
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { db in
        var lines = try String.fetchAll(
          db,
          sql: "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY type, name"
        )
        for pragma in ["user_version", "application_id"] {
          lines.append("\(pragma) \(try Int.fetchOne(db, sql: "PRAGMA \(pragma)") ?? -1)")
        }
        for table in try String.fetchAll(
          // The pages behind a virtual table may be arranged in another way.
          db,
          sql: """
            SELECT s.name FROM sqlite_schema s JOIN pragma_table_list t ON t.schema = 'main' AND t.name = s.name
            WHERE s.type = 'table' AND t.type <> 'shadow' ORDER BY s.name
            """)
        {
          if table == "damaged" { continue }
          lines += try Row.fetchAll(db, sql: "SELECT * FROM \"\(table)\" ORDER BY 1").map { row in
            "\(table): \(row.map { "\($0.0)=\($0.1.storage)" }.joined(separator: ", "))"
          }
        }
        for table in ["search", "found"] where lines.contains(where: { $0.hasPrefix("table \(table) ") }) {
          try db.execute(sql: "INSERT INTO \(table)(\(table)) VALUES ('integrity-check')")
        }
        return lines
      }
    }
  }

  /// What is not the same in both, as text.
  func differences(from other: Stores) -> [String] {
    func compare<V: Equatable>(_ what: String, _ left: [String: V], _ right: [String: V]) -> [String] {
      Set(left.keys).union(right.keys).sorted().filter { left[$0] != right[$0] }.map {
        "\(what) \($0): \(right[$0].map { "\($0)" } ?? "nothing") → \(left[$0].map { "\($0)" } ?? "nothing")"
      }
    }
    var found = compare("format of", formats, other.formats)
    for file in Set(settings.keys).union(other.settings.keys).sorted() {
      found += compare(
        "setting in \(file)", (settings[file] ?? [:]).compactMapValues { $0 },
        (other.settings[file] ?? [:]).compactMapValues { $0 })
      if (settings[file] == nil) != (other.settings[file] == nil) { found.append("settings file \(file)") }
    }
    return found + compare("item", items, other.items) + compare("database", databases, other.databases)
      + compare("file", files, other.files)
  }
}
