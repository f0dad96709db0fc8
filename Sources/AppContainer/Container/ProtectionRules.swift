import FileSystem
import Formats

/// A protection class that `drydock.yaml` requires of paths: `protection: [{path: "Documents/**", require: complete}]`.
package struct ProtectionRule: Sendable, Equatable {
  package let pattern: GlobPattern
  package let required: ProtectionClass

  static func list(_ node: YAMLNode) throws -> [ProtectionRule] {
    try node.elements("`protection`").map { element in
      let reader = try YAMLReader(element, what: "a rule of `protection`", keys: ["path", "require"])
      let path = try reader.required("path").text("`path`")
      _ = try reader.required("require")
      guard let required: ProtectionClass = try reader.choice("require") else {
        throw reader.position.error("`require` is a protection class")
      }
      return ProtectionRule(pattern: GlobPattern(path), required: required)
    }
  }
}

extension [ProtectionRule] {
  /// The first rule for a file, by its path or by a directory above it.
  package func rule(for path: ContainerPath) -> ProtectionRule? {
    first { rule in
      rule.pattern.matches(path) || path.ancestors.contains { rule.pattern.matches($0, isDirectory: true) }
    }
  }

  /// The rule that a file with a class breaks; nil when it has the required class or a stronger one.
  ///
  /// - Parameter recorded: nil when none is recorded, which is Apple's default.
  package func broken(by path: ContainerPath, with recorded: ProtectionClass?) -> ProtectionRule? {
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
