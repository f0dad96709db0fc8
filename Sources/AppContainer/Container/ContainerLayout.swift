import AppStores
import FileSystem

/// The layout of a container: where its stores are, and what is never backed up.
public enum ContainerLayout: String, Sendable, Codable, CaseIterable {
  /// An app's data container as iOS lays it out.
  case ios
  /// An app's data directory as Android lays it out, `/data/data/<package>`.
  case android
  /// Any directory, without special rules.
  case generic

  /// The history of migrations, which is part of the container.
  package var historyPath: ContainerPath {
    switch self {
    case .ios: "Library/Application Support/.drydock/history.json"
    case .android: "files/.drydock/history.json"
    case .generic: ".drydock/history.json"
    }
  }

  /// The default path of the vault.
  package var vaultPath: ContainerPath {
    switch self {
    case .ios: "Library/Vault/vault.age"
    case .android: "files/vault.age"
    case .generic: "vault.age"
    }
  }

  // MARK: What is never backed up

  /// The directories in the root that a backup includes; nil for all. An iOS device backup includes `Documents`, `Library`
  /// and `GeoJSON`, and never `tmp`, `SystemData` or `StoreKit`.
  package var includedRoots: [ContainerPath]? {
    switch self {
    case .ios: ["Documents", "Library", "GeoJSON"]
    case .android, .generic: nil
    }
  }

  /// The paths below those that are never backed up.
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

  /// The same for a transfer: another Android device receives everything except the installed libraries.
  package func neverIncluded(for transfer: AndroidTransfer) -> [ContainerPath] {
    self == .android && transfer == .device ? ["lib"] : neverIncluded
  }

  /// The paths that are never restored, even from an archive that has them (`snapshot --include-excluded`, a foreign
  /// archive): the system recreates them, and is misled by old ones.
  package var neverRestored: [ContainerPath] {
    switch self {
    case .ios: ["NewsstandArtwork", "Library/Saved Application State", "Library/SplashBoard"]
    case .android, .generic: []
    }
  }

  /// Why the system's backup skips a path by its name or kind, in any directory; nil when it does not.
  func reason(againstName name: [UInt8], type: FileType) -> String? {
    switch self {
    case .ios: Self.scannerReason(against: name)
    case .android: type == .symbolicLink ? "android does not back up symbolic links" : nil
    case .generic: nil
    }
  }

  private static let safeSave = Array(".plist.".utf8)
  private static let cookies = Array("binarycookies_tmp".utf8)

  private static func scannerReason(against name: [UInt8]) -> String? {
    if name.count >= safeSave.count + 7, name.dropLast(7).suffix(safeSave.count).elementsEqual(safeSave) {
      return "ios skips files of failed saves (NAME.plist.XXXXXXX)"
    }
    if name.starts(with: ".dat.nosync".utf8) { return "ios skips .dat.nosync*" }
    if name.suffix(4).elementsEqual(".dat".utf8), name.dropLast(4).firstRange(of: cookies) != nil {
      return "ios skips *binarycookies_tmp*.dat"
    }
    return nil
  }

  // MARK: Detection

  /// The metadata file in the root of an iOS container: it names app and instance.
  static let metadataFile: ContainerPath = ".com.apple.mobile_container_manager.metadata.plist"

  static func detect(in root: Directory) throws -> ContainerLayout {
    if try root.status(metadataFile) != nil { return .ios }
    let hasDirectory = { (path: ContainerPath) in try root.status(path)?.type == .directory }
    if try hasDirectory("Documents") && hasDirectory("Library") { return .ios }
    // Names that only Android uses, unlike `files`, `databases` and `cache`.
    if try ["shared_prefs", "code_cache", "no_backup"].contains(where: hasDirectory) { return .android }
    let hasDataStore =
      try hasDirectory(.dataStore)
      && root.directory(.dataStore).names().contains { $0.suffix(15).elementsEqual(".preferences_pb".utf8) }
    return hasDataStore ? .android : .generic
  }
}
