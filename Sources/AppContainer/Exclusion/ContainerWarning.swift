import AppStores
import DrydockErrors
import FileSystem
import Formats

/// A property of a container that may be unintended. Warnings do not stop a command.
package struct ContainerWarning: Sendable, Codable, Equatable {
  package enum Kind: String, Sendable, Codable {
    /// A user's document in an excluded directory that the system may empty.
    case document
    case photo
    /// A database with tables of the app in such a directory.
    case database
    /// An exclusion flag on the root, which has no effect.
    case rootFlag = "root-flag"
    /// A vault that is excluded from backups.
    case vault
    /// A rule without effect in a rule file.
    case rule
    /// A configured group whose directory does not exist.
    case group
    /// A setting that looks like a secret, which is readable in the settings file and in plain archives.
    case secret
    /// A database that its framework would not open, or that has lost data.
    case databaseContent = "database-content"
    /// A settings file that only the app on this device can read, or that is read from its previous version.
    case settings
    /// An iCloud key-value store beyond the limits of iCloud.
    case keyValueStore = "key-value-store"
    /// Files with a weaker protection class than `drydock.yaml` requires.
    case protection
  }

  package var kind: Kind
  /// Nil for a rule file.
  package var path: ContainerPath?
  package var message: String

  package init(kind: Kind, path: ContainerPath?, message: String) {
    (self.kind, self.path, self.message) = (kind, path, message)
  }
}

extension ContainerWarning: CustomStringConvertible {
  package var description: String { path.map { "\($0): \(message)" } ?? message }
}

extension ContainerWarning {
  /// The most paths that are inspected in excluded directories: a cache may have millions.
  package static let limit = 20_000

  /// Finds the warnings for a container. Unreadable paths are skipped.
  ///
  /// - Parameters:
  ///   - excluded: the topmost excluded paths. Only those that the layout or a `CACHEDIR.TAG` excludes are inspected: flags
  ///     and patterns are intended.
  ///   - secrets: whether to warn of settings that look like secrets, which are safe in an encrypted archive.
  ///   - settings: reads a settings file.
  package static func find(
    in container: Container, excluded: [(ContainerPath, Exclusion)], secrets: Bool = true,
    settings: ((ContainerPath) throws -> SettingsFile?)? = nil
  ) -> [Self] {
    guard let root = try? container.open() else { return [] }
    var warnings = rootWarnings(root, container)
    warnings += (container.layout == .android ? container.configuration.android?.notes ?? [] : []).map {
      Self(kind: .rule, path: nil, message: $0)
    }
    warnings += container.missingGroups.map {
      Self(
        kind: .group, path: $0.path,
        message:
          "the group's directory \($0.root) does not exist: the group is not read, stored or changed")
    }
    warnings += vaultWarnings(root, container, excluded)
    var left = limit
    for (top, exclusion) in excluded {
      guard exclusion.rule == .cacheTag || container.layout.emptiedPlaces.contains(top) else { continue }
      try? look(at: top, in: root, container.layout, &left, &warnings)
    }
    let read = settings ?? root.settings
    let files = container.settingsFiles(in: root).filter { path in
      !excluded.contains { path == $0.0 || path.isInside($0.0) }
    }
    if container.layout == .android { warnings += androidWarnings(root, files, read) }
    if secrets { warnings += secretWarnings(root, files, read) }
    return warnings
  }

  private static func vaultWarnings(
    _ root: Directory, _ container: Container, _ excluded: [(ContainerPath, Exclusion)]
  ) -> [Self] {
    let path = container.vaultPath
    guard let (_, exclusion) = excluded.first(where: { path == $0.0 || path.isInside($0.0) }),
      (try? root.status(path))?.type == .file
    else { return [] }
    return [
      Self(
        kind: .vault, path: path,
        message:
          "the vault is excluded from backups (\(exclusion)), so its secrets are lost with the device; move it, or add it "
          + "to `include:` in drydock.yaml")
    ]
  }

  private static func androidWarnings(
    _ root: Directory, _ files: [ContainerPath], _ read: (ContainerPath) throws -> SettingsFile?
  ) -> [Self] {
    files.flatMap { path -> [Self] in
      var found: [Self] = []
      if let backup = path.preferencesBackup, (try? root.status(backup))??.type == .file {
        let message =
          "Android replaces this file with \(backup.nameString), which the app left when it was ended "
          + "while writing; the settings are read from there"
        found.append(Self(kind: .settings, path: path, message: message))
      }
      do {
        _ = try read(path)
      } catch let error as DrydockError where error.code == .unsupported {
        let message =
          "\(error.message); it is lost when the app is reinstalled or the backup is restored on another device"
        found.append(Self(kind: .settings, path: path, message: message))
      } catch {
        // Corrupt files are reported elsewhere.
      }
      return found
    }
  }

  private static func secretWarnings(
    _ root: Directory, _ files: [ContainerPath], _ read: (ContainerPath) throws -> SettingsFile?
  ) -> [Self] {
    files.flatMap { path -> [Self] in
      // Unreadable and corrupt files are reported elsewhere.
      guard let file = try? read(path) else { return [] }
      // A limit, since references to one text can expand a small file.
      let size = Int(clamping: (try? root.status(path))??.size ?? 0)
      var budget = max(SecretPattern.budget, min(size, 64 << 20) * 4)
      var warnings: [Self] = []
      for (key, value) in file.root.sorted() {
        let hasSecretName = SecretText.isSecret(key)
        let isSecret =
          hasSecretName
          || SecretPattern.isSecret(value, named: SecretName(key), least: .code, within: &budget)
        guard budget > 0 else {
          let place = hasSecretName ? "" : ", at the setting `\(key)`"
          let message =
            "the search for secrets stopped\(place), since the file expands to much more than its size; the settings after "
            + "it, by name, were not searched"
          warnings.append(Self(kind: .secret, path: path, message: message))
          break
        }
        if !isSecret { continue }
        let what = hasSecretName ? "the name of a setting" : "the setting `\(key)`"
        let message =
          "\(what) looks like a secret, which is readable here and in plain archives; move it to the vault, as the app does to its keychain"
        warnings.append(Self(kind: .secret, path: path, message: message))
      }
      return warnings
    }
  }

  private static func look(
    at top: ContainerPath, in root: Directory, _ layout: ContainerLayout, _ left: inout Int,
    _ warnings: inout [Self]
  ) throws {
    func examine(_ directory: Directory, _ name: ContainerPath, _ status: FileStatus, _ path: ContainerPath) {
      guard let found = Kind(of: name, status, in: directory) else { return }
      warnings.append(Self(kind: found, path: path, message: message(found, layout)))
    }
    if let status = try root.status(top), status.type == .file {
      return examine(try root.directory(top.parent), ContainerPath(name: top.name), status, top)
    }
    var count = left
    defer { left = count }
    try root.walk(from: top, unreadable: { _, _ in }) { entry in
      count -= 1
      guard count > 0 else { throw CancellationError() }
      // The system's caches have many documents, such as web pages, that no user made.
      let isSystems = entry.name.bytes.starts(with: "com.apple.".utf8) || entry.name == "WebKit"
      if entry.status.type == .directory { return isSystems ? .over : .into }
      if entry.status.type == .file { examine(entry.parent, entry.name, entry.status, entry.path) }
      return .over
    }
  }

  private static func message(_ kind: Kind, _ layout: ContainerLayout) -> String {
    let advice =
      switch layout {
      case .ios: "move it to Documents or Library/Application Support"
      case .android: "move it to files or databases"
      case .generic: "move it, or add it to `include:` in drydock.yaml"
      }
    let what = kind == .database ? "a database with the app's tables" : "a \(kind.rawValue)"
    return "\(what) that no backup includes and a clean-up may delete; \(advice)"
  }

  private static func rootWarnings(_ root: Directory, _ container: Container) -> [Self] {
    var found: [String] = []
    if let metadata = try? root.metadata(.root) { found += metadata.exclusionFlags.map(\.rawValue) }
    if let status = try? root.status(Exclusion.cacheTag),
      (try? Exclusion.isCacheTag(status, Exclusion.cacheTag, in: root)) == true
    {
      found.append(Exclusion.Rule.cacheTag.rawValue)
    }
    return found.map {
      Self(
        kind: .rootFlag, path: .root,
        message:
          "the container is marked as excluded from backups (\($0)), which has no effect on a container that a "
          + "command names")
    }
  }
}

extension ContainerLayout {
  /// The directories that the system may empty at any time.
  var emptiedPlaces: [ContainerPath] {
    switch self {
    case .ios: ["tmp", "Library/Caches"]
    case .android: ["cache", "code_cache"]
    case .generic: []
    }
  }
}

extension ContainerWarning.Kind {
  /// Recognizes files that a user made, by name and first bytes; nil for other files. It rather misses some than gives false
  /// warnings.
  fileprivate init?(of name: ContainerPath, _ status: FileStatus, in directory: Directory) {
    let text = name.nameString.lowercased()
    let ending = text.lastIndex(of: ".").map { String(text[text.index(after: $0)...]) } ?? ""
    if let magic = Self.documents[ending] {
      guard (try? directory.prefix(of: name, magic.count)) == magic else { return nil }
      self = .document
    } else if Self.photos.contains(ending), status.size >= Self.smallestPhoto {
      guard let start = try? directory.prefix(of: name, 64 << 10), Self.isPhoto(start) else { return nil }
      self = .photo
    } else {
      guard Self.isDatabase(name, status, in: directory) else { return nil }
      self = .database
    }
  }

  private static let zip: [UInt8] = [0x50, 0x4b, 3, 4]
  private static let compound: [UInt8] = [0xd0, 0xcf, 0x11, 0xe0]
  private static let documents: [String: [UInt8]] = {
    var result = ["pdf": Array("%PDF-".utf8), "rtf": Array("{\\rtf".utf8)]
    for ending in ["docx", "xlsx", "pptx", "odt", "ods", "odp", "pages", "numbers", "key"] {
      result[ending] = zip
    }
    for ending in ["doc", "xls", "ppt"] { result[ending] = compound }
    return result
  }()

  // MARK: Photos

  private static let photos: Set = ["jpg", "jpeg", "heic", "heif", "dng"]
  /// Larger than thumbnails.
  private static let smallestPhoto: UInt64 = 200_000

  /// Whether a camera made it: its Exif data names the maker.
  private static func isPhoto(_ start: [UInt8]) -> Bool {
    if let range = start.firstRange(of: Array("Exif\0\0".utf8)) {
      return hasMaker(start[range.upperBound...])
    }
    return hasMaker(start[...])
  }

  private static func hasMaker(_ tiff: ArraySlice<UInt8>) -> Bool {
    let isLittle = tiff.starts(with: [0x49, 0x49, 0x2a, 0])
    guard isLittle || tiff.starts(with: [0x4d, 0x4d, 0, 0x2a]) else { return false }
    func number(_ offset: Int, _ count: Int) -> Int? {
      guard offset >= 0, offset + count <= tiff.count else { return nil }
      let bytes = tiff[(tiff.startIndex + offset)...].prefix(count)
      return (isLittle ? Array(bytes.reversed()) : Array(bytes)).reduce(0) { $0 << 8 | Int($1) }
    }
    guard let directory = number(4, 4), let count = number(directory, 2) else { return false }
    let maker = 0x010f
    return (0..<min(count, 100)).contains { number(directory + 2 + 12 * $0, 2) == maker }
  }

  // MARK: Databases

  /// Tables of systems and their libraries.
  private static let cacheTables = ["sqlite_", "cfurl_cache_", "android_metadata", "room_master_table"]

  /// Whether it is a database whose first pages have a table of the app.
  private static func isDatabase(
    _ name: ContainerPath, _ status: FileStatus, in directory: Directory
  ) -> Bool {
    guard DatabaseFormat.mayBeDatabase(size: status.size, name: name),
      (try? directory.prefix(of: name, 16)) == DatabaseFormat.headerMagic
    else { return false }
    let pages = ["", "-wal"].map(name.withSuffix).compactMap { try? directory.prefix(of: $0, 64 << 10) }
    return pages.contains { page in
      var rest = page[...]
      let create = Array("CREATE TABLE ".utf8)
      while let found = rest.firstRange(of: create) {
        rest = rest[found.upperBound...]
        let table = rest.prefix(64).drop { " \"'`[".utf8.contains($0) }
        if !cacheTables.contains(where: { table.starts(with: $0.utf8) }) { return true }
      }
      return false
    }
  }
}

extension Container {
  /// The settings files that exist, sorted, by the paths without the suffix of a previous version.
  package func settingsFiles(in root: Directory) -> [ContainerPath] {
    var paths = Set(configuration.defaults.values)
    if let standardDefaults { paths.insert(standardDefaults) }
    let preferences: ContainerPath = "Library/Preferences"
    if layout == .ios, let directory = try? root.directory(preferences), let names = try? directory.names() {
      paths.formUnion(names.map { preferences.appending(name: $0) }.filter(isSettings))
    }
    for folder in [ContainerPath.sharedPreferences, .dataStore] where layout == .android {
      let names = (try? root.directory(folder).names()) ?? []
      let found = names.map { folder.appending(name: $0) }
      paths.formUnion((found + found.compactMap(\.ofPreferencesBackup)).filter(isSettings))
    }
    return paths.filter { path in
      [path, path.preferencesBackup].compactMap { $0 }.contains { (try? root.status($0))??.type == .file }
    }.sorted()
  }
}
