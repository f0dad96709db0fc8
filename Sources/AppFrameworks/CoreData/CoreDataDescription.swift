import AppStores
import DrydockErrors
import Formats
import Foundation
import GRDB

extension DatabaseDescription {
  /// Describes a store of Core Data or SwiftData; nil for other databases.
  init?(coreData database: DescribedDatabase) throws {
    guard (try? database.db.isCoreDataStore()) == true else { return nil }
    self.init(.coreData, summary: "Core Data store")
    if database.path.nameString == "default.store" {
      facts.append(Fact("framework", "SwiftData (by the name default.store)"))
    }
    try describeModel(of: database)
    do {
      try describeEntities(of: database)
      try describeHistory(of: database)
      try describeExternalData(of: database)
    } catch let error as DatabaseError {
      warnings.append("the Core Data store is corrupt: \(error.plainMessage)")
    }
  }

  private mutating func describeModel(of database: DescribedDatabase) throws {
    let metadata: CoreDataMetadata
    do {
      metadata = try CoreDataMetadata(database.db)
    } catch {
      let reason = (error as? DrydockError)?.message ?? (error as? DatabaseError)?.plainMessage
      return warnings.append(reason ?? "the Core Data store's metadata cannot be read")
    }
    let models = try database.configuration.coreDataModels(of: database.name)
    compare(
      metadata.hashes, with: models?.versions ?? [], isNamed: models?.isForThisDatabase == true,
      database.redactor)
    let identifiers = metadata.versionIdentifiers.map(database.redactor.shown(name:))
    if !identifiers.isEmpty {
      facts.append(
        Fact(
          "version identifiers", identifiers.joined(separator: ", ") + " (set by the app; may be outdated)"))
    }
    for (key, value) in metadata.ofApp {
      facts.append(
        Fact(
          "metadata key \(database.redactor.shown(name: key))",
          database.redactor.shownDecoded(value, named: SecretName(key))))
    }
  }

  /// Finds the versions of a compiled model that a store has, by the hashes of its entities.
  ///
  /// - Parameter isNamed: whether the model is meant for this database, rather than for any.
  private mutating func compare(
    _ hashes: [String: [UInt8]], with versions: [CoreDataModel], isNamed: Bool, _ redactor: Redactor
  ) {
    if versions.isEmpty {
      return facts.append(Fact("model version", "unknown: no compiled model is given"))
    }
    let equal = versions.filter { $0.hashes == hashes }
    // Versions may have entities that the store was not created for.
    let parts = versions.filter { version in
      !hashes.isEmpty && hashes.allSatisfy { version.hashes[$0.key] == $0.value }
    }
    let names = (equal.isEmpty ? parts : equal).map(\.name)
    if let name = names.first {
      let what = equal.isEmpty ? " (some of its entities)" : ""
      facts.append(Fact("model version", names.joined(separator: " or ") + what))
      summary += ", model \(name)"
    } else if versions.contains(where: { version in hashes.keys.contains { version.hashes[$0] != nil } }) {
      facts.append(Fact("model version", "none of the model's versions"))
      let unknown = hashes.filter { entity, hash in !versions.contains { $0.hashes[entity] == hash } }.keys
      let differing =
        unknown.isEmpty ? "" : " (entities that none has: \(unknown.sorted().joined(separator: ", ")))"
      warnings.append(
        redactor.shown(
          message:
            "the store has none of the model's versions\(differing): an app with this model cannot open it"))
    } else {
      facts.append(Fact("model version", "unknown: the model has other entities"))
      if isNamed { warnings.append("the model in drydock.yaml has none of the store's entities") }
    }
  }

  private mutating func describeEntities(of database: DescribedDatabase) throws {
    let (db, redactor) = (database.db, database.redactor)
    let found = try CoreDataEntities(db)
    var counts: [Int64: Int] = [:]
    for (root, table) in found.roots where !root.isInternal {
      let family = found.family(of: root)
      var orphaned = 0
      let rows = try Row.fetchCursor(
        db, sql: "SELECT Z_ENT, count(*) FROM \(quotedIdentifier(table)) GROUP BY Z_ENT")
      while let row = try rows.next() {
        let count = Int.fromDatabaseValue(row[1]) ?? 0
        if let number = Int64.fromDatabaseValue(row[0]), family.contains(number) {
          counts[number] = count
        } else {
          orphaned += count
        }
      }
      let name = redactor.shown(name: root.name)
      if orphaned > 0 {
        warnings.append("rows of \(name) with a Z_ENT that is not one of the table's entities: \(orphaned)")
      }
      let largest = try Int64.fetchOne(db, sql: "SELECT max(Z_PK) FROM \(quotedIdentifier(table))") ?? 0
      if largest > root.largestKey {
        warnings.append(
          "the largest key of \(name) is \(largest), and Z_PRIMARYKEY has \(root.largestKey): Core Data would give keys "
            + "out again")
      }
    }
    for entity in found.ofApp {
      let root = found.root(of: entity)
      let name = redactor.shown(name: entity.name)
      let parent = found.all.first { $0.number == entity.parent }?.name
      let hasTable = root.flatMap(found.table(of:)) != nil
      entities.append(
        Entity(
          name: name, rows: hasTable ? counts[entity.number] ?? 0 : nil,
          parent: parent.map(redactor.shown(name:))))
      if root == nil {
        warnings.append("Z_PRIMARYKEY is corrupt: the entity \(name) has no entity at the top of its parents")
      } else if !hasTable {
        warnings.append("the entity \(name) has no table")
      }
    }
  }

  private mutating func describeHistory(of database: DescribedDatabase) throws {
    let db = database.db
    func count(_ table: String) throws -> Int? {
      guard try db.tableExists(table) else { return nil }
      return try Int.fetchOne(db, sql: "SELECT count(*) FROM \(quotedIdentifier(table))")
    }
    if let transactions = try count("ATRANSACTION"), let changes = try count("ACHANGE") {
      facts.append(
        Fact(
          "persistent history",
          "\(transactions.counted("transaction")), \(changes.counted("change"))"))
    }
    if let records = try count("ANSCKRECORDMETADATA") {
      facts.append(Fact("CloudKit mirroring", records.counted("record")))
    }
  }

  private mutating func describeExternalData(of database: DescribedDatabase) throws {
    let found = try CoreDataEntities(database.db)
    var references: Set<String> = []
    for (root, table) in found.roots where !root.isInternal {
      references.formUnion(try Self.externalFiles(in: table, of: database.db))
    }
    let files = database.externalFiles ?? [:]
    if references.isEmpty, files.isEmpty { return }
    let bytes: UInt64 = files.values.reduce(0, +)
    facts.append(
      Fact("external binary data", "\(files.count.counted("file")), \(bytes) bytes"))
    let names = Dictionary(files.keys.map { ($0.uppercased(), $0) }, uniquingKeysWith: { first, _ in first })
    let missing = references.filter { names[$0] == nil }.sorted()
    let orphaned = names.filter { !references.contains($0.key) }.values.sorted()
    if let first = missing.first {
      warnings.append(
        "values in missing files of external binary data: \(missing.count) of \(references.count), such as \(first)"
      )
    }
    if let first = orphaned.first {
      warnings.append(
        "files of external binary data that belong to no row: \(orphaned.count), such as "
          + database.redactor.shown(name: first)
      )
    }
  }

  /// The names of the files that the rows of a table refer to, in capitals. Core Data stores large values in files beside the
  /// store; the column then has a byte 2 and the name of the file, a UUID.
  private static func externalFiles(in table: String, of db: Database) throws -> Set<String> {
    var found: Set<String> = []
    let columns = try String.fetchAll(
      db, sql: "SELECT name FROM pragma_table_info(?) WHERE type = 'BLOB'", arguments: [table])
    for column in columns.map(quotedIdentifier) {
      // Some systems end the name with a NUL.
      let values = try Data.fetchCursor(
        db,
        sql: """
          SELECT substr(\(column), 2, 36) FROM \(quotedIdentifier(table))
          WHERE typeof(\(column)) = 'blob' AND length(\(column)) IN (37, 38) AND substr(\(column), 1, 1) = x'02'
          """)
      while let value = try values.next() {
        let name = String(decoding: value, as: UTF8.self)
        if UUID(uuidString: name) != nil { found.insert(name.uppercased()) }
      }
    }
    return found
  }
}
