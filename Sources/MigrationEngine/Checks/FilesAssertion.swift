import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// What paths there are: `files: {path, exists | count}`, or an element of `files` or `absent`; the path may be a pattern.
struct FilesAssertion: Sendable {
  static let keys = ["path", "exists", "count"]

  let selection: ContainerSelection
  let expected: Expectation
  /// A regular expression that finds something in each file.
  private let pattern: String?

  init(_ reader: YAMLReader) throws {
    selection = try ContainerSelection(try reader.required("path"), "`path`")
    switch (try reader.boolean("exists"), reader["count"]) {
    case (let exists?, nil): expected = .exists(exists)
    case (nil, let node?):
      expected = node.meansBefore ? .before(node.position) : .count(try node.integer("`count`"))
    default: throw reader.position.error("`files` has one of `exists` and `count`")
    }
    pattern = nil
  }

  fileprivate init(_ selection: ContainerSelection, _ expected: Expectation, matching pattern: String? = nil)
  {
    (self.selection, self.expected, self.pattern) = (selection, expected, pattern)
  }

  func observe(_ stage: StagedContainer) throws -> Observation {
    var paths = try selection.matches(in: stage)
    // A pattern passes over what is Drydock's own.
    if selection.path == nil { paths.removeAll { stage.isHistory($0) || stage.live.isState($0) } }
    guard pattern != nil else { return .paths(paths.map(\.description), texts: []) }
    paths = try paths.filter { try stage.status(of: $0)?.type == .file }
    return .paths(
      paths.map(\.description), texts: try paths.map { String(validating: try stage.read($0), as: UTF8.self) }
    )
  }

  func judge(_ now: Observation, before: Observation?, _ redactor: Redactor) -> Verdict {
    guard case .paths(let paths, let texts) = now else {
      return .failed("`\(selection)` could not be looked for")
    }
    let count = paths.count
    let place = selection.description
    let list = selection.path == nil ? Self.list(paths) : nil
    switch expected {
    case .exists(true) where count > 0, .exists(false) where count == 0: break
    case .count(let wanted) where wanted == Int64(count): break
    case .exists(true):
      return .failed([
        AssertionFailure(place, "this is absent", sentence: "`\(selection)` is not in the container")
      ])
    case .exists(false), .count(0):
      return .failed([
        AssertionFailure(
          place, "this exists, expected nothing", found: list,
          sentence: {
            if case .count = expected { return "\(count) paths match `\(selection)`, not 0" }
            return "`\(selection)` is in the container"
          }())
      ])
    case .count(let wanted):
      return .failed([
        AssertionFailure(
          place, "there are \(count) of these, expected \(wanted)", found: list,
          sentence: "\(count) paths match `\(selection)`, not \(wanted)")
      ])
    case .before:
      guard case .paths(let old, _) = before else { return .failed("nothing to compare `\(selection)` with") }
      return old.count == count
        ? .passed : .failed("\(count) paths match `\(selection)`, and \(old.count) did before")
    case .values, .null, .type, .rows: return .failed("`\(selection)` cannot be compared")
    }
    let failures = zip(paths, texts).compactMap { textFailure($0, $1, redactor) }
    return failures.isEmpty ? .passed : .failed(failures)
  }

  private func textFailure(_ path: String, _ text: String?, _ redactor: Redactor) -> AssertionFailure? {
    guard let pattern, let regex = try? Regex(pattern) else { return nil }
    if let text, (try? regex.firstMatch(in: text)) != nil { return nil }
    return AssertionFailure(
      path, text == nil ? "the file is not UTF-8 text" : "the file has no such text",
      expected: "text that `\(redactor.shown(message: pattern))` matches")
  }

  private static func list(_ paths: [String]) -> String? {
    if paths.isEmpty { return nil }
    let more = paths.count > 10 ? ["… \(paths.count - 10) more"] : []
    return (paths.prefix(10) + more).joined(separator: ", ")
  }
}

/// How a path must be marked: excluded from backups, or with a class of data protection.
struct MarkAssertion: Sendable {
  fileprivate enum Mark: Sendable {
    case excluded
    case protection(ProtectionClass)
  }

  fileprivate let path: ContainerPath
  fileprivate let mark: Mark

  func observe(_ stage: StagedContainer) throws -> Observation {
    .marks(
      try stage.live.metadata(path).map { .init(isExcluded: $0.hasAppleFlag, protection: $0.protection) })
  }

  func judge(_ now: Observation) -> Verdict {
    let place = path.description
    guard case .marks(let marks?) = now else { return .failed([AssertionFailure(place, "this is absent")]) }
    switch mark {
    case .excluded where !marks.isExcluded:
      return .failed([AssertionFailure(place, "this is not flagged as excluded from backups")])
    case .protection(let expected) where marks.protection != expected:
      return .failed([
        AssertionFailure(
          place, "this has another protection class", expected: expected.rawValue,
          found: marks.protection?.rawValue)
      ])
    default: return .passed
    }
  }
}

extension Assertion {
  /// What `files` and `absent` of a fixture name.
  package static func files(_ reader: YAMLReader) throws -> [Assertion] {
    let present = try reader["files"].map { try ($0.sequence ?? [$0]).map(file) } ?? []
    let absent = try reader["absent"].map { node in
      try (node.sequence ?? [node]).map { element in
        let selection = try ContainerSelection(element, "an element of `absent`")
        return Assertion(.files(FilesAssertion(selection, .exists(false))), at: element.position)
      }
    }
    return present + (absent ?? [])
  }

  private static func file(_ node: YAMLNode) throws -> Assertion {
    guard node.mapping != nil else {
      let selection = try ContainerSelection(node, "an element of `files`")
      return Assertion(.files(FilesAssertion(selection, .exists(true))), at: node.position)
    }
    let reader = try YAMLReader(node, what: "an element of `files`", keys: ["path", "count", "matches"])
    let count = try reader["count"].map { node in
      let count = try node.integer("`count`")
      guard count >= 0 else { throw node.position.error("`count` is 0 or more") }
      return Expectation.count(count)
    }
    let pattern = try reader.text("matches")
    if let pattern, let node = reader["matches"] {
      do {
        _ = try Regex(pattern)
      } catch {
        throw node.position.error("`matches` is not a regular expression: \(error)")
      }
    }
    let selection = try ContainerSelection(try reader.required("path"), "`path`")
    return Assertion(
      .files(FilesAssertion(selection, count ?? .exists(true), matching: pattern)), at: node.position)
  }

  /// That a path is excluded from backups.
  package static func isExcluded(_ path: ContainerPath, at position: YAMLPosition) -> Assertion {
    Assertion(.mark(MarkAssertion(path: path, mark: .excluded)), at: position)
  }

  /// That a path has a class of data protection.
  package static func isProtected(
    _ path: ContainerPath, _ protection: ProtectionClass, at position: YAMLPosition
  ) -> Assertion {
    Assertion(.mark(MarkAssertion(path: path, mark: .protection(protection))), at: position)
  }
}
