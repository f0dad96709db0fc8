import FileSystem
import Formats

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
      // A backup must not wait for a file that stands for far more than its size, by references to one text.
      let size = Int(clamping: (try? root.status(path))??.size ?? 0)
      var search = SecretSearch(least: .code, budget: max(SecretSearch.budget, min(size, 64 << 20) * 4))
      var warnings: [ContainerWarning] = []
      for (key, value) in file.root.sorted() {
        let isSecret = SecretText.isSecret(key) || search.finds(in: value, SecretName(key))
        guard search.isComplete else {
          warnings.append(ContainerWarning(kind: .secret, path: path, message: stopped(key)))
          break
        }
        if isSecret { warnings.append(ContainerWarning(kind: .secret, path: path, message: message(key))) }
      }
      return warnings
    }
  }

  private static func stopped(_ key: String) -> String {
    let place = SecretText.isSecret(key) ? "" : ", at the setting `\(key)`"
    return
      "the search for secrets stopped\(place): the file stands for much more than its size; what follows in the order "
      + "of the names was not searched"
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
