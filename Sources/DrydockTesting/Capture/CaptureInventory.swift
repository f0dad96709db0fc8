import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// What of a container is captured, and what is left out.
struct CaptureInventory {
  struct Item {
    enum Kind {
      case directory, link, file, settings
      /// A directory that carries Apple's flag: its content is left out.
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
    var scan = ContainerScan(staged.live, rules: ExclusionRules(container))
    var skipped: ContainerPath?
    while let entry = try scan.nextEntry() {
      let path = entry.path
      if let skipped, path.isInside(skipped) { continue }
      if let exclusion = entry.exclusion, path != Self.appleMetadata || container.layout != .ios {
        if exclusion.rule == .state { continue }
        dropped.append(.init(path: path.description, reason: exclusion.description))
        if entry.kind == .directory, try staged.live.metadata(path)?.hasAppleFlag == true {
          items.append(Item(path: path, kind: .excludedDirectory))
        }
        continue
      }
      if options.drops(path, isDirectory: entry.kind == .directory) {
        skipped = path
        dropped.append(.init(path: path.description, reason: "chosen"))
        if path == container.vaultPath || container.vaultPath.isInside(path) { hasVault = false }
        continue
      }
      guard let kind = try Self.kind(of: entry, staged) else {
        if entry.kind == .special || entry.kind == .mount {
          dropped.append(.init(path: path.description, reason: "not a file, directory or link"))
        }
        continue
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

/// Reads what is captured: each file twice, once to find out what must not stay, and once to write it down.
struct CaptureSource {
  /// Above this no file belongs into version control.
  private static let sizeLimit = 64 << 20

  /// The container's directory, with its groups.
  var root: Directory { staged.live }
  private let staged: StagedContainer
  private var digests: [ContainerPath: SHA256.Digest] = [:]

  init(_ staged: StagedContainer) { self.staged = staged }

  /// A file's content.
  ///
  /// - Throws: `DrydockError` with code `notCaptured` for a file that is too large, or that has changed: what is new
  ///   in it was not looked at.
  mutating func contents(_ path: ContainerPath) throws -> [UInt8] {
    guard try root.status(path)?.size ?? 0 <= UInt64(Self.sizeLimit) else {
      throw DrydockError(
        .notCaptured, "\(path) has more than 64 MB, which no fixture should hold; leave it out")
    }
    let bytes = try root.contents(path)
    let digest = try bytes.withUnsafeBytes { try SHA256.hash($0) }
    guard digests[path, default: digest] == digest else {
      throw DrydockError(
        .notCaptured, "\(path) changed while it was captured; close the app, or capture again")
    }
    digests[path] = digest
    return bytes
  }

  /// Runs a body with a database: the same captured copy each time.
  func read<T>(
    _ path: ContainerPath, _ options: CaptureOptions, _ body: (CapturedDatabase) throws -> T
  ) throws -> T {
    do {
      return try staged.readDatabase(at: path) { try body(CapturedDatabase(path, in: $0, options)) }
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError(
        .notCaptured, "\(path) cannot be read: \(error.message); leave it out",
        cause: error)
    }
  }
}
