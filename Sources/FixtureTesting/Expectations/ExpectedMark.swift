import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// How a path must be marked: kept out of backups, or with a class of data protection.
package struct ExpectedMark: Sendable {
  private enum Mark: Sendable {
    case excluded
    case protection(ProtectionClass)
  }

  private let path: ContainerPath
  private let mark: Mark
  private let position: YAMLPosition

  /// What `excluded` and `protection` name.
  static func all(_ reader: YAMLReader) throws -> [ExpectedMark] {
    var marks: [ExpectedMark] = []
    if let node = reader["excluded"] {
      for element in node.sequence ?? [node] {
        let path = try element.pathOrRoot("an element of `excluded`")
        marks.append(ExpectedMark(path: path, mark: .excluded, position: element.position))
      }
    }
    for pair in try reader["protection"]?.pairs("`protection`").pairs ?? [] {
      let mark = Mark.protection(try pair.value.protection())
      marks.append(ExpectedMark(path: try pair.path(), mark: mark, position: pair.keyPosition))
    }
    return marks
  }

  func findings(_ stage: StagedContainer) throws -> [FixtureFinding] {
    let place = path.description
    guard let metadata = try stage.live.metadata(path) else {
      return [FixtureFinding(at: position, "this is absent", place: place)]
    }
    switch mark {
    case .excluded:
      if metadata.hasAppleFlag { return [] }
      return [
        FixtureFinding(at: position, "this is not flagged as excluded from backups", place: place)
      ]
    case .protection(let expected):
      if metadata.protection == expected { return [] }
      return [
        FixtureFinding(
          at: position, "this has another protection class", place: place, expected: expected.rawValue,
          found: metadata.protection?.rawValue)
      ]
    }
  }
}
