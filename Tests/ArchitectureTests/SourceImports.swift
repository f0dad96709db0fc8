import Foundation

/// The imports of every Swift file below a directory.
struct SourceImports {
  struct Import: Hashable {
    var module: String
    /// `path:line`, for the message.
    var place: String
  }

  private(set) var imports: [Import] = []
  private(set) var files = 0

  init(below directory: URL, root: URL) throws {
    guard let paths = FileManager.default.enumerator(atPath: directory.path) else { return }
    for case let path as String in paths where path.hasSuffix(".swift") {
      let file = directory.appendingPathComponent(path)
      files += 1
      let place = String(file.path.dropFirst(root.path.count + 1))
      let text = try String(contentsOf: file, encoding: .utf8)
      for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        // The pattern is slow where nothing is optimised, and most lines have nothing for it.
        if line.contains("import "), let module = Self.module(of: line) {
          imports.append(Import(module: module, place: "\(place):\(index + 1)"))
        }
      }
    }
  }

  /// The module that a line imports, whatever stands around the word.
  static func module(of line: Substring) -> String? {
    let pattern =
      /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+(?:(?:struct|class|enum|protocol|typealias|func|let|var|actor|macro)\s+)?(\w+)/
    return line.firstMatch(of: pattern).map { String($0.1) }
  }
}
