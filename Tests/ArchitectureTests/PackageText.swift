import Foundation

/// The targets of a `Package.swift`, read as text: asking the package manager would need its lock, which the
/// test run itself may hold.
struct PackageText {
  struct Target {
    var name: String
    var path: String
    var isTest: Bool
    var dependencies: Set<String>
  }

  private(set) var targets: [Target] = []

  init(_ text: String) throws {
    let code = text.split(separator: "\n", omittingEmptySubsequences: false)
      .filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
    var products: [String: String] = [:]
    for match in code.matches(of: /let (\w+) = Target\.Dependency\.product\(\s*name: "(\w+)"/) {
      products[String(match.1)] = String(match.2)
    }
    guard let start = code.firstRange(of: "targets: [\n") else {
      throw Unreadable("there is no list of targets")
    }
    let list = code[start.upperBound...]
    for match in list.matches(of: /\.(target|executableTarget|testTarget|systemLibrary)\(/) {
      let kind = String(match.1)
      let call = try Self.balanced(list[match.range.upperBound...], "(", ")")
      guard let name = call.firstMatch(of: /name: "(\w+)"/)?.1 else {
        throw Unreadable("a target has no name")
      }
      var dependencies: Set<String> = []
      if let found = call.firstRange(of: "dependencies: [") {
        let words = try Self.balanced(call[found.upperBound...], "[", "]")
        for word in words.split(separator: ",") {
          let word = word.trimmingCharacters(in: .whitespacesAndNewlines)
          if word.isEmpty { continue }
          if word.hasPrefix("\""), word.hasSuffix("\"") {
            dependencies.insert(String(word.dropFirst().dropLast()))
          } else if let product = products[word] {
            dependencies.insert(product)
          } else {
            throw Unreadable("\(name) has a dependency that this test cannot read: \(word)")
          }
        }
      }
      let path = call.firstMatch(of: /path: "([^"]+)"/).map { String($0.1) }
      targets.append(
        Target(
          name: String(name), path: path ?? (kind == "testTarget" ? "Tests/" : "Sources/") + name,
          isTest: kind == "testTarget", dependencies: dependencies))
    }
    if targets.isEmpty { throw Unreadable("no target was found") }
  }

  /// The text up to the bracket that closes the one before it.
  private static func balanced(_ text: Substring, _ open: Character, _ close: Character) throws -> Substring {
    var depth = 1
    for index in text.indices {
      if text[index] == open { depth += 1 }
      if text[index] == close { depth -= 1 }
      if depth == 0 { return text[..<index] }
    }
    throw Unreadable("a bracket is never closed")
  }

  struct Unreadable: Error, CustomStringConvertible {
    let description: String

    init(_ why: String) {
      description = "Package.swift: \(why)"
    }
  }
}
