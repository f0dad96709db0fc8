import ContainerTransaction
import Formats
import Foundation

/// The variables that a script gets: a few of the machine's, and what it should know. Nothing else of Drydock's own
/// environment reaches it, for that may name keys and hold passwords.
enum ScriptEnvironment {
  private static let inherited = ["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TZ", "USER"]
  private static let reserved = "DRYDOCK_"

  /// The argument `environment`.
  static func additions(_ reader: YAMLReader) throws -> [String: String] {
    guard let node = reader["environment"] else { return [:] }
    var variables: [String: String] = [:]
    for pair in try node.pairs("`environment`").pairs {
      guard case .text(let name) = pair.key.value, isName(name) else {
        throw pair.keyPosition.error(
          "`\(pair.key.source)` is no name of a variable: letters, digits and `_`, the first no digit")
      }
      guard !name.hasPrefix(reserved) else {
        throw pair.keyPosition.error(
          "variables that start with \(reserved) are Drydock's own: take another name")
      }
      let value = try pair.value.text("`\(name)`")
      guard !value.utf8.contains(0) else { throw pair.value.position.error("`\(name)` has a NUL in it") }
      variables[name] = value
    }
    return variables
  }

  private static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
      return false
    }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
  }

  /// - Parameter root: the absolute path of the copy that the script works on.
  static func variables(of stage: StagedContainer, root: String) throws -> [String: String] {
    var variables = ProcessInfo.processInfo.environment.filter { name, _ in
      inherited.contains(name) || name.hasPrefix("LC_")
    }
    let container = stage.container
    variables["DRYDOCK_CONTAINER"] = root
    variables["DRYDOCK_APP"] = container.app
    variables["DRYDOCK_INSTANCE"] = container.instance
    variables["DRYDOCK_LAYOUT"] = container.layout.rawValue
    variables["DRYDOCK_DEFAULTS"] = container.standardDefaults.map { root + "/\($0)" }
    for name in container.configuration.databases.keys {
      guard let place = try stage.databasePlace(name) else { continue }
      let suffix = name.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
      variables["DRYDOCK_DATABASE_" + String(suffix)] = root + "/\(place)"
    }
    return variables
  }
}
