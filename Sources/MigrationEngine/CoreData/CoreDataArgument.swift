import AppFrameworks
import DrydockErrors
import Formats

extension CoreDataModel {
  /// Decodes the argument `core-data: {version-info: FILE, version: NAME, down-version: NAME}`: the models of a store after
  /// the statements (by default the current version), and after the down statements.
  static func argument(
    _ node: YAMLNode, files: MigrationFiles, hasDown: Bool
  ) throws -> (up: CoreDataModel, down: CoreDataModel?) {
    let reader = try YAMLReader(node, what: "core-data", keys: ["version-info", "version", "down-version"])
    let file = try reader.required("version-info")
    let bytes = try files.bytes(of: file.text("`version-info`"), namedAt: file.position)
    let info: PropertyListDictionary
    do {
      info = try PropertyListFile(bytes: bytes).root
    } catch let error as DrydockError {
      throw file.position.error(error.message)
    }
    let up: CoreDataModel
    if let node = reader["version"] {
      up = try version(node.text("`version`"), of: info, at: node.position)
    } else if let current = currentVersion(in: info) {
      up = try version(current, of: info, at: file.position)
    } else {
      throw file.position.error(
        "the file does not say which version is the current one: name it with `version`")
    }
    switch (reader["down-version"], hasDown) {
    case (let node?, true):
      return (up, try version(node.text("`down-version`"), of: info, at: node.position))
    case (let node?, false): throw node.position.error("`down-version` is for a step with `down`")
    case (nil, true):
      throw node.position.error("the step has `down`: name the store's model after it with `down-version`")
    case (nil, false): return (up, nil)
    }
  }

  private static func version(
    _ name: String, of info: PropertyListDictionary, at position: YAMLPosition
  ) throws -> CoreDataModel {
    do {
      return try CoreDataModel(named: name, in: info)
    } catch let error as DrydockError {
      throw position.error(error.message)
    }
  }
}
