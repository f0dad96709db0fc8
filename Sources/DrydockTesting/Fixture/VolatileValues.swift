import AppContainer
import DrydockErrors
import FileSystem
import Formats
import Foundation
import Synchronization

/// What differs in each run, such as the time of the installation or a random id: goldens hold a word in its
/// place.
package struct VolatileValues: Sendable, Equatable {
  /// Keys of settings, at any depth.
  package var settings: Set<String> = []
  /// Columns of databases as `TABLE.COLUMN`, in every table of that name; `rowid` names the rowids of a table without a
  /// key.
  package var columns: Set<String> = []
  /// Files of which only the path counts, and directories whose content does not.
  package var files: PatternList = []
  /// Regular expressions: what matches, in any text of settings, databases and vault items, is not compared.
  package var patterns: [String] = []
  /// Whether the order of a table's columns is compared: SQL that adds a column puts it behind the others.
  package var comparesColumnOrder = false

  package init() {}

  init(_ node: YAMLNode?) throws {
    guard let node else { return }
    let reader = try YAMLReader(
      node, what: "volatile", keys: ["settings", "columns", "files", "patterns", "column-order"])
    settings = Set(try reader.texts("settings") ?? [])
    files = PatternList(try reader.texts("files") ?? [])
    patterns = try reader.texts("patterns") ?? []
    comparesColumnOrder = try reader.boolean("column-order") == false
    do {
      _ = try patterns.map(ValueNormalizer.expression)
    } catch let error as DrydockError {
      throw (reader["patterns"]?.position ?? reader.position).error(error.message, cause: error)
    }
    columns = Set(try reader["columns"]?.texts("`columns`") ?? [])
    if let text = columns.sorted().first(where: { ColumnNormalizer.Column($0) == nil }) {
      throw reader.position.error("`\(text)` in `columns` is not TABLE.COLUMN")
    }
  }

  /// The settings, columns and files that it names, in words.
  var names: Set<String> {
    Set(
      settings.map(Self.name(setting:)) + columns.map(Self.name(column:)) + files.texts.map(Self.name(file:)))
  }

  static func name(setting: String) -> String { "the setting `\(setting)`" }
  static func name(column: String) -> String { "the column `\(column)`" }
  static func name(file: String) -> String { "the file `\(file)`" }

  /// These and others: what a fixture says besides what holds for all.
  func adding(_ other: VolatileValues) -> VolatileValues {
    var result = self
    result.settings.formUnion(other.settings)
    result.columns.formUnion(other.columns)
    // The last pattern that matches decides.
    result.files = PatternList(files.texts + other.files.texts)
    result.patterns += other.patterns
    result.comparesColumnOrder = comparesColumnOrder || other.comparesColumnOrder
    return result
  }
}

/// Puts normalized values of the same type in the place of volatile ones.
struct ValueNormalizer {
  /// Replaces text, and in it what a pattern matches.
  static let word = "(volatile)"

  let volatile: VolatileValues
  /// The volatile names that were found so far.
  let found = FoundNames()
  private let patterns: [NSRegularExpression]

  final class FoundNames: Sendable {
    private let names = Mutex<Set<String>>([])

    var all: Set<String> { names.withLock { $0 } }

    func add(_ more: [String]) {
      if !more.isEmpty { names.withLock { $0.formUnion(more) } }
    }
  }

  /// - Throws: `DrydockError` with code `badFixture` for an invalid regular expression.
  init(_ volatile: VolatileValues) throws {
    self.volatile = volatile
    patterns = try volatile.patterns.map(Self.expression)
  }

  /// A pattern as the expression that it is; ICU's syntax.
  static func expression(_ pattern: String) throws -> NSRegularExpression {
    do {
      return try NSRegularExpression(pattern: pattern)
    } catch {
      throw DrydockError(.badFixture, "`\(pattern)` in `patterns` is not a regular expression", cause: error)
    }
  }

  var isNothing: Bool {
    var values = volatile
    values.comparesColumnOrder = false
    return values == VolatileValues()
  }

  /// Whether text may have to be replaced in any place.
  var hasPatterns: Bool { !patterns.isEmpty }

  /// Text with a word in place of what the patterns match; the same text where none does.
  ///
  /// - Parameter replacement: Gives the word for what was matched.
  func text(_ text: String, _ replacement: (String) -> String = { _ in word }) -> String {
    patterns.reduce(text) { text, pattern in
      let range = NSRange(text.startIndex..., in: text)
      // A match of nothing has nothing to replace.
      let matches = pattern.matches(in: text, range: range).filter { $0.range.length > 0 }
      if matches.isEmpty { return text }
      var result = ""
      var end = text.startIndex
      for match in matches {
        guard let found = Range(match.range, in: text) else { continue }
        result += text[end..<found.lowerBound] + replacement(String(text[found]))
        end = found.upperBound
      }
      return result + text[end...]
    }
  }

  // MARK: Settings

  /// Settings with normalized values under volatile keys, at any depth, and normalized words in keys that a pattern
  /// matches.
  func settings(_ values: PropertyListDictionary) -> PropertyListDictionary {
    if volatile.settings.isEmpty, !hasPatterns { return values }
    let replaced = values.map { key, value in
      (
        key: text(key),
        value: isVolatile(setting: key) ? Self.placeholder(value) : settings(value)
      )
    }
    // Keys that are alike now are numbered by what is under them.
    return Dictionary(grouping: replaced) { ExactText($0.key) }.values.reduce(into: [:]) { result, pairs in
      let sorted = pairs.map { (pair: $0, text: $0.value.description) }.sorted { $0.text < $1.text }
      for (index, entry) in sorted.enumerated() {
        result[index == 0 ? entry.pair.key : "\(entry.pair.key) \(index + 1)"] = entry.pair.value
      }
    }
  }

  func isVolatile(setting key: String) -> Bool {
    guard volatile.settings.containsExactly(key) else { return false }
    found.add([VolatileValues.name(setting: key)])
    return true
  }

  private func settings(_ value: PropertyListValue) -> PropertyListValue {
    switch value {
    case .string(let string): .string(text(string))
    case .array(let values): .array(values.map(settings))
    case .set(let values): .set(StringSet(values.strings.map { text($0) }))
    case .dictionary(let values): .dictionary(settings(values))
    default: value
    }
  }

  private static func placeholder(_ value: PropertyListValue) -> PropertyListValue {
    switch value {
    case .string: .string(word)
    case .boolean: .boolean(false)
    case .integer, .unsigned: .integer(0)
    case .real, .single: .real(0)
    case .int: .int(0)
    case .long: .long(0)
    case .set: .set([])
    case .date: .date(Date(timeIntervalSinceReferenceDate: 0))
    case .data, .unknown: .data([])
    case .array: .array([])
    case .dictionary: .dictionary([:])
    }
  }

  // MARK: Files

  /// Whether only the path of a file or directory counts, since its content differs in each run.
  func isVolatile(_ path: ContainerPath, isDirectory: Bool) -> Bool {
    found.add(volatile.files.texts(matching: path, isDirectory: isDirectory).map(VolatileValues.name(file:)))
    return volatile.files.contains(path, isDirectory: isDirectory)
  }
}
