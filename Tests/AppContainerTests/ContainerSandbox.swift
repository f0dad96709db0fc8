import TestSupport

@testable import AppContainer
@testable import FileSystem

/// A container to try exclusion rules on.
struct ContainerSandbox {
  private let folder: TemporaryDirectory
  let path: String
  let root: Directory
  var configuration = ContainerConfiguration()

  /// Makes an empty container, laid out as on iOS, with patterns under `exclude:`.
  init(_ exclude: [String] = []) throws {
    folder = try TemporaryDirectory()
    path = folder("c")
    try Directory(folder.path).createDirectory("c")
    root = try Directory(path)
    configuration.layout = .ios
    configuration.exclude = PatternList(exclude)
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
