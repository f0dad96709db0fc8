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
  /// - Parameter exists: whether there is a settings file at a path: of the two that Android has for a name, one must exist.
  /// - Throws: ``DrydockError``: `missing` for an unknown suite or an app whose settings file is unknown, `ambiguous` for a
  ///   name of two files, `unsupported` for the vault and the history.
  package func path(
    in container: Container, exists: (ContainerPath) throws -> Bool
  ) throws -> ContainerPath {
    let path = try namedPath(in: container, exists: exists)
    // Also where drydock.yaml gives it a name.
    guard path != container.vaultPath, !container.isHistory(path) else {
      throw DrydockError(
        .unsupported, "this file is Drydock's own, and not a settings file", path: path.description)
    }
    return path
  }

  private func namedPath(
    in container: Container, exists: (ContainerPath) throws -> Bool
  ) throws -> ContainerPath {
    switch self {
    case .file(let path): return path
    case .suite(let name):
      if let path = container.suitePath(name) { return path }
      let places = container.androidSettings(name)
      let found = try places.filter(exists)
      if found.count == 1 { return found[0] }
      if !places.isEmpty {
        let what = found.isEmpty ? "neither of the settings files" : "both settings files"
        let names = places.map { "`\($0)`" }.joined(separator: " and ")
        throw DrydockError(
          found.isEmpty ? .missing : .ambiguous,
          "\(what) \(names) \(found.isEmpty ? "exists" : "exist"): name one of them with `file`, or in drydock.yaml "
            + "under `defaults:`")
      }
      throw DrydockError(
        .missing,
        "drydock.yaml has no settings file `\(name)` under `defaults:`, and no group of that id; "
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
    if let name = suiteNames.first(where: { suitePath($0) == path }) { return name }
    let name = path.nameString
    if layout == .android, let dot = name.lastIndex(of: "."), isAndroidSettings(path) {
      return String(name[..<dot])
    }
    return nil
  }
}
