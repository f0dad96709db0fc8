import AppStores
import DrydockErrors
import Formats

/// One SQL expression of a migration, and where it is written.
struct SQLExpression: ArgumentValue {
  let sql: String
  let position: YAMLPosition

  init(_ node: YAMLNode, _ what: String) throws {
    sql = try node.text(what)
    position = node.position
    if SQLToken.all(in: sql).isEmpty { throw position.error("\(what) is empty: write a SQL expression") }
  }

  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws { try self.init(node, "`\(name)`") }

  /// The names of the parameters, without the colon.
  ///
  /// - Throws: `DrydockError` with the place of an expression that SQLite does not accept, or that gives another value
  ///   in each run.
  func parameters(in database: ExpressionDatabase) throws -> [String] {
    try requireSameInEachRun()
    do {
      return try database.parameters(of: sql)
    } catch let failure as ExpressionFailure {
      throw error(failure.message)
    }
  }

  /// What it gives for a step; nil when that is NULL, and no failure.
  ///
  /// - Parameter what: what gets the value, for messages.
  func value(
    in database: ExpressionDatabase, for what: String, _ ifNull: Unmapped,
    _ parameter: (String) throws -> SQLiteValue
  ) throws -> SQLiteValue? {
    do {
      let value = try database.value(of: sql, parameter)
      if value != .null { return value }
    } catch let problem as ExpressionFailure {
      throw failure(what, problem.message)
    }
    if ifNull != .fail { return nil }
    throw failure(what, "the expression gives NULL: say `if-null: keep` or `if-null: delete`")
  }

  func failure(_ what: String, _ reason: String) -> StepFailure {
    StepFailure("\(position): \(what) cannot be computed: \(reason)")
  }

  /// - Throws: `DrydockError` for one that depends on the time.
  func requireSameInEachRun() throws {
    guard readsClock else { return }
    throw error(
      "it depends on the current time or on the machine's time zone, so that a dry run or a golden could not show its "
        + "value: write a fixed time, or set the value in a `sql` step")
  }

  private func error(_ message: String) -> DrydockError {
    DrydockError(.sql, "\(position): the expression is not valid: \(message)")
  }

  /// Whether a function for dates gets no time, which means the current one, or `now`, `localtime` or `utc`. Time itself
  /// is not a function that SQLite could refuse.
  private var readsClock: Bool {
    let tokens = SQLToken.all(in: sql)
    return tokens.indices.contains { index in
      let name = tokens[index].text.lowercased()
      guard Self.dateFunctions.contains(name), index + 1 < tokens.count, tokens[index + 1].isSign("(") else {
        return false
      }
      let depth = tokens[index + 1].depth + 1
      let arguments = tokens[(index + 2)...].prefix { !($0.isSign(")") && $0.depth == depth) }
      let commas = arguments.count { $0.isSign(",") && $0.depth == depth }
      let times = arguments.isEmpty ? 0 : name == "strftime" ? commas : commas + 1
      return times == 0
        || arguments.contains { $0.kind == .string && Self.clockWords.contains($0.text.lowercased()) }
    }
  }

  private static let dateFunctions: Set = ["date", "time", "datetime", "julianday", "unixepoch", "strftime"]
  private static let clockWords: Set = ["now", "localtime", "utc"]
}

/// The argument `parameters`: the values of parameters whose names do not say them.
struct ExpressionParameters: Sendable {
  private let nodes: [(name: String, position: YAMLPosition, value: YAMLNode)]

  /// - Parameter known: the names that have a meaning already.
  init(_ node: YAMLNode?, known: Set<String> = []) throws {
    nodes = try (node?.pairs("`parameters`").pairs ?? []).map { pair in
      let name = try pair.textKey("a parameter's name")
      if known.contains(name) {
        throw pair.keyPosition.error("`:\(name)` has a meaning already: choose another name")
      }
      return (name, pair.keyPosition, pair.value)
    }
  }

  /// The value of each parameter, by name.
  func map<Meaning>(_ meaning: (String, YAMLNode) throws -> Meaning) throws -> [String: Meaning] {
    try Dictionary(nodes.map { ($0.name, try meaning($0.name, $0.value)) }) { first, _ in first }
  }

  /// Checks the expressions that use them.
  ///
  /// - Throws: `DrydockError` with the place of an expression that is not valid, or of a parameter that none uses.
  func check(_ expressions: [SQLExpression], in database: ExpressionDatabase) throws {
    let used = Set(try expressions.flatMap { try $0.parameters(in: database) })
    for node in nodes where !used.contains(node.name) {
      throw node.position.error(
        "no expression has the parameter `:\(node.name)`; "
          + NearestWord.hint(for: node.name, among: Array(used)))
    }
  }
}
