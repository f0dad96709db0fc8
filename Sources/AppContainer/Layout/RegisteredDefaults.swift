import DrydockErrors
import FileSystem
import Formats

/// What an app registers as the defaults of its settings when it starts: what a reader sees of a setting that is not
/// stored.
package struct RegisteredDefaults: Sendable, Equatable {
  private var suites: [String: PropertyListDictionary] = [:]

  /// An app that registers nothing.
  package init() {}

  /// Settings by suite; `standard` is the app's own.
  package init(_ suites: [String: PropertyListDictionary]) { self.suites = suites }

  /// What is registered for a suite.
  package subscript(_ suite: String) -> PropertyListDictionary { suites[suite] ?? [:] }

  /// Reads what `drydock.yaml` names: one file for the app's own settings, or a file for each suite; relative to
  /// `folder`.
  ///
  /// - Throws: ``DrydockError`` with `file:line:column` in front.
  init(_ node: YAMLNode, folder: String) throws {
    guard let files = node.mapping else {
      suites["standard"] = try Self.read(node, folder)
      return
    }
    for pair in files.pairs { suites[pair.key.source] = try Self.read(pair.value, folder) }
  }

  /// A property list, or a mapping in YAML.
  private static func read(_ node: YAMLNode, _ folder: String) throws -> PropertyListDictionary {
    let text = try node.text("a file of `registered-defaults`")
    let path = text.hasPrefix("/") ? text : folder + "/" + text
    let slash = path.lastIndex(of: "/") ?? path.startIndex
    do {
      let directory = try Directory(slash == path.startIndex ? "/" : String(path[..<slash]))
      let bytes = try directory.contents(
        ContainerPath(String(path[path.index(after: slash)...])), limit: 1 << 20)
      if PropertyListDocument.isBegun(by: bytes) { return try PropertyListFile(bytes: bytes).root }
      return try YAMLDocument(bytes, file: path).root?.pairs("a file of registered defaults")
        .propertyListValues()
        ?? [:]
    } catch let error as DrydockError {
      // A YAML file's errors have a place of their own.
      throw error.message.hasPrefix(path)
        ? error : node.position.error("`\(text)`: \(error.message)", cause: error)
    }
  }
}
