import AppStores
import ContainerDiff
import MigrationEngine

/// A place where reverting a migration may lose values, as its `down-loses` says.
struct DownLoss: Hashable {
  /// Such as `0002_rename_settings`.
  let migration: String
  private let place: String

  /// Those of migrations, in their order.
  static func all(of migrations: some Sequence<Migration>) -> [DownLoss] {
    migrations.flatMap { migration in
      migration.downLosses.keys.sorted().map { DownLoss(migration: migration.identifier, place: $0) }
    }
  }

  /// Whether a difference is there. Of a column or a table its values may be lost; its definition must be restored.
  func covers(_ difference: EntryDifference, _ redactor: Redactor) -> Bool {
    guard let entry = difference.entry else { return false }
    let path = entry.id[0].text
    if path == place || path.utf8.starts(with: "\(place)/".utf8) { return true }
    switch entry.noun {
    case "setting": return entry.id[2] == ExactText(place)
    case "vault item": return entry.name(redactor) == "\(path): \(place)"
    case "row":
      let table = entry.id[3].text.lowercased()
      let column = difference.fields.map { "\(table).\($0.old.name.lowercased())" }
      return [table, column].contains(place.lowercased())
    default: return false
    }
  }

  var unneededNote: String {
    "\(migration): no fixture needs `down-loses` of `\(place)`: correct the name, or remove it"
  }
}
