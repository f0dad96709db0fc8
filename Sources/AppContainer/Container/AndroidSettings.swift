import FileSystem
import Formats

/// The settings files of Android apps: `shared_prefs/NAME.xml` and `files/datastore/NAME.preferences_pb`.
extension ContainerPath {
  /// Where a layout's SharedPreferences are.
  package static let sharedPreferences: ContainerPath = "shared_prefs"
  package static let dataStore: ContainerPath = "files/datastore"

  /// The previous version of a SharedPreferences file, `NAME.xml.bak`, which Android keeps while it writes the file. Where
  /// it exists, Android replaces the file with it before it reads. Nil for other files.
  package var preferencesBackup: ContainerPath? {
    SettingsFile.isSharedPreferences(description) ? withSuffix(".bak") : nil
  }

  /// The SharedPreferences file whose previous version this is; nil for other files.
  package var ofPreferencesBackup: ContainerPath? {
    guard nameString.hasSuffix(".xml.bak"),
      let path = try? parent.appending(String(nameString.dropLast(4))), path.preferencesBackup == self
    else { return nil }
    return path
  }
}

extension Container {
  /// The places of the settings that an Android app calls by a name.
  package func androidSettings(_ name: String) -> [ContainerPath] {
    guard layout == .android, !name.isEmpty, !name.contains("/") else { return [] }
    return [
      try? ContainerPath.sharedPreferences.appending(name + ".xml"),
      try? ContainerPath.dataStore.appending(name + ".preferences_pb"),
    ].compactMap { $0 }
  }

  /// Whether a path is one of the settings files of an Android app.
  func isAndroidSettings(_ path: ContainerPath) -> Bool {
    let name = path.nameString
    return layout == .android
      && (path.parent == .sharedPreferences && name.hasSuffix(".xml")
        || path.parent == .dataStore && name.hasSuffix(".preferences_pb"))
  }

  /// The file that has the settings of a path: its previous version if there is one.
  package static func settingsSource(
    _ path: ContainerPath, exists: (ContainerPath) throws -> Bool
  ) rethrows -> ContainerPath {
    if let backup = path.preferencesBackup, try exists(backup) { backup } else { path }
  }
}

extension Directory {
  /// Reads a settings file as the app does.
  package func settings(_ path: ContainerPath) throws -> SettingsFile {
    let source = try Container.settingsSource(path) { try status($0)?.type == .file }
    return try SettingsFile(bytes: contents(source), path: path.description)
  }
}
