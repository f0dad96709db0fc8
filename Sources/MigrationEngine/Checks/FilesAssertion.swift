import Formats

/// `files: {path, exists | count}`: what is in the container; the path may be a pattern.
struct FilesAssertion: Sendable {
  static let keys = ["path", "exists", "count"]

  let selection: ContainerSelection
  let expected: Expectation

  init(_ reader: YAMLReader) throws {
    selection = try ContainerSelection(try reader.required("path"), "`path`")
    switch (try reader.boolean("exists"), reader["count"]) {
    case (let exists?, nil): expected = .exists(exists)
    case (nil, let node?):
      expected = node.meansBefore ? .before(node.position) : .count(try node.integer("`count`"))
    default: throw reader.position.error("`files` has one of `exists` and `count`")
    }
  }

  func judge(_ now: Observation, before: Observation?) -> Verdict {
    guard case .count(let count) = now else { return .failed("`\(selection)` could not be looked for") }
    switch expected {
    case .exists(true) where count > 0, .exists(false) where count == 0: return .passed
    case .exists(let exists):
      return .failed(exists ? "`\(selection)` is not in the container" : "`\(selection)` is in the container")
    case .count(let wanted) where wanted == Int64(count): return .passed
    case .count(let wanted): return .failed("\(count) paths match `\(selection)`, not \(wanted)")
    case .before:
      guard case .count(let old) = before else { return .failed("nothing to compare `\(selection)` with") }
      return old == count ? .passed : .failed("\(count) paths match `\(selection)`, and \(old) did before")
    case .values, .null, .type: return .failed("`\(selection)` cannot be compared")
    }
  }
}
