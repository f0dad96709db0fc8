import AppContainer

/// The ways of a migration of another tool, as its file says them. Lines keep their numbers.
struct ToolScript {
  private(set) var up: SQLScript
  private(set) var down: SQLScript?
  private(set) var upInTransaction = true
  private(set) var downInTransaction = true

  init(_ format: MigrationTool.Format, ways: [ToolFile.Way: String], _ files: MigrationFiles) throws {
    func script(_ way: ToolFile.Way) throws -> SQLScript? {
      guard let name = ways[way] else { return nil }
      let file = files.display(name)
      guard let text = MigrationFiles.text(files.contents[name] ?? []) else {
        throw YAMLPosition(file: file, line: 1, column: 1).error("the file is not UTF-8")
      }
      return SQLScript(text: text, file: file, firstLine: 1)
    }
    let nothing = SQLScript(text: "", file: files.directory, firstLine: 1)
    up = try script(.whole) ?? script(.up) ?? nothing
    switch format {
    case .dbmate: try splitDbmate()
    case .goose: try splitGoose()
    case .golangMigrate:
      down = try script(.down)
      // With x-no-tx-wrap, which is no part of the files, they bring their own BEGIN and COMMIT.
      upInTransaction = !Self.beginsTransaction(up)
      downInTransaction = down.map { !Self.beginsTransaction($0) } ?? true
    case .sqldelight: break
    }
  }

  private static func beginsTransaction(_ script: SQLScript) -> Bool {
    script.statements().first.map { SQLWords($0.text).isAboutTransactions } ?? false
  }

  /// `-- migrate:up` and `-- migrate:down`, each once, at the start of a line, with options such as `transaction:false`.
  private mutating func splitDbmate() throws {
    var sections: [(way: String, options: String, line: Int)] = []
    let lines = Self.lines(of: up)
    for (index, line) in lines.enumerated() {
      guard let match = line.prefixMatch(of: #/--\s*migrate:(up|down)(\s.*)?$/#) else { continue }
      let way = String(match.1)
      if sections.contains(where: { $0.way == way }) {
        throw place(index).error("a second `-- migrate:\(way)`: dbmate fails at several sections in one file")
      }
      sections.append((way, String(match.2 ?? ""), index))
    }
    guard let first = sections.first, first.way == "up" else {
      throw place(0).error("dbmate wants `-- migrate:up` first")
    }
    guard sections.count == 2 else { throw place(0).error("dbmate wants `-- migrate:down`, too") }
    try refuseStatements(in: lines[..<first.line], "stand before `-- migrate:up`")
    upInTransaction = !Self.isWithoutTransaction(first.options)
    downInTransaction = !Self.isWithoutTransaction(sections[1].options)
    let whole = up
    up = Self.part(of: whole, lines, from: first.line + 1, to: sections[1].line)
    down = Self.part(of: whole, lines, from: sections[1].line + 1, to: lines.count)
  }

  private static func isWithoutTransaction(_ options: String) -> Bool {
    options.split(whereSeparator: \.isWhitespace).last { $0.hasPrefix("transaction:") } == "transaction:false"
  }

  /// `-- +goose Up` and, maybe, `-- +goose Down`; what else goose says in comments SQLite's own parser needs not.
  private mutating func splitGoose() throws {
    var (start, turn): (Int?, Int?) = (nil, nil)
    let lines = Self.lines(of: up)
    for (index, line) in lines.enumerated() where line.hasPrefix("--") {
      let words = line.dropFirst(2).split(whereSeparator: \.isWhitespace).map { $0.lowercased() }
      guard words.first == "+goose" else { continue }
      switch words.dropFirst().joined(separator: " ") {
      case "up":
        if start != nil { throw place(index).error("a second `-- +goose Up`") }
        start = index
      case "down":
        guard start != nil, turn == nil else {
          throw place(index).error("`-- +goose Down` comes once, after `-- +goose Up`")
        }
        turn = index
      case "no transaction": (upInTransaction, downInTransaction) = (false, false)
      case "envsub on", "envsubst on":
        throw place(index).error(
          "goose puts variables of the environment into this file; Drydock does not, since it would run another "
            + "migration each time: write the values out")
      default: break
      }
    }
    guard let start else { throw place(0).error("goose wants a line `-- +goose Up`") }
    try refuseStatements(in: lines[..<start], "stand before `-- +goose Up`")
    let whole = up
    up = Self.part(of: whole, lines, from: start + 1, to: turn ?? lines.count)
    down = turn.map { Self.part(of: whole, lines, from: $0 + 1, to: lines.count) }
  }

  private func refuseStatements(in lines: ArraySlice<String>, _ what: String) throws {
    let head = SQLScript(text: lines.joined(separator: "\n"), file: up.file, firstLine: 1)
    if !head.isBlank { throw head.position(at: 0).error("statements \(what)") }
  }

  private func place(_ line: Int) -> YAMLPosition { YAMLPosition(file: up.file, line: line + 1, column: 1) }

  private static func lines(of script: SQLScript) -> [String] {
    script.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      String(decoding: $0.last == 0x0D ? $0.dropLast() : $0, as: UTF8.self)
    }
  }

  private static func part(of script: SQLScript, _ lines: [String], from: Int, to end: Int) -> SQLScript {
    SQLScript(
      text: lines[from..<end].joined(separator: "\n"), file: script.file, firstLine: script.firstLine + from)
  }
}
