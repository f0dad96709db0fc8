import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// The defaults that an app registers for its settings: the values of settings that are not stored.
package struct RegisteredDefaults: Sendable, Equatable {
  private var suites: [String: PropertyListDictionary] = [:]

  package init() {}

  /// The settings by suite; `standard` is the app's.
  package init(_ suites: [String: PropertyListDictionary]) { self.suites = suites }

  package subscript(_ suite: String) -> PropertyListDictionary { suites[suite] ?? [:] }

  /// Reads a file for the app's settings, or a file for each suite, by its path.
  init(_ node: YAMLNode, _ resolve: (String) -> String) throws {
    guard let files = node.mapping else {
      suites["standard"] = try Self.read(node, resolve)
      return
    }
    for pair in files.pairs { suites[pair.key.source] = try Self.read(pair.value, resolve) }
  }

  /// Reads a property list or a YAML mapping.
  private static func read(
    _ node: YAMLNode, _ resolve: (String) -> String
  ) throws -> PropertyListDictionary {
    let text = try node.text("a file of `registered-defaults`")
    let path = resolve(text)
    do {
      let (directory, name) = try ContainerPath.split(path)
      let bytes = try Directory(directory).contents(name, limit: 1 << 20)
      if PropertyListDocument.isBegun(by: bytes) { return try PropertyListFile(bytes: bytes).root }
      return try YAMLDocument(bytes, file: path).root?.pairs("a file of registered defaults")
        .propertyListValues()
        ?? [:]
    } catch let error as DrydockError {
      // Errors of a YAML file already have a place.
      throw error.message.hasPrefix(path)
        ? error : node.position.error("`\(text)`: \(error.message)", cause: error)
    }
  }
}

extension ContainerConfiguration {
  package var registeredDefaults: RegisteredDefaults {
    get { self[value: "registered-defaults", default: RegisteredDefaults()] }
    set { self[value: "registered-defaults", default: RegisteredDefaults()] = newValue }
  }
}

extension ConfigurationSection {
  package static let registeredDefaults = ConfigurationSection("registered-defaults") {
    node, configuration, resolve in
    if !node.isNull { configuration.registeredDefaults = try RegisteredDefaults(node, resolve) }
  }
}
