/// Finds settings that look like secrets. Only the settings files are read.
enum SecretSettings {
  /// - Parameter excluded: the topmost paths that rules keep out of a backup.
  static func find(
    in container: Container, root: Directory, excluded: [ContainerPath],
    _ read: (ContainerPath) throws -> PropertyListFile?
  ) -> [ContainerWarning] {
    container.settingsFiles(in: root).flatMap { path -> [ContainerWarning] in
      guard !excluded.contains(where: { path == $0 || path.isInside($0) }) else { return [] }
      // What cannot be read, or is no property list, is told elsewhere.
      guard let file = try? read(path) else { return [] }
      var search = SecretSearch(least: .code)
      return file.root.sorted().compactMap { key, value in
        // A backup must not wait for a file that nobody could look through.
        guard SecretText.isSecret(key) || search.finds(in: value, SecretName(key)), search.isComplete else {
          return nil
        }
        return ContainerWarning(kind: .secret, path: path, message: message(key))
      }
    }
  }

  private static func message(_ key: String) -> String {
    let what = SecretText.isSecret(key) ? "a setting, by its name" : "the setting `\(key)`"
    return
      "\(what) looks like a secret, and anybody can read it here and in an archive that is not encrypted; "
      + "it belongs in the vault"
  }
}

extension Container {
  /// The settings files that are there, sorted.
  func settingsFiles(in root: Directory) -> [ContainerPath] {
    var paths = Set(configuration.defaults.values)
    if let standardDefaults { paths.insert(standardDefaults) }
    let preferences: ContainerPath = "Library/Preferences"
    if layout == .ios, let directory = try? root.directory(preferences), let names = try? directory.names() {
      paths.formUnion(names.map { preferences.appending(name: $0) }.filter(isSettings))
    }
    return paths.filter { (try? root.status($0))??.type == .file }.sorted()
  }
}
