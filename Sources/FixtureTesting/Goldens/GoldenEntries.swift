import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

/// Takes the text of a golden apart into entries: settings, items of the vault, definitions and rows, paths.
struct GoldenEntryReader {
  /// The field that says what a path is.
  static let type = "type"
  /// The field with a file's digest.
  static let content = "content"
  /// The group of the values of a JSON document.
  static let document = "document"

  private let golden: Golden
  private let omitted: [ContainerPath]
  private let redactor: Redactor
  private let comparesColumnOrder: Bool
  private var entries: [GoldenEntry] = []

  init(
    _ golden: Golden, omitting omitted: [ContainerPath], _ redactor: Redactor, _ comparesColumnOrder: Bool
  ) {
    (self.golden, self.omitted, self.redactor) = (golden, omitted, redactor)
    self.comparesColumnOrder = comparesColumnOrder
  }

  mutating func read() throws -> [GoldenEntry] {
    let lines = golden.lines.filter { line in
      !omitted.contains { line.path == $0 || line.path.isInside($0) }
    }
    for line in lines where line.kind == .settings { readSettings(line.path) }
    for line in lines where line.kind == .vault { readVault(line.path) }
    let directory = try Directory(golden.directory)
    for line in lines where line.kind == .database {
      guard let file = try line.file else { continue }
      readDatabase(
        line.path, String(decoding: try directory.contents(file, limit: 1 << 30), as: UTF8.self), file)
    }
    for line in lines where line.kind == .file && !line.isVolatile { try readDocument(line.path) }
    for line in lines { readPath(line) }
    return entries
  }

  private mutating func add(
    _ id: [String], _ name: String, _ noun: String? = nil, at file: ContainerPath, _ line: Int? = nil,
    in group: [String]? = nil, whole: String? = nil, _ fields: [GoldenEntry.Field] = []
  ) {
    var entry = GoldenEntry(id, name, noun, at: file.description, line)
    (entry.group, entry.whole, entry.fields) = (group?.map { ExactText($0) }, whole, fields)
    entries.append(entry)
  }

  // MARK: Settings and the vault

  private mutating func readSettings(_ path: ContainerPath) {
    guard let settings = golden.settings[path] else { return }
    let file = [path.description, "settings"]
    add(file, path.description, at: Golden.defaults, settings.line)
    for (key, value) in settings.values.sorted() {
      let shown = redactor.shown(value, key: key)
      var field = GoldenEntry.Field(
        "value", GoldenYAML.text(value) ?? value.description, shown: shown, "the setting has another value")
      field.type = value.typeName
      add(
        file + [key], "\(path): \(redactor.shown(name: key))", "setting", at: Golden.defaults,
        settings.lines[ExactText(key)], whole: shown, [field])
    }
  }

  private mutating func readVault(_ path: ContainerPath) {
    guard let items = golden.items else { return }
    let vault = [path.description, "vault"]
    add(vault, path.description, at: Golden.vault)
    for (item, position) in items.map({ ($0.item, $0.position) }) {
      var fields = VaultAttribute.allCases.filter { !item.itemClass.identifying.contains($0) }.map {
        attribute in
        field(
          attribute.words, item[attribute],
          shown: item[attribute].map { redactor.shown(.string($0), key: "") })
      }
      fields.append(field("accessible", item.accessibility.rawValue, shown: item.accessibility.rawValue))
      fields.append(
        field("access control", item.accessControl?.description, shown: item.accessControl?.description))
      fields.append(
        field(
          "value", item.value.withBytes { GoldenYAML.data(Array($0)) },
          shown: redactor.shown(secret: item.value)))
      add(
        vault + Self.identity(of: item), "\(path): \(item.id)", "vault item", at: Golden.vault, position.line,
        fields)
    }
    func field(_ name: String, _ text: String?, shown: String?) -> GoldenEntry.Field {
      GoldenEntry.Field(name, text ?? "", shown: shown, "the vault item has another \(name)")
    }
  }

  private static func identity(of item: VaultItem) -> [String] {
    [item.itemClass.rawValue, "\(item.isSynchronizable)"]
      + VaultAttribute.allCases.filter(item.itemClass.identifying.contains).map { item[$0] ?? "" }
  }

  // MARK: Paths

  private mutating func readPath(_ line: GoldenLine) {
    guard line.kind != nil else { return }
    let words = line.words
    func field(_ name: String, _ text: String?, _ message: String) -> GoldenEntry.Field {
      GoldenEntry.Field(name, text ?? "", shown: text, message)
    }
    var fields = [field(Self.type, words, "the path is something else")]
    if !line.isVolatile {
      switch line.kind {
      case .link:
        let target = line.content.map(redactor.shown(message:))
        fields.append(.init("target", line.content ?? "", shown: target, "the link points elsewhere"))
      case .database where line.rawDigests != nil:
        fields.append(
          field(
            Self.content, line.content,
            "the database has other bytes and cannot be compared: SQLite cannot open it"))
      case .file, .vault:
        let isDigest = line.content.flatMap { SHA256.Digest(hex: $0) } != nil
        if isDigest { fields.append(field(Self.content, line.content, "the \(words) has other content")) }
      default: break
      }
      fields.append(field("mode", line.mode.map { String($0, radix: 8) }, "the \(words) has another mode"))
      fields.append(
        field("flags", line.flags.isEmpty ? "none" : line.flagText, "the \(words) has other flags"))
    }
    add([line.path.description], GoldenText.text(line.path), words, at: Golden.list, line.number, fields)
  }

  /// A document that both sides have is compared value by value, and else by its digest.
  private mutating func readDocument(_ path: ContainerPath) throws {
    guard let bytes = try golden.document(path) else { return }
    let (document, file) = ([path.description, Self.document], GoldenDocument.place(of: path))
    add(document, path.description, at: file)
    for leaf in try GoldenDocument.leaves(bytes, redactor) {
      var field = GoldenEntry.Field("value", leaf.text, shown: leaf.shown, "the value differs")
      field.type = leaf.type
      add(
        document + [leaf.pointer.description], "\(GoldenText.text(path)): \(leaf.pointer)", "value", at: file,
        leaf.line, in: document, whole: leaf.shown, [field])
    }
  }

  // MARK: Databases

  private mutating func readDatabase(_ path: ContainerPath, _ sql: String, _ file: ContainerPath) {
    let database = [path.description, "sql"]
    let place = GoldenText.text(path)
    add(database, place, at: file)
    var numbers = ["application_id": "0", "user_version": "0", "encoding": "UTF-8"]
    var lines: [String: Int] = [:]
    var keys: [String: [String]] = ["sqlite_sequence": ["name"]]
    var copies: [[String]: Int] = [:]
    for statement in SQLText(sql).statements {
      let tokens = statement.tokens
      if tokens[0].isWord("PRAGMA"), tokens.count > 3, numbers[tokens[1].content] != nil {
        numbers[tokens[1].content] = tokens[3...].map(\.content).joined()
        lines[tokens[1].content] = statement.line
      } else if tokens[0].isWord("CREATE") {
        if let table = readDefinition(statement, database, place, file) { keys[table.name] = table.key }
      } else if let row = RowSQL(tokens) {
        readRow(row, keys[row.table], statement.line, database, place, file, &copies)
      } else if !["PRAGMA", "BEGIN", "COMMIT", "DELETE"].contains(where: tokens[0].isWord) {
        add(
          database + ["statement", statement.source], place, "statement", at: file, statement.line,
          in: database)
      }
    }
    for (name, value) in numbers.sorted(by: { $0.key < $1.key }) {
      add(
        database + ["pragma", name], "\(place): \(name)", "number", at: file, lines[name], in: database,
        [.init("value", value, shown: value, "the value differs")])
    }
  }

  /// - Returns: the name and the key of a table.
  private mutating func readDefinition(
    _ statement: SQLText.Statement, _ database: [String], _ place: String, _ file: ContainerPath
  ) -> (name: String, key: [String])? {
    let modifiers = ["UNIQUE", "VIRTUAL", "TEMP", "TEMPORARY"]
    let words = statement.tokens.dropFirst().drop { word in modifiers.contains { word.isWord($0) } }
    guard let kind = words.first?.content.lowercased(), let name = words.dropFirst().first?.content else {
      return nil
    }
    let object = database + [kind, name]
    let source = statement.source.trimmingSpaces
    let shown = ShownSQL(source, redactor).text
    let table = kind == "table" ? TableSQL(statement.tokens) : nil
    // A column that SQL adds comes behind the others: the order counts only where the fixture says so.
    let text = comparesColumnOrder ? source : table?.unordered ?? source
    add(
      object, "\(place): \(kind) \(name)", kind, at: file, statement.line, in: database, whole: shown,
      [.init("definition", text, shown: shown, "the \(kind) definition differs")])
    guard let table else { return nil }
    for (column, definition) in table.isVirtual ? [] : table.columns {
      let text = definition.map(\.source).joined(separator: " ")
      let shown = text.isEmpty ? "(any type)" : ShownSQL(text, named: column, redactor).text
      add(
        object + ["column", column], "\(place): table \(name), column \(column)", "column", at: file,
        statement.line,
        in: object, whole: shown,
        [.init("definition", SQLText.words(definition), shown: shown, "the column definition differs")])
    }
    return (name, table.key)
  }

  private mutating func readRow(
    _ row: RowSQL, _ declared: [String]?, _ line: Int, _ database: [String], _ place: String,
    _ file: ContainerPath,
    _ copies: inout [[String]: Int]
  ) {
    let table = database + ["table", row.table]
    let named = (declared ?? []).map { $0.lowercased() }
    let key =
      row.hasRowid ? [0] : named.compactMap { name in row.columns.firstIndex { $0.lowercased() == name } }
    let isKeyed = !key.isEmpty
    let names = row.names(key: key)
    func shown(_ index: Int) -> String { row.values[index].shown(names[index], redactor) }
    var id = table + ["row"] + (isKeyed ? key : Array(row.columns.indices)).map { row.values[$0].text }
    // Equal rows without a key.
    let count = copies[id, default: 0]
    copies[id] = count + 1
    if count > 0 { id.append("\(count)") }
    let rest = row.columns.indices.filter { !key.contains($0) }
    let texts = rest.filter { !row.values[$0].isNull }.map { "\(row.columns[$0]) \(shown($0))" }
    let name = key.map { "\(row.columns[$0]) \(shown($0))" }.joined(separator: ", ")
    add(
      id, "\(place): \(row.table)" + (isKeyed ? ", \(name)" : ""), "row", at: file, line,
      in: row.table == "sqlite_sequence" ? database : table,
      whole: texts.isEmpty ? "the row" : texts.joined(separator: ", "),
      isKeyed
        ? rest.map {
          .init(row.columns[$0], row.values[$0].text, shown: shown($0), "the column has another value")
        } : [])
  }
}

/// `INSERT INTO "t" ("a", b) VALUES (1, 'x')`, as goldens have it.
private struct RowSQL {
  let table: String
  let columns: [String]
  let values: [Value]
  /// Whether the first column is the rowid: it is not quoted, as columns are.
  let hasRowid: Bool

  struct Value {
    let tokens: [SQLText.Token]
    var text: String { tokens.map(\.source).joined() }
    var isNull: Bool { tokens.first?.isWord("NULL") == true }
    /// A text, or a blob that is one.
    var content: String? {
      tokens.contains { $0.isWord("X") } ? nil : tokens.first { $0.kind == .text }?.content
    }

    /// The value for people; secrets are hidden by the column's name and by their form.
    func shown(_ name: SecretName, _ redactor: Redactor) -> String {
      if isNull { return "null" }
      if let content { return redactor.shown(.string(content), named: name) }
      if let digits = tokens.first(where: { $0.kind == .text })?.content {
        let length = digits.utf8.count / 2
        guard length > 0, name >= .code || name == .suspicious && length >= 8 else {
          return "blob (\(length) bytes)"
        }
        return redactor.secret("\(length) bytes", Array(digits.utf8).withUnsafeBytes { redactor.mark($0) })
      }
      if let number = Int64(text) { return redactor.shown(.integer(number), named: name) }
      guard let real = Double(text), SecretPattern.isSecret(.real(real), named: name) else { return text }
      return redactor.shown(.real(real), named: name)
    }
  }

  init?(_ tokens: [SQLText.Token]) {
    guard tokens.count > 3, tokens[0].isWord("INSERT"), tokens[1].isWord("INTO"), tokens[2].isName else {
      return nil
    }
    let (columns, end) = SQLText.list(tokens[3...])
    guard end < tokens.count, tokens[end].isWord("VALUES") else { return nil }
    let values = SQLText.list(tokens[(end + 1)...]).elements
    guard values.count == columns.count else { return nil }
    table = tokens[2].content
    self.columns = columns.map { $0.first?.content ?? "" }
    self.values = values.map(Value.init)
    hasRowid =
      columns[0].first.map { $0.kind == .word && ["rowid", "_rowid_", "oid"].contains($0.content) } ?? false
  }

  /// What the names of the table and of its columns, and the texts of the row, say about its values.
  func names(key: [Int]) -> [SecretName] {
    let names = RowNames(table: table, columns: columns).names(
      in: zip(columns, values).enumerated().map { ($1.0, $1.1.content, key.contains($0)) })
    return columns.map { names[$0] ?? .secret }
  }
}

extension GoldenLine {
  var words: String {
    switch kind {
    case .settings: "settings file"
    case .other: "special file"
    case nil: "path"
    case let kind?: kind.rawValue
    }
  }
}

extension String {
  fileprivate var trimmingSpaces: String {
    var text = drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }
}
