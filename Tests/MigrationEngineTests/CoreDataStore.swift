import Foundation

@testable import Formats

/// A store as Core Data makes them, by hand: two entities, of which one has another that inherits from it.
struct CoreDataStore {
  /// The hashes that a model's entities have, made up.
  static func hashes(_ entities: [String: UInt8]) -> PropertyListDictionary {
    PropertyListDictionary(entities.map { ($0, .data([UInt8](repeating: $1, count: 32))) })
  }

  static let first = hashes(["Note": 1, "Photo": 2, "Sketch": 3])
  static let second = hashes(["Note": 9, "Photo": 2, "Sketch": 3])
  static let withTag = hashes(["Note": 9, "Photo": 2, "Sketch": 3, "Tag": 4])

  static let metadata: PropertyListDictionary = [
    "NSStoreType": "SQLite", "NSPersistenceFrameworkVersion": 1414,
    "NSStoreModelVersionHashes": .dictionary(first), "NSStoreModelVersionHashesVersion": 3,
    "NSStoreModelVersionIdentifiers": .array([""]), "NSStoreModelVersionHashesDigest": "old",
    "NSStoreModelVersionChecksumKey": "old", "com.example.note": "kept",
  ]

  static func sql(_ metadata: PropertyListDictionary = metadata) throws -> String {
    let bytes = try PropertyListFile(root: metadata).encoded()
    let plist = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return """
      CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTITLE VARCHAR, ZBODY BLOB);
      CREATE TABLE ZPHOTO (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNOTE INTEGER);
      CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
      CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
      CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);
      CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZENTITY INTEGER);
      INSERT INTO ZNOTE VALUES (1, 1, 1, 'one', NULL), (2, 1, 1, 'two', NULL);
      INSERT INTO ZPHOTO VALUES (1, 2, 1, 1), (2, 3, 1, 2);
      INSERT INTO Z_PRIMARYKEY VALUES (1, 'Note', 0, 2), (2, 'Photo', 0, 2), (3, 'Sketch', 2, 0),
        (16001, 'CHANGE', 0, 0);
      INSERT INTO Z_METADATA VALUES (1, '1F3B2C4D-0000-4000-8000-000000000000', x'\(plist)');
      INSERT INTO Z_MODELCACHE VALUES (x'00');
      """
  }

  /// The VersionInfo.plist of a model with three versions.
  static func versionInfo(_ change: (inout PropertyListDictionary) -> Void = { _ in }) throws -> String {
    var root: PropertyListDictionary = [
      "NSManagedObjectModel_CurrentVersionName": "Notes 2",
      "NSManagedObjectModel_VersionHashes": .dictionary([
        "Notes": .dictionary(first), "Notes 2": .dictionary(second), "Notes 3": .dictionary(withTag),
      ]),
      "NSManagedObjectModel_VersionChecksums": .dictionary(["Notes 2": "listed"]),
    ]
    change(&root)
    return String(decoding: try PropertyListFile(format: .xml, root: root).encoded(), as: UTF8.self)
  }
}
