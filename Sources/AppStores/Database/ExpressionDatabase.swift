import Cryptography
import Foundation
import GRDB
import GRDBSQLite

/// A value of SQLite. Text and data may be secrets: their memory is wiped when it is freed.
package enum SQLiteValue: Sendable, Equatable {
  case null
  case integer(Int64)
  case real(Double)
  /// UTF-8, as SQLite has it: nothing has checked that it is.
  case text(SecretBytes)
  case blob(SecretBytes)
}

/// Why SQLite does not accept or evaluate an expression. The message has parts of the expression, and never a value.
package struct ExpressionFailure: Error {
  package let message: String

  init(_ message: String) { self.message = message }
}

/// Evaluates SQL expressions in a database in memory that has no tables. They call functions, and read neither files nor
/// the clock; one that runs for too long or takes too much memory is ended.
package final class ExpressionDatabase {
  /// The largest text or blob, in bytes.
  private static let largestValue = 32 << 20
  /// More text than this is a pattern that takes too long.
  private static let longestPattern = 1000
  /// The steps of SQLite's virtual machine. The same expression on the same values always takes the same number.
  private static let stepLimit = 20_000_000
  private static let stepsAtOnce = 100
  /// Seconds of processor time: a step that copies a large value takes milliseconds.
  private static let secondLimit: Int64 = 30
  /// Bytes beyond those that SQLite had before. It counts those of the whole process: what another thread frees hides
  /// as much of what the expression takes.
  private static let memoryLimit: Int64 = 256 << 20
  private static let readableTables: Set = ["json_each", "json_tree"]
  private static let changingFunctions: Set = [
    "random", "randomblob", "current_timestamp", "current_date", "current_time",
  ]

  private let queue: DatabaseQueue
  /// SQLite's functions that give another value each time, and the app's.
  private let changing: Set<String>
  /// Why the last expression was refused or ended.
  private var problem: String?
  private var steps = 0
  private var memory: Int64 = 0
  private var start: Int64 = 0

  package init(_ definitions: AppDefinedSQL) throws {
    queue = try DatabaseQueue()
    changing = Self.changingFunctions.union(
      definitions.functions.filter { $0.value == .uuid }.map { $0.key.lowercased() })
    try queue.writeWithoutTransaction { db in
      definitions.define(in: db)
      // What does not fit the cache would go to a file otherwise.
      try db.execute(sql: "PRAGMA temp_store=MEMORY")
      // The first use of these tables changes the schema, which is refused from now on.
      try db.execute(sql: "SELECT count(*) FROM json_each('[]'), json_tree('[]')")
      let connection = db.sqliteConnection
      sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, Int32(Self.largestValue))
      sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, Int32(Self.longestPattern))
      sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0)
      watch(connection)
    }
  }

  /// The names of an expression's parameters, without the colon.
  ///
  /// - Throws: ``ExpressionFailure`` for an expression that SQLite does not accept.
  package func parameters(of expression: String) throws -> [String] {
    try compiling(expression) { _, parameters in parameters }
  }

  /// The value of an expression.
  ///
  /// - Parameter parameter: the value of a parameter, by its name without the colon.
  /// - Throws: ``ExpressionFailure``, and what `parameter` throws.
  package func value(
    of expression: String, _ parameter: (String) throws -> SQLiteValue
  ) throws -> SQLiteValue {
    try compiling(expression) { statement, parameters in
      // SQLite reads text and data where they are, so that it has no copy of a secret parameter.
      let values = try parameters.map(parameter)
      return try withExtendedLifetime(values) { try evaluate(statement, values) }
    }
  }
}

// MARK: What an expression may do

extension ExpressionDatabase {
  private func watch(_ connection: OpaquePointer?) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    sqlite3_set_authorizer(
      connection,
      { context, action, first, second, _, _ in
        guard let context else { return SQLITE_DENY }
        return Unmanaged<ExpressionDatabase>.fromOpaque(context).takeUnretainedValue().decide(
          action, first.map { String(cString: $0) }, second.map { String(cString: $0) })
      }, context)
    sqlite3_progress_handler(
      connection, Int32(Self.stepsAtOnce),
      { context in
        guard let context else { return 1 }
        return Unmanaged<ExpressionDatabase>.fromOpaque(context).takeUnretainedValue().mayContinue() ? 0 : 1
      }, context)
  }

  private func begin() {
    (problem, steps, memory, start) = (nil, 0, sqlite3_memory_used(), Self.processorSeconds)
  }

  /// Of this thread.
  private static var processorSeconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec)
  }

  private func mayContinue() -> Bool {
    steps += Self.stepsAtOnce
    if steps > Self.stepLimit {
      problem = "it does not end within \(Self.stepLimit) steps"
    } else if sqlite3_memory_used() - memory > Self.memoryLimit {
      problem = "it takes more than \(Self.memoryLimit >> 20) MiB of memory"
    } else if Self.processorSeconds - start > Self.secondLimit {
      problem = "it takes more than \(Self.secondLimit) seconds of processor time"
    }
    return problem == nil
  }

  private func decide(_ action: Int32, _ first: String?, _ second: String?) -> Int32 {
    switch action {
    case SQLITE_SELECT, SQLITE_RECURSIVE: return SQLITE_OK
    case SQLITE_FUNCTION:
      let name = (second ?? "").lowercased()
      if changing.contains(name) {
        problem =
          "\(name) gives another value in each run, so that a dry run or a golden could not show it"
      } else if name == "load_extension" || name == "fts3_tokenizer" {
        problem = "\(name) is not for expressions"
      } else {
        return SQLITE_OK
      }
    case SQLITE_READ:
      // Without a column it is a subquery of which only the rows count.
      let table = (first ?? "").lowercased()
      if second?.isEmpty != false || Self.readableTables.contains(table) { return SQLITE_OK }
      problem = "it reads the table \(table), and an expression has no tables"
    default: problem = "it is more than an expression"
    }
    return SQLITE_DENY
  }
}

// MARK: Statements

extension ExpressionDatabase {
  /// Calls a body with an expression as SQLite has compiled it, and the names of its parameters.
  private func compiling<Result>(
    _ expression: String, _ body: (OpaquePointer, [String]) throws -> Result
  ) throws -> Result {
    guard !expression.utf8.contains(0) else {
      throw ExpressionFailure("a NUL character is not SQL: remove it")
    }
    return try queue.writeWithoutTransaction { db in
      begin()
      var compiled: OpaquePointer?
      defer { sqlite3_finalize(compiled) }
      // The line end ends a comment in the expression.
      var isWhole = false
      let code = "SELECT (\n\(expression)\n)".withCString { text in
        var rest: UnsafePointer<CChar>?
        let code = sqlite3_prepare_v2(db.sqliteConnection, text, -1, &compiled, &rest)
        isWhole = rest?.pointee == 0
        return code
      }
      guard code == SQLITE_OK, let compiled else {
        throw ExpressionFailure(problem ?? Self.message(of: db.sqliteConnection))
      }
      guard isWhole else { throw ExpressionFailure("a semicolon ends it: write one expression") }
      guard sqlite3_column_count(compiled) == 1 else {
        throw ExpressionFailure("these are \(sqlite3_column_count(compiled)) expressions: write one")
      }
      let parameters = try (0..<sqlite3_bind_parameter_count(compiled)).map { index in
        let name = sqlite3_bind_parameter_name(compiled, index + 1).map { String(cString: $0) } ?? "?"
        guard name.hasPrefix(":") else {
          throw ExpressionFailure("the parameter `\(name)` has no name: write one such as `:user_name`")
        }
        return String(name.dropFirst())
      }
      return try body(compiled, parameters)
    }
  }

  /// The message about an expression that cannot be compiled, which has nothing but parts of it.
  private static func message(of connection: OpaquePointer?) -> String {
    let error = DatabaseError(message: String(cString: sqlite3_errmsg(connection)))
    let message = error.plainMessage
    return message.hasPrefix("no such column: ")
      ? message + "; a parameter starts with a colon, and text is in single quotes" : message
  }

  /// - Parameter values: of the parameters, alive until this returns.
  private func evaluate(_ statement: OpaquePointer, _ values: [SQLiteValue]) throws -> SQLiteValue {
    for (index, value) in values.enumerated() { try bind(value, to: statement, at: Int32(index + 1)) }
    begin()
    var code = sqlite3_step(statement)
    guard code == SQLITE_ROW else { throw failure(code, statement) }
    let result = value(of: statement)
    code = sqlite3_step(statement)
    if code == SQLITE_ROW { throw ExpressionFailure("it gives more than one value") }
    if code != SQLITE_DONE { throw failure(code, statement) }
    return result
  }

  private func bind(_ value: SQLiteValue, to statement: OpaquePointer, at index: Int32) throws {
    let code: Int32 =
      switch value {
      case .null: sqlite3_bind_null(statement, index)
      case .integer(let number): sqlite3_bind_int64(statement, index, number)
      case .real(let number): sqlite3_bind_double(statement, index, number)
      case .text(let bytes):
        bytes.withBytes {
          sqlite3_bind_text64(
            statement, index, $0.baseAddress?.assumingMemoryBound(to: CChar.self), UInt64($0.count), nil,
            UInt8(SQLITE_UTF8))
        }
      case .blob(let bytes):
        bytes.withBytes { sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), nil) }
      }
    if code != SQLITE_OK { throw failure(code, statement) }
  }

  private func value(of statement: OpaquePointer) -> SQLiteValue {
    func bytes(_ start: UnsafeRawPointer?) -> SecretBytes {
      let count = Int(sqlite3_column_bytes(statement, 0))
      return SecretBytes(copying: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }
    switch sqlite3_column_type(statement, 0) {
    case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, 0))
    case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, 0))
    case SQLITE_TEXT: return .text(bytes(sqlite3_column_text(statement, 0).map { UnsafeRawPointer($0) }))
    case SQLITE_BLOB: return .blob(bytes(sqlite3_column_blob(statement, 0)))
    default: return .null
    }
  }

  /// SQLite's messages that have no values. All others may quote the value of a parameter.
  private static let plainMessages: Set = [
    "integer overflow", "malformed JSON", "JSON cannot hold BLOB values",
    "ESCAPE expression must be a single character",
    "LIKE or GLOB pattern too complex",
  ]

  private func failure(_ code: Int32, _ statement: OpaquePointer) -> ExpressionFailure {
    if let problem { return ExpressionFailure(problem) }
    switch code {
    case SQLITE_TOOBIG: return ExpressionFailure("a value in it is too large")
    case SQLITE_NOMEM: return ExpressionFailure("there is not enough memory")
    case SQLITE_DONE: return ExpressionFailure("it gives no value")
    default:
      let message = String(cString: sqlite3_errmsg(sqlite3_db_handle(statement)))
      if Self.plainMessages.contains(message) { return ExpressionFailure(message) }
      return ExpressionFailure("SQLite cannot evaluate it for these values (error \(code))")
    }
  }
}
