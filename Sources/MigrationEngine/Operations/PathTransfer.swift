import ContainerTransaction
import FileSystem
import Formats

/// The arguments `from` and `to` of what moves or copies: one path and the path that it gets, or several (a list, or what
/// matches a pattern) and the directory that they go into under their own names.
struct PathTransfer: Sendable {
  /// What goes where.
  struct Pair: Equatable {
    var from, to: ContainerPath
  }

  private let from: [ContainerSelection]
  let to: ContainerPath

  init(_ reader: YAMLReader) throws {
    let source = try reader.required("from")
    from = try ContainerSelection.list(source, "`from`")
    let target = try reader.required("to")
    to = try target.containerPath("`to`")
    guard source.sequence == nil, let path = from[0].path else { return }
    guard to != path else { throw target.position.error("`from` and `to` are the same path") }
    guard !to.isInside(path), !path.isInside(to) else {
      throw target.position.error("one of `from` and `to` is inside the other")
    }
    single = path
  }

  /// The only path; nil for several.
  private(set) var single: ContainerPath?

  /// What is there and goes, and where.
  ///
  /// - Parameter notes: takes remarks on what is not there.
  /// - Throws: ``StepFailure`` when something is missing that must not be, or two would become one.
  func pairs(
    on stage: StagedContainer, _ ifMissing: IfMissing, _ notes: inout [String]
  ) throws -> [Pair] {
    if let single {
      if try stage.status(of: single) != nil { return [Pair(from: single, to: to)] }
      if ifMissing == .fail {
        throw StepFailure(message: "`\(single)` is not in the container", path: single.description)
      }
      notes.append("`\(single)` is not there: skipped")
      return []
    }
    var pairs: [Pair] = []
    for selection in from {
      for path in try selection.matches(in: stage, ifMissing, &notes) {
        // What is in the directory already stays there, and what is in something that goes, goes with it.
        let goesAlready = pairs.contains { $0.from == path || path.isInside($0.from) }
        if goesAlready || path == to || path.isInside(to) { continue }
        // A database goes as a whole with its main file, or stays as a whole.
        if pairs.contains(where: { Self.isSidecar(path, of: $0.from) }) { continue }
        guard !to.isInside(path) else {
          throw StepFailure(
            message: "`\(to)` is inside `\(path)`, which `\(selection)` matches", path: path.description)
        }
        guard let name = path.components.last else { continue }
        let target = to.appending(name: name)
        if let other = pairs.first(where: { $0.to == target }) {
          throw StepFailure(
            message: "`\(other.from)` and `\(path)` would both be `\(target)`", path: path.description)
        }
        pairs.append(Pair(from: path, to: target))
      }
    }
    return pairs
  }

  private static func isSidecar(_ path: ContainerPath, of main: ContainerPath) -> Bool {
    ["-wal", "-shm", "-journal"].contains { main.withSuffix($0) == path }
  }
}
