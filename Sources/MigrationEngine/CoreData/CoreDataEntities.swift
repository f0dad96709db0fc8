import GRDB

/// The entities of a Core Data store, from `Z_PRIMARYKEY`: their numbers, and the largest key of each that was given out.
struct CoreDataEntities {
  struct Entity {
    let number: Int64
    let name: String
    /// The number of the entity that it inherits from; 0 for none.
    let parent: Int64
    let largestKey: Int64
  }

  /// Numbers from here on are those of Core Data's own entities, such as the history of changes.
  private static let ownNumbers: Int64 = 16000

  let all: [Entity]
  /// The tables of the store, by their names in capitals.
  private let tables: [String: String]

  init(_ db: Database) throws {
    all = try Row.fetchAll(db, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT")
      .map {
        Entity(
          number: $0[0] ?? 0, name: $0[1] ?? "", parent: $0[2] ?? 0, largestKey: $0[3] ?? 0)
      }
    let names = try String.fetchAll(
      db,
      sql: """
        SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
        WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL %' AND c.name IN ('Z_PK', 'Z_ENT')
        GROUP BY m.name HAVING count(*) = 2
        """)
    tables = Dictionary(names.map { ($0.uppercased(), $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The names of the app's entities.
  var names: Set<String> { Set(all.filter { $0.number < Self.ownNumbers }.map(\.name)) }

  /// The entities that have a table, which those that inherit from them share.
  var roots: [(entity: Entity, table: String)] {
    all.compactMap { entity in
      guard entity.parent == 0, let table = table(of: entity) else { return nil }
      return (entity, table)
    }
  }

  /// The table of an entity that inherits from none; nil when there is none.
  func table(of entity: Entity) -> String? {
    let prefix = entity.number < Self.ownNumbers ? "Z" : "A"
    return tables[prefix + entity.name.uppercased()]
  }

  /// The numbers of an entity and of all that inherit from it.
  private func family(of root: Entity) -> Set<Int64> {
    var found: Set = [root.number]
    while case let more = all.filter({ found.contains($0.parent) && !found.contains($0.number) }),
      !more.isEmpty
    {
      found.formUnion(more.map(\.number))
    }
    return found
  }

  /// Rows of each app's table whose `Z_ENT` is none of the entities that the table is for.
  func strays(_ db: Database) throws -> [String: Int] {
    var strays: [String: Int] = [:]
    for (root, table) in roots where root.number < Self.ownNumbers {
      let numbers = family(of: root).map(String.init).joined(separator: ", ")
      let sql = """
        SELECT count(*) FROM \(table.quotedDatabaseIdentifier) WHERE Z_ENT IS NULL OR Z_ENT NOT IN (\(numbers))
        """
      strays[root.name] = try Int.fetchOne(db, sql: sql)
    }
    return strays
  }

  /// Raises the largest keys that are behind what the tables hold: Core Data would give a key again.
  ///
  /// - Returns: remarks.
  func raiseLargestKeys(_ db: Database) throws -> [String] {
    try roots.compactMap { root, table in
      let sql = "SELECT max(Z_PK) FROM \(table.quotedDatabaseIdentifier)"
      guard let largest = try Int64.fetchOne(db, sql: sql), largest > root.largestKey else { return nil }
      try db.execute(
        sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?", arguments: [largest, root.number])
      return "Z_PRIMARYKEY: the largest key of \(root.name) is \(largest) now (was \(root.largestKey))"
    }
  }
}
