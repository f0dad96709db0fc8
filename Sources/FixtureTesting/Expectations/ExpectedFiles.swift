import ContainerTransaction
import FileSystem
import Formats

/// Paths that must be there, or must not: by name, or by a pattern with the number of them.
package struct ExpectedFiles: Sendable {
  private let paths: PathSelection
  /// How many; nil for one or more.
  private let count: Int?
  /// A regular expression that finds something in each file.
  private let pattern: String?
  private let position: YAMLPosition

  /// Whether a path must be there.
  var demandsSomething: Bool { count != 0 }

  /// What `files` and `absent` name.
  static func all(_ reader: YAMLReader) throws -> [ExpectedFiles] {
    let present = try reader["files"].map { try ($0.sequence ?? [$0]).map(ExpectedFiles.init) }
    let absent = try reader["absent"].map { node in
      try (node.sequence ?? [node]).map {
        ExpectedFiles(
          paths: try PathSelection($0, "an element of `absent`"), count: 0, pattern: nil,
          position: $0.position)
      }
    }
    return (present ?? []) + (absent ?? [])
  }

  private init(paths: PathSelection, count: Int?, pattern: String?, position: YAMLPosition) {
    (self.paths, self.count, self.pattern, self.position) = (paths, count, pattern, position)
  }

  private init(_ node: YAMLNode) throws {
    position = node.position
    guard node.mapping != nil else {
      (paths, count, pattern) = (try PathSelection(node, "an element of `files`"), nil, nil)
      return
    }
    let reader = try YAMLReader(node, what: "an element of `files`", keys: ["path", "count", "matches"])
    paths = try PathSelection(try reader.required("path"), "`path`")
    count = try reader["count"].map { node in
      guard let count = Int(exactly: try node.integer("`count`")), count >= 0 else {
        throw node.position.error("`count` is 0 or more")
      }
      return count
    }
    pattern = try reader.text("matches")
    if let pattern, let node = reader["matches"] {
      do {
        _ = try Regex(pattern)
      } catch {
        throw node.position.error("`matches` is no regular expression: \(error)")
      }
    }
  }

  func findings(_ stage: StagedContainer) throws -> [FixtureFinding] {
    let found = try paths.paths(in: stage, filesOnly: pattern != nil)
    if let count, found.count != count {
      let message =
        count == 0 ? "this exists, expected nothing" : "there are \(found.count) of these, expected \(count)"
      return [
        FixtureFinding(
          at: position, message, place: paths.description, found: paths.isPattern ? list(found) : nil)
      ]
    }
    if found.isEmpty, count == nil {
      return [FixtureFinding(at: position, "this is absent", place: paths.description)]
    }
    return try contentFindings(found, stage)
  }

  private func list(_ paths: [ContainerPath]) -> String? {
    if paths.isEmpty { return nil }
    let more = paths.count > 10 ? ["… \(paths.count - 10) more"] : []
    return (paths.prefix(10).map(\.description) + more).joined(separator: ", ")
  }

  private func contentFindings(_ paths: [ContainerPath], _ stage: StagedContainer) throws -> [FixtureFinding]
  {
    guard let pattern else { return [] }
    let regex = try Regex(pattern)
    return try paths.compactMap { path in
      let expected = "text that `\(stage.redactor.shown(message: pattern))` matches"
      let text = String(validating: try stage.live.contents(path), as: UTF8.self)
      if let text, try regex.firstMatch(in: text) != nil { return nil }
      return FixtureFinding(
        at: position, text == nil ? "the file is no UTF-8 text" : "the file has no such text",
        place: path.description, expected: expected)
    }
  }
}

/// A path, or a pattern of paths below the container's root, as in migrations.
struct PathSelection: Sendable, CustomStringConvertible {
  private enum Kind: Sendable {
    case path(ContainerPath)
    case pattern(GlobPattern)
  }

  private let kind: Kind
  let description: String

  var isPattern: Bool { if case .pattern = kind { true } else { false } }

  init(_ node: YAMLNode, _ what: String) throws {
    description = try node.text(what)
    guard GlobPattern.isPattern(description) else {
      kind = .path(try node.path(what))
      return
    }
    guard !description.hasPrefix("/"), !description.split(separator: "/").contains("..") else {
      throw node.position.error("\(what): a pattern is relative to the container, without `..`")
    }
    // The slash counts it from the root: without one a pattern matches at any depth.
    kind = .pattern(GlobPattern("/" + description))
  }

  /// What there is of it. Patterns pass over what is Drydock's own.
  func paths(in stage: StagedContainer, filesOnly: Bool) throws -> [ContainerPath] {
    switch kind {
    case .path(let path):
      guard let status = try stage.live.status(path) else { return [] }
      return filesOnly && status.type != .file ? [] : [path]
    case .pattern(let pattern):
      let history = stage.container.historyPath.parent
      var found: [ContainerPath] = []
      try stage.live.walk { entry in
        if entry.path == history || stage.live.isState(entry.path) { return .over }
        let isDirectory = entry.status.type == .directory
        if pattern.matches(entry.path, isDirectory: isDirectory), !filesOnly || entry.status.type == .file {
          found.append(entry.path)
        }
        return isDirectory && pattern.mayMatch(below: entry.path) ? .into : .over
      }
      return found
    }
  }
}
