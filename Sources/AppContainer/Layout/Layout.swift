/// What is where in a container, and what is never backed up.
public enum Layout: String, Sendable, Codable, CaseIterable {
  /// An app's data container as iOS lays it out.
  case ios
  /// Any directory: no rules of its own.
  case generic

  /// Where Drydock keeps the history of migrations: inside the container, so that it travels with it.
  public var historyPath: ContainerPath {
    switch self {
    case .ios: "Library/Application Support/.drydock/history.json"
    case .generic: ".drydock/history.json"
    }
  }

  /// The directories in a container's root that a backup takes from; nil means all.
  ///
  /// An iOS device backup takes `Documents` and `Library` (and `GeoJSON`) of an app's container, and never
  /// `tmp`, `SystemData` or `StoreKit`.
  public var includedRoots: [ContainerPath]? {
    switch self {
    case .ios: ["Documents", "Library", "GeoJSON"]
    case .generic: nil
    }
  }

  /// What is never backed up below those.
  public var neverIncluded: [ContainerPath] {
    switch self {
    case .ios:
      [
        "Library/Caches", "Library/SyncedPreferences", "Library/Saved Application State",
        "Library/SplashBoard",
      ]
    case .generic: []
    }
  }

  /// The metadata file that iOS keeps in the root of a container: it names app and instance.
  static let metadataFile: ContainerPath = ".com.apple.mobile_container_manager.metadata.plist"

  /// The layout that a directory's content shows.
  static func detect(in root: Directory) throws -> Layout {
    if try root.status(metadataFile) != nil { return .ios }
    let hasDocuments = try root.status("Documents")?.type == .directory
    let hasLibrary = try root.status("Library")?.type == .directory
    return hasDocuments && hasLibrary ? .ios : .generic
  }
}
