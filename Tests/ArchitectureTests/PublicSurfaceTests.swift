import Foundation
import Testing

/// The public types of the library, as a list that a person has agreed to: a new one is a decision.
@Suite("The public surface")
struct PublicSurfaceTests {
  private let list = Architecture.root.appendingPathComponent("Tests/ArchitectureTests/PublicSurface.txt")

  /// `Module Type` for each, sorted; a nested type has the names around it.
  private static let types = Result {
    let sources = Architecture.root.appendingPathComponent("Sources")
    var found: [String] = []
    for module in try FileManager.default.contentsOfDirectory(atPath: sources.path) {
      let directory = sources.appendingPathComponent(module)
      for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path)
      where path.hasSuffix(".swift") {
        let text = try String(contentsOf: directory.appendingPathComponent(path), encoding: .utf8)
        // The word is looked for first: without the optimizer the pattern takes seconds.
        guard strstr(text, "public ") != nil else { continue }
        found += types(in: text).map { "\(module) \($0)" }
      }
    }
    return found.sorted()
  }

  private static func types(in text: String) -> [String] {
    let words = ["struct ", "class ", "enum ", "protocol ", "actor ", "extension ", "typealias "]
    var (found, around): ([String], [(indent: Int, name: String)]) = ([], [])
    for line in text.split(separator: "\n") where words.contains(where: line.contains) {
      guard
        let match = line.firstMatch(
          of:
            /^( *)(?:@\w+ )*(?:(public|package|internal|private|fileprivate) )?(?:final |indirect )*(struct|class|enum|protocol|actor|extension|typealias) ([A-Z][\w.]*)/
        )
      else { continue }
      around.removeAll { $0.indent >= match.1.count }
      let name = (around.map(\.name) + [String(match.4)]).joined(separator: ".")
      if match.2 == "public" { found.append(name) }
      around.append((match.1.count, String(match.4)))
    }
    return found
  }

  @Test("It is the list in PublicSurface.txt; DRYDOCK_RECORD_SURFACE=1 writes it")
  func agreed() throws {
    let types = try Self.types.get()
    if ProcessInfo.processInfo.environment["DRYDOCK_RECORD_SURFACE"] != nil {
      try Data(types.map { $0 + "\n" }.joined().utf8).write(to: list)
    }
    let agreed = try String(contentsOf: list, encoding: .utf8).split(separator: "\n").map(String.init)
    #expect(types.filter { !agreed.contains($0) } == [], "these are public, and not in the list")
    #expect(agreed.filter { !types.contains($0) } == [], "these are in the list, and not public")
  }

  @Test("Each public declaration has a doc comment, but for what a protocol of others asks for")
  func documented() throws {
    let required = [
      "func ==", "func <", "startIndex", "endIndex", "subscript(position", "underestimatedCount",
      "description",
      "hash(",
      "encode(", "init(from ", "Literal ", "setting: PropertyListValue", "init?(argument", "allValueStrings",
      "init?(rawValue", "init(rawValue", "rawValue:",
    ]
    var missing: [String] = []
    let sources = Architecture.root.appendingPathComponent("Sources")
    for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path)
    where path.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appendingPathComponent(path), encoding: .utf8)
      guard strstr(text, "public ") != nil else { continue }
      var isDocumented = false
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
        let words = line.drop { $0 == " " }
        // Attributes on lines of their own are between the comment and the declaration.
        if words.hasPrefix("@"), !words.contains("public ") { continue }
        let declares = ["public ", "@discardableResult public "].contains { words.hasPrefix($0) }
        // Words of a text, as in the help of a command, are no declaration.
        let kinds = [
          "struct ", "class ", "enum ", "protocol ", "func ", "var ", "let ", "init", "subscript",
          "typealias ",
        ]
        if declares, !isDocumented, kinds.contains(where: words.contains),
          !required.contains(where: words.contains)
        {
          missing.append("\(path): \(words)")
        }
        isDocumented = words.hasPrefix("///")
      }
    }
    #expect(missing == [])
  }

  @Test("No public type has the name of a common one")
  func common() throws {
    let names = try Self.types.get().compactMap { $0.split(separator: " ").last }
    let common: Set<Substring> = [
      "Configuration", "Directory", "Decision", "Transaction", "Layout", "Operation", "Database",
      "Row",
      "Column",
      "Result", "Data", "Date", "File", "Path", "Error", "Task", "View",
    ]
    #expect(names.filter(common.contains) == [])
  }
}
