import DrydockErrors
import Yams

/// Text in, and Yams' errors out, with positions.
enum YAMLText {
  /// The text of a file, without a byte order mark.
  static func decode(_ bytes: [UInt8], file: String) throws -> String {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let content = bytes.starts(with: mark) ? Array(bytes.dropFirst(mark.count)) : bytes
    if let text = String(validating: content, as: UTF8.self) { return text }
    var decoder = UTF8()
    var iterator = content.makeIterator()
    var position = YAMLPosition(file: file, line: 1, column: 1)
    while case .scalarValue(let scalar) = decoder.decode(&iterator) {
      position = scalar == "\n" ? next(position) : advanced(position)
    }
    throw position.error("this byte is not UTF-8: save the file as UTF-8")
  }

  /// One of ours for one of Yams'.
  static func translate(_ error: YamlError, text: String, file: String) -> DrydockError {
    switch error {
    case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _):
      let position = YAMLPosition(file: file, line: mark.line, column: mark.column)
      if let tab = tab(in: text, line: mark.line) {
        let place = YAMLPosition(file: file, line: mark.line, column: tab)
        return place.error("a tab stands in the indentation, which YAML forbids: use spaces")
      }
      if problem.contains("Maximum nesting") { return position.error("nested too deeply to be read") }
      let note = context.map { " (\($0.text), from line \($0.mark.line))" } ?? ""
      return position.error("not valid YAML: \(problem)\(note)")
    case .composer(_, let problem, let mark, _):
      let position = YAMLPosition(file: file, line: mark.line, column: mark.column)
      if problem.contains("another document") {
        return position.error("a second document starts here: one file holds one document")
      }
      if problem.contains("undefined alias") {
        return position.error("this alias has no anchor before it (an anchor cannot hold itself)")
      }
      return position.error("not valid YAML: \(problem)")
    case .duplicatedKeysInMapping(let keys, let context):
      let position = YAMLPosition(file: file, line: context.mark.line, column: context.mark.column)
      let key = keys.first.map { "`\($0)`" } ?? "one"
      return position.error("the key \(key) is there twice in this mapping: keep one of them")
    case .reader(let problem, let offset, _, _):
      return position(ofCharacter: offset ?? 0, in: text, file: file).error("not valid YAML: \(problem)")
    case .memory:
      return start(of: file).error("nested too deeply to be read")
    default:
      return start(of: file).error("not valid YAML", cause: error)
    }
  }

  private static func start(of file: String) -> YAMLPosition { YAMLPosition(file: file, line: 1, column: 1) }

  private static func next(_ position: YAMLPosition) -> YAMLPosition {
    YAMLPosition(file: position.file, line: position.line + 1, column: 1)
  }

  private static func advanced(_ position: YAMLPosition) -> YAMLPosition {
    YAMLPosition(file: position.file, line: position.line, column: position.column + 1)
  }

  private static func position(ofCharacter offset: Int, in text: String, file: String) -> YAMLPosition {
    text.prefix(offset).reduce(start(of: file)) { $1.isNewline ? next($0) : advanced($0) }
  }

  /// The column of a tab in a line's indentation.
  private static func tab(in text: String, line: Int) -> Int? {
    let lines = text.split(maxSplits: line, omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    guard line >= 1, line <= lines.count else { return nil }
    let indentation = lines[line - 1].prefix { $0 == " " || $0 == "\t" }
    return indentation.firstIndex(of: "\t").map {
      indentation.distance(from: indentation.startIndex, to: $0) + 1
    }
  }
}
