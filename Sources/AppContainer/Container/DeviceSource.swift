import DrydockErrors
import FileSystem
import SystemPackage

/// What contains apps' containers and is not one: a backup of a device, or a simulator's device.
package enum DeviceSource: String, Sendable, Codable, CaseIterable {
  /// A directory that Finder or iTunes writes for one device.
  case iphoneBackup = "iphone-backup"
  /// The directory of these, `MobileSync/Backup`.
  case iphoneBackups = "iphone-backups"
  /// The file that `adb backup` writes.
  case androidBackup = "android-backup"
  /// The directory of one device of Xcode's simulator.
  case simulator

  package var name: String {
    switch self {
    case .iphoneBackup: "a device backup of an iPhone or iPad (Finder, iTunes)"
    case .iphoneBackups: "a directory of device backups (Finder, iTunes)"
    case .androidBackup: "an Android backup (adb backup)"
    case .simulator: "a device of Xcode's simulator"
    }
  }

  /// The names of what is in a directory of device backups: UDIDs, old and new, with the time of a copy behind some.
  package static func backups(in directory: Directory) throws -> [ContainerPath] {
    try directory.namesByKind().directories.filter { name in
      let isUDID = name.bytes.prefix(25).allSatisfy { $0.hexDigitValue != nil || $0 == UInt8(ascii: "-") }
      return try isUDID && name.bytes.count >= 25 && isBackup(directory, name)
    }.sorted()
  }

  private static func isBackup(_ directory: Directory, _ place: ContainerPath = .root) throws -> Bool {
    let isThere = { (name: String) in try directory.status(place.appending(name))?.type == .file }
    let hasIndex = try isThere("Manifest.db") || isThere("Manifest.mbdb")
    return try hasIndex && isThere("Manifest.plist")
  }

  /// What a directory is; nil for a container, and for anything else.
  init?(directory: Directory, layout: ContainerLayout) throws {
    if try Self.isBackup(directory) {
      self = .iphoneBackup
    } else if layout != .generic {
      return nil
    } else if try directory.status("data/Containers/Data/Application")?.type == .directory {
      self = .simulator
    } else if try !Self.backups(in: directory).isEmpty {
      self = .iphoneBackups
    } else {
      return nil
    }
  }

  private static let androidMagic = Array("ANDROID BACKUP\n".utf8)
  /// What MIUI writes in front of that, with four lines more.
  package static let miuiMagic = Array("MIUI BACKUP\n".utf8)

  /// What is at a path; nil for a container, for nothing, and for anything else.
  package static func find(at path: String) -> DeviceSource? {
    if let directory = try? Directory(path) {
      return try? DeviceSource(directory: directory, layout: ContainerLayout.detect(in: directory))
    }
    return isAndroidBackup(path) ? .androidBackup : nil
  }

  /// Whether a file begins like an Android backup.
  static func isAndroidBackup(_ path: String) -> Bool {
    // Without waiting for a FIFO's writer.
    guard
      let file = try? FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
    else { return false }
    defer { try? file.close() }
    var start = androidMagic
    _ = try? start.withUnsafeMutableBytes {
      $0.initializeMemory(as: UInt8.self, repeating: 0)
      return try file.read(fromAbsoluteOffset: 0, into: $0)
    }
    return start == androidMagic || start.starts(with: miuiMagic)
  }

  /// The error for a command that needs a container.
  package func error(_ path: String) -> DrydockError {
    let next =
      self == .simulator
      ? "name a container in its data/Containers/Data/Application" : "import the data of an app from it"
    return DrydockError(.notAContainer, "\(name), not a container; \(next)", path: path)
  }
}
