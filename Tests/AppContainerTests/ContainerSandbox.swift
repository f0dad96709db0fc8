import TestSupport

@testable import AppContainer
@testable import FileSystem

/// A container to try exclusion rules on.
struct ContainerSandbox {
  let path: String
  let root: Directory
  var configuration = ContainerConfiguration()

  /// Makes an empty container, laid out as on iOS, with patterns under `exclude:`.
  static func with<T>(_ exclude: [String] = [], _ body: (inout ContainerSandbox) throws -> T) throws -> T {
    try TemporaryDirectory.with { folder in
      try Directory(folder.path).createDirectory("c")
      var sandbox = ContainerSandbox(path: folder("c"), root: try Directory(folder("c")))
      sandbox.configuration.layout = .ios
      sandbox.configuration.exclude = PatternList(exclude)
      return try body(&sandbox)
    }
  }

  func make(_ files: [String]) throws {
    for file in files {
      let path = try ContainerPath(file)
      try root.createDirectories(path.parent, mode: 0o755)
      try root.create(path, Array("x".utf8))
    }
  }

  func container() throws -> Container { try Container(at: path, configuration: configuration) }

  /// Each path's rule and where it was found; "" for what is taken.
  func scan() throws -> [String: String] {
    var found: [String: String] = [:]
    var scan = ContainerScan(root, rules: ExclusionRules(try container()), entersExcluded: true)
    while let entry = try scan.nextEntry() { found[entry.path.description] = Self.text(entry.exclusion) }
    return found
  }

  /// What a scan finds of one path, the same whether it goes into excluded directories or not.
  func found(_ path: String) throws -> String {
    var found: String?
    let wanted = try ContainerPath(path)
    let rules = ExclusionRules(try container())
    var topmost = ContainerScan(root, rules: rules)
    while let entry = try topmost.nextEntry() {
      if entry.path == wanted || (entry.exclusion != nil && wanted.isInside(entry.path)) {
        found = Self.text(entry.exclusion)
      }
    }
    let whole = try scan()[path]
    guard let found, let whole, found == whole else {
      throw SystemFailure("\(path): \(found ?? "not visited"), and going in: \(whole ?? "not visited")")
    }
    return found
  }

  func explained(_ path: String, isDirectory: Bool = false) throws -> String {
    let scan = ContainerScan(root, rules: ExclusionRules(try container()))
    return Self.text(try scan.explain(ContainerPath(path), isDirectory: isDirectory).decision.effective)
  }

  private static func text(_ exclusion: Exclusion?) -> String {
    exclusion.map { "\($0.rule.rawValue) @\($0.origin)" } ?? ""
  }
}
