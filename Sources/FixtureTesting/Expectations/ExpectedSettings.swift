import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// Settings with their exact values and types, and settings that must not exist, in one file; others may exist.
package struct ExpectedSettings: Sendable {
  /// A setting.
  struct Setting: Sendable {
    var key: String
    /// Nil when it must not exist.
    var value: PropertyListValue?
    var position: YAMLPosition
  }

  /// The suite, as `drydock.yaml` or a group names it; nil for the app's own settings.
  let suite: String?
  let settings: [Setting]
  private let position: YAMLPosition

  /// Whether a setting must be there.
  var demandsSomething: Bool { settings.contains { $0.value != nil } }

  private static let keys = ["settings", "absent-settings"]

  /// The app's own settings and those of `suites`.
  static func all(_ reader: YAMLReader) throws -> [ExpectedSettings] {
    let own = try ExpectedSettings(suite: nil, reader)
    let suites = try reader["suites"]?.pairs("`suites`").pairs.map { pair in
      guard case .text(let name) = pair.key.value else {
        throw pair.keyPosition.error("a suite's name is text, not \(pair.key.value.summary): quote it")
      }
      let reader = try YAMLReader(pair.value, what: "a suite", keys: keys)
      let suite = try ExpectedSettings(suite: name, reader)
      guard !suite.settings.isEmpty else {
        throw pair.keyPosition.error("nothing is expected of this suite: add `settings` or `absent-settings`")
      }
      return suite
    }
    return (own.settings.isEmpty ? [] : [own]) + (suites ?? [])
  }

  private init(suite: String?, _ reader: YAMLReader) throws {
    self.suite = suite
    position = (reader["settings"] ?? reader["absent-settings"])?.position ?? reader.position
    var settings: [Setting] = []
    let pairs = try reader["settings"]?.pairs("`settings`")
    let values = try pairs?.propertyListValues() ?? [:]
    for pair in pairs?.pairs ?? [] {
      settings.append(
        Setting(key: pair.key.source, value: values[pair.key.source], position: pair.value.position))
    }
    for node in reader["absent-settings"].map({ $0.sequence ?? [$0] }) ?? [] {
      let key = try node.text("an element of `absent-settings`")
      guard values[key] == nil else {
        throw node.position.error("`\(key)` is in `settings` too: it cannot be both there and absent")
      }
      settings.append(Setting(key: key, value: nil, position: node.position))
    }
    self.settings = settings
  }

  func findings(_ stage: StagedContainer) throws -> [FixtureFinding] {
    let path = try path(in: stage.container)
    var found: PropertyListDictionary = [:]
    if try stage.live.status(path)?.type == .file {
      do {
        found = try PropertyListFile(bytes: stage.live.contents(path)).root
      } catch let error as DrydockError where error.code == .malformed {
        return [
          FixtureFinding(
            at: position, "this is no settings file: \(error.message)", place: path.description)
        ]
      }
    }
    return settings.compactMap { finding($0, found[$0.key], path, stage.redactor) }
  }

  private func finding(
    _ setting: Setting, _ found: PropertyListValue?, _ path: ContainerPath, _ redactor: Redactor
  ) -> FixtureFinding? {
    let key = setting.key
    let place = "\(path): \(redactor.shown(name: key))"
    guard let expected = setting.value else {
      return found.map {
        FixtureFinding(
          at: setting.position, "the setting exists, expected none", place: place,
          found: redactor.shown($0, key: key))
      }
    }
    guard let found else {
      return FixtureFinding(
        at: setting.position, "the setting is absent", place: place,
        expected: redactor.shown(expected, key: key))
    }
    if found.matches(expected) { return nil }
    let isOtherType = found.typeName != expected.typeName
    let shown = { (value: PropertyListValue) in
      (isOtherType ? "the \(value.typeName) " : "") + redactor.shown(value, key: key)
    }
    return FixtureFinding(
      at: setting.position, "the setting has another \(isOtherType ? "type" : "value")", place: place,
      expected: shown(expected), found: shown(found))
  }

  /// Where the file is in a container.
  ///
  /// - Throws: `DrydockError` when no file is known by this name.
  private func path(in container: Container) throws -> ContainerPath {
    guard let suite else {
      if let path = container.standardDefaults { return path }
      throw position.error(
        "no settings file is known here: name it in drydock.yaml (`defaults: {standard: PATH}`)")
    }
    if let path = container.configuration.defaults[suite] ?? container.groupDefaults(suite) { return path }
    let known = Set(container.configuration.defaults.keys).union(container.configuration.groups.keys)
    throw position.error(
      "drydock.yaml has no settings file `\(suite)` under `defaults:`, and no group of that id; "
        + NearestWord.hint(for: suite, among: Array(known)))
  }
}
