import DrydockErrors
import Foundation
import GRDB

extension DatabaseQueue {
  /// Opens a copy of a database, or a new one, that only this connection uses.
  ///
  /// SQLite would keep the index of its log in a file that it maps into memory, and touching a page for which the file
  /// system has no block any more ends the process (SIGBUS). Who has the database alone keeps the index in its own
  /// memory.
  ///
  /// - Parameter configure: sets up the connection; what it prepares runs after that.
  package static func alone(
    with path: String, _ configure: (inout GRDB.Configuration) -> Void = { _ in }
  ) throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    // The lock that this takes is a writer's, even to read.
    let mayWrite = access(path, W_OK) == 0 || access(path, F_OK) != 0
    configuration.readonly = !mayWrite
    if mayWrite { configuration.prepareDatabase { try $0.execute(sql: "PRAGMA locking_mode=EXCLUSIVE") } }
    configure(&configuration)
    return try DatabaseQueue(path: path, configuration: configuration)
  }
}

/// Translates SQLite's errors.
extension DrydockError {
  /// The error for a call on a database that failed.
  package static func database(_ action: String, _ path: String, _ error: DatabaseError) -> Self {
    let code: Code =
      switch error.resultCode {
      case .SQLITE_BUSY, .SQLITE_LOCKED: .inUse
      case .SQLITE_FULL: .noSpace
      case .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_CANTOPEN: .permission
      case .SQLITE_NOTADB, .SQLITE_CORRUPT: .malformed
      default: .io
      }
    return Self(code, "\(action): \(error.plainMessage)", path: path, cause: error)
  }
}

extension DatabaseError {
  /// SQLite's message without the statement's arguments, which may be anybody's data.
  package var plainMessage: String {
    guard let message else { return "SQLite error \(resultCode.rawValue)" }
    if message.hasPrefix(Self.noFunction) {
      return Self.unknownFunction(String(message.dropFirst(Self.noFunction.count)))
    }
    return Self.quoting.first(where: message.hasPrefix) ?? message
  }

  private static let noFunction = "no such function: "

  /// The message about a function that SQLite does not have, with what to do about it.
  package static func unknownFunction(_ name: String) -> String {
    noFunction + name
      + "; when it is the app's own, name in drydock.yaml what it does: `functions: {\(name): WORD}`, where WORD is one of \(SQLFunction.names.joined(separator: ", "))"
  }

  /// After these words SQLite quotes what it was given, which may be the value of a row.
  private static let quoting = [
    "bad JSON path", "JSON path error", "malformed MATCH expression", "fts5: syntax error",
  ]

  /// Whether the disk refused, full or failing: then the SQL is not at fault.
  package var isAboutTheDisk: Bool { resultCode == .SQLITE_FULL || resultCode == .SQLITE_IOERR }

  /// Whether it is no database to SQLite: encrypted or damaged.
  var meansUnreadable: Bool { resultCode == .SQLITE_NOTADB || resultCode == .SQLITE_CORRUPT }
}
