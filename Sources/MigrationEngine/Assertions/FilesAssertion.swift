import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// What paths there are: `files: {path, exists | count}`, or an element of `files` or `absent`; the path may be a pattern.
struct FilesAssertion: AssertionBody {
  static let keys = ["path", "exists", "count"]

  fileprivate enum Expected: Sendable {
    case exists(Bool)
    case count(Int64)
    case countBefore(YAMLPosition)
  }

  private let selection: ContainerSelection
  private let expected: Expected
  /// A regular expression that finds something in each file.
  private let pattern: String?

  init(_ reader: YAMLReader) throws {
    selection = try ContainerSelection(try reader.required("path"), "`path`")
    switch (try reader.boolean("exists"), reader["count"]) {
    case (let exists?, nil): expected = .exists(exists)
    case (nil, let node?):
      expected = node.meansBefore ? .countBefore(node.position) : .count(try node.integer("`count`"))
    default: throw reader.position.error("`files` has one of `exists` and `count`")
    }
    pattern = nil
  }

  fileprivate init(_ selection: ContainerSelection, _ expected: Expected, matching pattern: String? = nil) {
    (self.selection, self.expected, self.pattern) = (selection, expected, pattern)
  }

  var before: YAMLPosition? {
    if case .countBefore(let position) = expected { position } else { nil }
  }

  var demandsSomething: Bool {
    switch expected {
    case .exists(false), .count(0): false
    default: true
    }
  }

  func observe(_ stage: StagedContainer) throws -> Observation? { .count(try paths(in: stage).count) }

  private func paths(in stage: StagedContainer) throws -> [ContainerPath] {
    let paths = try selection.matches(in: stage).filter { path in
      // A pattern skips Drydock's own files.
      selection.path != nil || !stage.isHistory(path) && !stage.live.isState(path)
    }
    return try pattern == nil ? paths : paths.filter { try stage.status(of: $0)?.type == .file }
  }

  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict {
    let paths = try paths(in: stage)
    let problem: String?
    switch expected {
    case .exists(true): problem = paths.isEmpty ? "this is absent" : nil
    case .exists(false), .count(0): problem = paths.isEmpty ? nil : "this exists, expected nothing"
    case .count(let count):
      problem = paths.count == count ? nil : "there are \(paths.count) of these, expected \(count)"
    case .countBefore:
      guard case .count(let old)? = before else { return .failed("nothing to compare `\(selection)` with") }
      problem =
        paths.count == old ? nil : "there are \(paths.count) of these, and there were \(old) before"
    }
    if let problem {
      let found = selection.path == nil ? Self.list(paths.map(\.description)) : nil
      return .failed([AssertionFailure(selection.description, problem, found: found)])
    }
    let failures = try paths.compactMap { try textFailure($0, stage) }
    return failures.isEmpty ? .passed : .failed(failures)
  }

  private func textFailure(_ path: ContainerPath, _ stage: StagedContainer) throws -> AssertionFailure? {
    guard let pattern, let regex = try? Regex(pattern) else { return nil }
    let text = String(validating: try stage.read(path), as: UTF8.self)
    if let text, (try? regex.firstMatch(in: text)) != nil { return nil }
    return AssertionFailure(
      path.description, text == nil ? "the file is not UTF-8 text" : "the file has no such text",
      expected: "text that `\(stage.redactor.shown(message: pattern))` matches")
  }

  private static func list(_ paths: [String]) -> String? {
    if paths.isEmpty { return nil }
    let more = paths.count > 10 ? ["… \(paths.count - 10) more"] : []
    return (paths.prefix(10) + more).joined(separator: ", ")
  }
}

/// How a path must be marked: excluded from backups, or with a class of data protection.
private struct MarkAssertion: AssertionBody {
  let path: ContainerPath
  /// Nil when the path must be excluded from backups.
  let protection: ProtectionClass?

  var demandsSomething: Bool { true }

  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict {
    let place = path.description
    guard let metadata = try stage.live.metadata(path) else {
      return .failed([AssertionFailure(place, "this is absent")])
    }
    guard let protection else {
      return metadata.hasAppleFlag
        ? .passed : .failed([AssertionFailure(place, "this is not flagged as excluded from backups")])
    }
    if metadata.protection == protection { return .passed }
    return .failed([
      AssertionFailure(
        place, "this has another protection class", expected: protection.rawValue,
        found: metadata.protection?.rawValue)
    ])
  }
}

extension Assertion {
  /// What `files` and `absent` of a fixture name.
  package static func files(_ reader: YAMLReader) throws -> [Assertion] {
    let present = try reader["files"].map { try ($0.sequence ?? [$0]).map(file) } ?? []
    let absent = try reader["absent"].map { node in
      try (node.sequence ?? [node]).map { element in
        let selection = try ContainerSelection(element, "an element of `absent`")
        return Assertion(FilesAssertion(selection, .exists(false)), at: element.position)
      }
    }
    return present + (absent ?? [])
  }

  private static func file(_ node: YAMLNode) throws -> Assertion {
    guard node.mapping != nil else {
      let selection = try ContainerSelection(node, "an element of `files`")
      return Assertion(FilesAssertion(selection, .exists(true)), at: node.position)
    }
    let reader = try YAMLReader(node, what: "an element of `files`", keys: ["path", "count", "matches"])
    let count = try reader["count"].map { node in
      let count = try node.integer("`count`")
      guard count >= 0 else { throw node.position.error("`count` is 0 or more") }
      return FilesAssertion.Expected.count(count)
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
      FilesAssertion(selection, count ?? .exists(true), matching: pattern), at: node.position)
  }

  package static func isExcluded(_ path: ContainerPath, at position: YAMLPosition) -> Assertion {
    Assertion(MarkAssertion(path: path, protection: nil), at: position)
  }

  package static func isProtected(
    _ path: ContainerPath, _ protection: ProtectionClass, at position: YAMLPosition
  ) -> Assertion {
    Assertion(MarkAssertion(path: path, protection: protection), at: position)
  }
}
