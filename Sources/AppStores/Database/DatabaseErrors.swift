import DrydockErrors
import GRDB
import GRDBSQLite
import SystemPackage

extension DrydockError {
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
  /// Opens the database at a path. An object of its schema that this SQLite cannot parse is named, with the version of
  /// SQLite that wrote the file: a newer one knows more.
  package static func namingObject<T>(in path: String, _ open: () throws -> T) throws -> T {
    do { return try open() } catch let error as DatabaseError {
      guard let match = error.message?.wholeMatch(of: #/malformed database schema \((.*)\) - (.*)/#),
        let writer = try? version(in: path)
      else { throw error }
      let (own, name) = (Int(sqlite3_libversion_number()), String(cString: sqlite3_libversion()))
      let advice = writer > own ? "which is newer: use a Drydock with it" : "so that the schema is corrupt"
      throw DatabaseError(
        resultCode: error.resultCode,
        message:
          "SQLite \(name) cannot read `\(match.1)` of the schema (\(match.2)); the file was last written by SQLite "
          + "\(writer / 1_000_000).\(writer / 1000 % 1000).\(writer % 1000), \(advice)")
    }
  }

  /// The version of SQLite that wrote a file last, as 3,045,001: a number in its header.
  private static func version(in path: String) throws -> Int {
    let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    return try file.closeAfter {
      var bytes = [UInt8](repeating: 0, count: 4)
      _ = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 96, into: $0) }
      return bytes.reduce(0) { $0 << 8 | Int($1) }
    }
  }

  /// SQLite's message without values, which may be user data.
  package var plainMessage: String {
    guard let message else { return "SQLite error \(resultCode.rawValue)" }
    // In statements, and in the schema.
    if let match = message.wholeMatch(of: #/no such function: (.*)|unknown function: (.*)\(\)/#) {
      return Self.unknownFunction(String(match.1 ?? match.2 ?? ""))
    }
    if let match = message.wholeMatch(of: #/no such collation sequence: (.*)/#) {
      return
        "\(message); if the app defines it, declare its order in drydock.yaml: `collations: {\(match.1): WORD}`, where WORD is "
        + "one of " + SQLCollation.allCases.map(\.rawValue).joined(separator: ", ")
    }
    return Self.quoting.first(where: message.hasPrefix) ?? message
  }

  /// The message about an unknown function, with what to do.
  package static func unknownFunction(_ name: String) -> String {
    "no such function: \(name); if the app defines it, map it in drydock.yaml: `functions: {\(name): WORD}`, where WORD is "
      + "one of "
      + SQLFunction.names.joined(separator: ", ")
  }

  /// After these words SQLite quotes its input, which may be the value of a row.
  private static let quoting = [
    "bad JSON path", "JSON path error", "malformed MATCH expression", "fts5: syntax error",
  ]

  /// Whether the disk is full or failing, rather than the SQL wrong.
  package var isAboutTheDisk: Bool { resultCode == .SQLITE_FULL || resultCode == .SQLITE_IOERR }

  /// Whether SQLite cannot read the database: encrypted or corrupt.
  var meansUnreadable: Bool { resultCode == .SQLITE_NOTADB || resultCode == .SQLITE_CORRUPT }
}
