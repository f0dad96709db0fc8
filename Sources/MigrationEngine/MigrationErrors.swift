import DrydockErrors
import GRDB

extension DrydockError {
  /// What kept a file of migrations from being read, as an error of the catalogue.
  init(reading error: any Error) {
    let error =
      error as? DrydockError
      ?? DrydockError(.catalog, String(describing: error), cause: error)
    self =
      error.code.isOfMigrations
      ? error : DrydockError(.catalog, error.message, path: error.path, cause: error)
  }

  /// The one line that a failure says about itself; never a statement's arguments.
  static func text(of error: any Error) -> String {
    (error as? DatabaseError)?.plainMessage ?? String(describing: error)
  }
}

extension DrydockError.Code {
  /// Whether it is about migrations themselves, and says where in their files.
  var isOfMigrations: Bool {
    switch self {
    case .catalog, .unknownVersion, .firstContact, .newer, .edited, .missingMigration, .outOfOrder, .released,
      .contradiction, .damagedHistory, .irreversible, .stepFailed, .verifyFailed, .sql, .foreignSchema,
      .usage:
      true
    default: false
    }
  }
}
