import DrydockErrors
import FileSystem
import Formats

/// Which settings of a container: a file, by the name that the app or `drydock.yaml` gives it, or by its path.
public enum SettingsPlace: Sendable, Hashable {
  /// The app's own.
  case standard
  /// A name under `defaults:` in `drydock.yaml`, the ID of an app group, or `icloud`.
  case suite(String)
  case file(ContainerPath)

  /// The file, which may not exist.
  ///
  /// - Throws: ``DrydockError`` with code `missing` for an unknown suite or an app whose settings file is unknown.
  package func path(in container: Container) throws -> ContainerPath {
    switch self {
    case .file(let path): return path
    case .suite(let name):
      if let path = container.suitePath(name) { return path }
      throw DrydockError(
        .missing,
        "no settings file is named `\(name)`: drydock.yaml has none under `defaults:`, and no group of that id; "
          + NearestWord.hint(for: name, among: container.suiteNames))
    case .standard:
      if let path = container.standardDefaults { return path }
      throw DrydockError(
        .missing, "the settings file is unknown: name it in drydock.yaml (`defaults: {standard: PATH}`)")
    }
  }
}

extension Container {
  /// The suite of the iCloud key-value store.
  package static let cloudSuite = "icloud"

  /// The settings file of a suite, which may not exist; nil when the name is unknown.
  package func suitePath(_ name: String) -> ContainerPath? {
    if let path = configuration.defaults[name] { return path }
    // An app group's settings are in the group itself.
    if let path = groupDefaults(name) { return path }
    guard name == Self.cloudSuite, layout == .ios else { return nil }
    return try? ContainerPath("Library/SyncedPreferences/\(app).plist")
  }

  /// The names of the suites, sorted.
  package var suiteNames: [String] {
    let cloud = layout == .ios ? [Self.cloudSuite] : []
    return Set(configuration.defaults.keys).union(configuration.groups.keys).union(cloud).sorted()
  }

  /// The name of the suite in a file, if it has one.
  package func suite(of path: ContainerPath) -> String? {
    if path == standardDefaults { return "standard" }
    return suiteNames.first { suitePath($0) == path }
  }
}
