import AppContainer
import ContainerTransaction
import FileSystem

/// What of a container is captured, and what is left out.
struct CaptureInventory {
  /// One path that is captured.
  struct Item {
    enum Kind {
      case directory, link, file, settings
      /// A directory that carries Apple's flag: what is in it stays out.
      case excludedDirectory
      /// A database; whether it has a log with something in it.
      case database(hasLog: Bool)
    }

    var path: ContainerPath
    var kind: Kind
  }

  /// What Apple's systems write about the container: which app it is of.
  private static let appleMetadata: ContainerPath = ".com.apple.mobile_container_manager.metadata.plist"

  private(set) var items: [Item] = []
  private(set) var dropped: [CaptureReport.Dropped] = []
  /// Whether the vault is captured, too, if there is one.
  private(set) var hasVault = true

  init(_ staged: StagedContainer, _ options: CaptureOptions) throws {
    let container = staged.container
    let scan = ContainerScan(staged.live, rules: ExclusionRules(container))
    var skipped: ContainerPath?
    try scan.visit { entry in
      let path = entry.path
      if let skipped, path.isInside(skipped) { return }
      if let exclusion = entry.exclusion, path != Self.appleMetadata || container.layout != .ios {
        if exclusion.rule == .state { return }
        dropped.append(.init(path: path.description, reason: exclusion.description))
        if entry.kind == .directory, try staged.live.metadata(path)?.hasAppleFlag == true {
          items.append(Item(path: path, kind: .excludedDirectory))
        }
        return
      }
      if options.drops(path, isDirectory: entry.kind == .directory) {
        skipped = path
        dropped.append(.init(path: path.description, reason: "--drop"))
        if path == container.vaultPath || container.vaultPath.isInside(path) { hasVault = false }
        return
      }
      guard let kind = try Self.kind(of: entry, staged) else {
        if entry.kind == .special || entry.kind == .mount {
          dropped.append(.init(path: path.description, reason: "no file, directory or link"))
        }
        return
      }
      items.append(Item(path: path, kind: kind))
    }
  }

  private static func kind(of entry: ScannedEntry, _ staged: StagedContainer) throws -> Item.Kind? {
    switch entry.kind {
    case .directory: return .directory
    case .symbolicLink: return .link
    case .file where entry.path == staged.container.vaultPath: return nil
    case .file where entry.path == appleMetadata || staged.container.isSettings(entry.path): return .settings
    case .file: return .file
    case .database(let unit):
      let log = try staged.live.status(unit.main.withSuffix("-wal"))?.size ?? 0
      return .database(hasLog: log > 0)
    case .sidecar, .mount, .special: return nil
    }
  }
}
