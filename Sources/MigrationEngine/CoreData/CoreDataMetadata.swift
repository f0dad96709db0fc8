import AppContainer
import DrydockErrors
import Formats
import Foundation
import GRDB

/// What a Core Data store says about itself: one property list, in which apps keep values of their own, too.
struct CoreDataMetadata {
  private var file: PropertyListFile

  /// - Throws: ``StepFailure`` when the store has none that can be understood.
  init(_ db: Database) throws {
    let rows = try Row.fetchAll(db, sql: "SELECT Z_PLIST FROM Z_METADATA")
    guard rows.count == 1, let data = Data.fromDatabaseValue(rows[0][0]) else {
      throw StepFailure(
        message: "the Core Data store's metadata is damaged: Z_METADATA has not one row with a Z_PLIST")
    }
    do {
      file = try PropertyListFile(bytes: [UInt8](data))
    } catch let error as DrydockError {
      throw StepFailure(message: "the Core Data store's metadata is damaged: \(error.message)")
    }
  }

  /// The entities of the store's model.
  var entities: Set<String> {
    Set((file.root["NSStoreModelVersionHashes"]?.entityHashes ?? [:]).keys)
  }

  /// Says that the store has a model now; everything else in it stays as it is. What is derived from the hashes is kept
  /// where the system that wrote the store keeps it. (The identifiers are Core Data's hints for people, and no
  /// VersionInfo.plist has them: they stay.)
  mutating func adopt(_ model: CoreDataModel) throws {
    file.root["NSStoreModelVersionHashes"] = .dictionary(
      PropertyListDictionary(model.hashes.map { ($0.key, .data($0.value)) }))
    let derived = [
      "NSStoreModelVersionHashesDigest": try model.digest(),
      "NSStoreModelVersionChecksumKey": try model.checksum(),
    ]
    for (key, value) in derived where file.root[key] != nil { file.root[key] = .string(value) }
  }

  func write(_ db: Database) throws {
    try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = ?", arguments: [Data(try file.encoded())])
  }
}
