import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// The schema that SQLDelight creates in an empty database: the CREATE statements of its `.sq` files. Labelled statements are
/// queries, and INSERTs are rows.
struct SQLDelightSources {
  private var tables: [SQLScript] = []
  private var views: [SQLScript] = []
  /// Indexes and triggers, which need the others.
  private var others: [SQLScript] = []
  /// The databases of old versions, `N.db`, that SQLDelight verifies its migrations with.
  private(set) var databases: [(version: Int, path: String)] = []

  private static let sizeLimit = 4 << 20

  /// Reads a directory's `.sq` files at every depth.
  ///
  /// - Throws: ``DrydockError`` `catalog` when it has none with a CREATE statement.
  init(_ path: String) throws {
    let folder: Directory
    do { folder = try Directory(path) } catch let error as DrydockError where error.code == .notFound {
      throw DrydockError(.catalog, "the directory of SQLDelight's .sq files does not exist", path: path)
    }
    try folder.walk { entry in
      let name = entry.name.nameString
      if entry.status.type == .directory { return name.hasPrefix(".") ? .over : .into }
      guard entry.status.type == .file else { return .over }
      if name.hasSuffix(".sq") {
        add(try folder.contents(entry.path, limit: Self.sizeLimit), file: "\(path)/\(entry.path)")
      } else if name.hasSuffix(".db"), let version = Int(name.dropLast(3)), version > 0 {
        databases.append((version, "\(path)/\(entry.path)"))
      }
      return .over
    }
    databases.sort { $0.version < $1.version }
    if tables.isEmpty {
      throw DrydockError(
        .catalog, "no .sq file creates a table: name the directory of `.sq` files", path: path)
    }
  }

  private mutating func add(_ bytes: [UInt8], file: String) {
    let script = SQLScript(bytes: SQLDelightText.stripped(bytes), file: file, firstLine: 1)
    var places = SQLPlaces(script)
    var offset = 0
    while true {
      let start = script.word(from: offset)
      var tokens = SQLTokens(script.bytes, from: start)
      guard let first = tokens.next() else { return }
      if let second = tokens.next(), first.kind == .word, second.isSign("{") {
        offset = Self.end(of: &tokens) ?? script.bytes.count
        continue
      }
      guard let statement = script.statement(from: start) else { return }
      offset = statement.end
      guard statement.verb == "CREATE" else { continue }
      let words = SQLToken.all(in: statement.text).prefix(3).map { $0.text.uppercased() }
      let part = SQLScript(
        text: statement.text, file: file, firstLine: places.position(at: statement.offset).line)
      if words.contains("TABLE") {
        tables.append(part)
      } else if words.contains("VIEW") {
        views.append(part)
      } else {
        others.append(part)
      }
    }
  }

  /// Past the brace that closes a labelled group of statements.
  private static func end(of tokens: inout SQLTokens) -> Int? {
    var depth = 1
    while let token = tokens.next() {
      if token.isSign("{") { depth += 1 }
      if token.isSign("}") { depth -= 1 }
      if depth == 0 { return token.range.upperBound }
    }
    return nil
  }

  /// The database that the app creates, in memory.
  func fresh(_ configuration: ContainerConfiguration) throws -> DatabaseQueue {
    let queue = try DatabaseQueue.fresh(configuration)
    try queue.writeWithoutTransaction { db in
      for script in tables + views + others {
        try script.run(in: db) { StatementRules(source: $0, destructive: "the schema") }
      }
    }
    return queue
  }
}
