import FileSystem

/// What is where in a container, and what is never backed up.
package enum Layout: String, Sendable, Codable, CaseIterable {
  /// An app's data container as iOS lays it out.
  case ios
  /// An app's data directory as Android lays it out, `/data/data/<package>`.
  case android
  /// Any directory: no rules of its own.
  case generic

  /// Where Drydock keeps the history of migrations: inside the container, so that it travels with it.
  package var historyPath: ContainerPath {
    switch self {
    case .ios: "Library/Application Support/.drydock/history.json"
    case .android: "files/.drydock/history.json"
    case .generic: ".drydock/history.json"
    }
  }

  /// Where the file of secrets is, unless `drydock.yaml` says otherwise.
  package var vaultPath: ContainerPath {
    switch self {
    case .ios: "Library/Vault/vault.age"
    case .android: "files/vault.age"
    case .generic: "vault.age"
    }
  }

  // MARK: What is never backed up

  /// The directories in a container's root that a backup takes from; nil means all.
  ///
  /// An iOS device backup takes `Documents` and `Library` (and `GeoJSON`) of an app's container, and never
  /// `tmp`, `SystemData` or `StoreKit`.
  package var includedRoots: [ContainerPath]? {
    switch self {
    case .ios: ["Documents", "Library", "GeoJSON"]
    case .android, .generic: nil
    }
  }

  /// What is never backed up below those.
  package var neverIncluded: [ContainerPath] {
    switch self {
    case .ios:
      [
        "Library/Caches", "Library/SyncedPreferences", "Library/Saved Application State",
        "Library/SplashBoard",
      ]
    case .android: ["cache", "code_cache", "no_backup", "lib"]
    case .generic: []
    }
  }

  /// What is never backed up for a transfer: another Android device gets all but the installed libraries.
  package func neverIncluded(for transfer: AndroidTransfer) -> [ContainerPath] {
    self == .android && transfer == .device ? ["lib"] : neverIncluded
  }

  /// What a restore never brings back, in an archive though it may be (`snapshot --include-excluded`, or an archive
  /// of another tool): the system makes it anew, and an old one misleads it.
  package var neverRestored: [ContainerPath] {
    switch self {
    case .ios: ["NewsstandArtwork", "Library/Saved Application State", "Library/SplashBoard"]
    case .android, .generic: []
    }
  }

  /// Why the system's own backup passes over a path by its last name or its kind, wherever it is; nil when it does
  /// not.
  func reason(againstName name: [UInt8], type: FileType) -> String? {
    switch self {
    case .ios: Self.scannerReason(against: name)
    case .android: type == .symbolicLink ? "android backs up no symbolic links" : nil
    case .generic: nil
    }
  }

  private static let safeSave = Array(".plist.".utf8)
  private static let cookies = Array("binarycookies_tmp".utf8)

  /// The names that the scanner of iOS device backups passes over.
  private static func scannerReason(against name: [UInt8]) -> String? {
    if name.count >= safeSave.count + 7, name.dropLast(7).suffix(safeSave.count).elementsEqual(safeSave) {
      return "ios passes over what a failed save left (NAME.plist.XXXXXXX)"
    }
    if name.starts(with: ".dat.nosync".utf8) { return "ios passes over .dat.nosync*" }
    if name.suffix(4).elementsEqual(".dat".utf8), name.dropLast(4).firstRange(of: cookies) != nil {
      return "ios passes over *binarycookies_tmp*.dat"
    }
    return nil
  }

  // MARK: Detection

  /// The metadata file that iOS keeps in the root of a container: it names app and instance.
  static let metadataFile: ContainerPath = ".com.apple.mobile_container_manager.metadata.plist"

  /// The layout that a directory's content shows.
  static func detect(in root: Directory) throws -> Layout {
    if try root.status(metadataFile) != nil { return .ios }
    let hasDirectory = { (path: ContainerPath) in try root.status(path)?.type == .directory }
    if try hasDirectory("Documents") && hasDirectory("Library") { return .ios }
    // Names that only Android uses; any program may have `files`, `databases` and `cache`.
    let isAndroid = try ["shared_prefs", "code_cache", "no_backup"].contains(where: hasDirectory)
    return isAndroid ? .android : .generic
  }
}
