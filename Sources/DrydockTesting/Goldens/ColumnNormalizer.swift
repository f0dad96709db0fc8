import GRDB

/// Which columns of a database are volatile, and their normalized values.
///
/// A volatile value that must be unique, or that rows refer to, is numbered in the order in which rows come that are
/// sorted by all else: constraints hold, references still lead to the same rows, and each run gives the same numbers.
struct ColumnNormalizer {
  struct Column: Hashable {
    fileprivate let table, column: String

    /// SQLite knows names without regard to case.
    fileprivate init(_ table: String, _ column: String) {
      (self.table, self.column) = (table.lowercased(), column.lowercased())
    }

    /// A column as `TABLE.COLUMN`; nil for any other text.
    init?(_ text: String) {
      let parts = text.split(separator: ".", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { return nil }
      self.init(parts[0], parts[1])
    }
  }

  private let values: ValueNormalizer
  private let volatile: Set<Column>
  private let encoding: DatabaseEncoding
  private var unique: Set<Column> = []
  private var references: [Column: Column] = [:]
  private let numbers = Numbers()

  /// The numbers that values have got, by the column that they come from.
  private final class Numbers {
    private(set) var known: [Column: [SQLValue: Int]] = [:]

    func number(of value: SQLValue, in column: Column) -> Int {
      if let number = known[column]?[value] { return number }
      let number = (known[column]?.count ?? 0) + 1
      known[column, default: [:]][value] = number
      return number
    }
  }

  init(_ values: ValueNormalizer, tables: [String], _ encoding: DatabaseEncoding, _ db: Database) throws {
    (self.values, self.encoding) = (values, encoding)
    volatile = Set(values.volatile.columns.compactMap { Column($0) })
    if volatile.isEmpty, !values.hasPatterns { return }
    for table in tables { try describe(table, db) }
  }

  private mutating func describe(_ table: String, _ db: Database) throws {
    let columns = try Row.fetchAll(
      db, sql: "SELECT name, pk, hidden FROM pragma_table_xinfo(?)", arguments: [table])
    let named = Set((columns.map { $0["name"] } + ["rowid"]).map { Column(table, $0) })
    let found = values.volatile.columns.filter { Column($0).map(named.contains) == true }
    values.found.add(found.map(VolatileValues.name(column:)))
    for column in columns where column["pk"] as Int > 0 { unique.insert(Column(table, column["name"])) }
    let computed = Set(columns.filter { $0["hidden"] as Int > 1 }.map { $0["name"] as String })
    let indexed = try Row.fetchAll(
      db,
      sql: """
        SELECT x.name AS name FROM pragma_index_list(?) l, pragma_index_xinfo(l.name) x WHERE l."unique" AND x.key
        """, arguments: [table])
    for row in indexed {
      if let name: String = row["name"], !computed.contains(name) {
        unique.insert(Column(table, name))
      } else {
        // An expression, which may be made of any of them.
        for column in columns { unique.insert(Column(table, column["name"])) }
      }
    }
    for key in try ForeignKey.of(table, in: db) {
      for (child, parent) in zip(key.columns, key.parentColumns) {
        references[Column(table, child)] = Column(key.parent, parent)
      }
    }
  }

  /// Whether anything may have to be replaced in a table.
  func mayChange(_ table: SQLTable) -> Bool {
    values.hasPatterns || table.columns.contains { volatile.contains(Column(table.name, $0)) }
  }

  func hasVolatileRowid(_ table: SQLTable) -> Bool {
    table.hasRowid && ["rowid", table.columns[0]].contains { volatile.contains(Column(table.name, $0)) }
  }

  /// The tables that a table's volatile columns refer to.
  func parents(of table: SQLTable) -> Set<String> {
    Set(table.columns.compactMap { references[Column(table.name, $0)]?.table })
  }

  /// The columns of other rows that refer to a table's volatile columns, and which of its columns each refers to.
  func referring(to table: SQLTable) -> [(table: String, column: String, to: Int)] {
    let found = references.flatMap { child, parent in
      table.columns.indices.filter { Column(table.name, table.columns[$0]) == parent && isReplaced(parent) }
        .map { (child.table, child.column, $0) }
    }
    return found.sorted { $0 < $1 }
  }

  /// A row without its volatile values.
  func mark(of row: [SQLValue], in table: SQLTable) -> String {
    let columns = shown(row, table, table.columns.map { _ in nil }) { _, _ in nil }
    return "\(table.name) \(columns.map { $0.literal(encoding) })"
  }

  /// The numbers that the values of a column have got, or 0.
  func count(_ table: String, _ column: String) -> Int { numbers.known[Column(table, column)]?.count ?? 0 }

  /// The rows as the golden has them, in its order, and whether any of them changed.
  ///
  /// - Parameter marks: Distinguishes rows that are equal but for volatile values; for each row.
  func replaced(
    _ rows: [[SQLValue]], of table: SQLTable, marks: [String]
  ) -> (rows: [[SQLValue]], isChanged: Bool) {
    let groups = table.columns.map { group(of: Column(table.name, $0)) }
    // Sorted by what is the same in each run: by numbers only where they are known from a table that is referred to.
    let sorted = zip(rows, marks).map { row, mark in
      (row, keys: shown(row, table, groups) { numbers.known[$1]?[$0] }, mark: mark)
    }.sorted {
      $0.keys == $1.keys ? $0.mark < $1.mark : Self.precedes($0.keys, $1.keys, table.order)
    }
    // A row's own value has its number before another row refers to it.
    for index in table.columns.indices {
      let column = Column(table.name, table.columns[index])
      guard groups[index] == column, volatile.contains(column) else { continue }
      for (row, _, _) in sorted where row[index].kind != .null {
        _ = numbers.number(of: row[index], in: column)
      }
    }
    var isChanged = false
    let result = sorted.map { row, _, _ in
      let replaced = shown(row, table, groups) { numbers.number(of: $0, in: $1) }
      if replaced != row { isChanged = true }
      return replaced
    }
    return (result, isChanged)
  }

  private static func precedes(_ left: [SQLValue], _ right: [SQLValue], _ order: [Int]) -> Bool {
    for column in order where left[column] != right[column] { return left[column] < right[column] }
    return left.lexicographicallyPrecedes(right)
  }

  /// The column whose numbers the values of a column have; nil when they have none.
  private func group(of column: Column) -> Column? {
    var column = column
    var seen: Set<Column> = []
    while let parent = references[column], isReplaced(parent), seen.insert(column).inserted {
      column = parent
    }
    return unique.contains(column) || !seen.isEmpty ? column : nil
  }

  private func isReplaced(_ column: Column) -> Bool { volatile.contains(column) || values.hasPatterns }

  private func shown(
    _ row: [SQLValue], _ table: SQLTable, _ groups: [Column?], _ number: (SQLValue, Column) -> Int?
  ) -> [SQLValue] {
    row.indices.map { index in
      let value = row[index]
      func numbered(_ value: SQLValue) -> Int? {
        if let group = groups[index] { number(value, group) } else { nil }
      }
      if volatile.contains(Column(table.name, table.columns[index])) {
        return placeholder(value, value.kind == .null ? nil : numbered(value))
      }
      guard values.hasPatterns, let text = value.text(encoding) else { return value }
      let replaced = values.text(text) { Self.word(numbered(SQLValue(text: $0, encoding))) }
      return replaced.utf8.elementsEqual(text.utf8) ? value : SQLValue(text: replaced, encoding)
    }
  }

  private static func word(_ number: Int?) -> String {
    number.map { "(volatile \($0))" } ?? ValueNormalizer.word
  }

  private func placeholder(_ value: SQLValue, _ number: Int?) -> SQLValue {
    switch value.kind {
    case .null: value
    case .number: SQLValue(number: value.integer != nil ? "\(number ?? 0)" : "\(number ?? 0).0")
    case .text: SQLValue(text: Self.word(number), encoding)
    case .blob: SQLValue(blob: number.map { Self.bytes(of: $0) } ?? [])
    }
  }

  /// The bytes of a number, without leading zeros.
  private static func bytes(of number: Int) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0.drop { $0 == 0 }) }
  }
}
