import FileSystem
import Formats

/// The protection classes that `drydock.yaml` requires: `protection: [{path: "Documents/**", require: complete}]`.
package struct ProtectionRules: Sendable, Equatable {
  package struct Rule: Sendable, Equatable {
    /// The pattern as it is written.
    package let path: String
    package let required: ProtectionClass
    fileprivate let pattern: GlobPattern
  }

  private var rules: [Rule] = []

  package init() {}

  init(_ node: YAMLNode) throws {
    rules = try node.elements("`protection`").map { element in
      let reader = try YAMLReader(element, what: "a rule of `protection`", keys: ["path", "require"])
      let path = try reader.required("path").text("`path`")
      _ = try reader.required("require")
      guard let required: ProtectionClass = try reader.choice("require") else {
        throw reader.position.error("`require` is a protection class")
      }
      return Rule(path: path, required: required, pattern: GlobPattern(path))
    }
  }

  package var isEmpty: Bool { rules.isEmpty }

  /// The first rule for a file, by its path or by a directory above it.
  package func rule(for path: ContainerPath) -> Rule? {
    if rules.isEmpty { return nil }
    return rules.first { rule in
      rule.pattern.matches(path) || path.ancestors.contains { rule.pattern.matches($0, isDirectory: true) }
    }
  }

  /// The rule that a file with a class breaks; nil when it has the required class or a stronger one.
  ///
  /// - Parameter recorded: nil when none is recorded, which is Apple's default.
  package func broken(by path: ContainerPath, with recorded: ProtectionClass?) -> Rule? {
    guard let rule = rule(for: path),
      (recorded ?? .completeUntilFirstUserAuthentication).isWeaker(than: rule.required)
    else { return nil }
    return rule
  }
}

extension ProtectionClass {
  private var rank: Int {
    switch self {
    case .none: 0
    case .completeUntilFirstUserAuthentication: 1
    case .completeUnlessOpen: 2
    case .completeWhenUserInactive: 3
    case .complete: 4
    }
  }

  package func isWeaker(than other: ProtectionClass) -> Bool { rank < other.rank }
}

extension Directory {
  /// The recorded class of a path; nil for none or an unknown one.
  package func protection(of path: ContainerPath) throws -> ProtectionClass? {
    ProtectionClass(recorded: try attribute(ProtectionClass.attribute, of: path))
  }
}
