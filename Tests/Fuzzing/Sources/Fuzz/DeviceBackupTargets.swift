import SystemPackage

@testable import AppStores
@testable import ArchiveFile
@testable import Cryptography
@testable import DeviceBackups
@testable import DrydockErrors
@testable import FileSystem

extension FuzzTarget {
  /// A record of a file in a device backup. What is accepted must stay in its container.
  func readRecord(_ bytes: [UInt8]) throws {
    let (domain, path) = ("AppDomain-com.example.notes", "Documents/a")
    for flags in [1, 2, 4] as [Int64] {
      let row = BackupIndex.Row(
        id: try HashFunction.sha1.hash(Array("\(domain)-\(path)".utf8)).hex, domain: domain,
        path: Array(path.utf8),
        flags: flags,
        record: bytes)
      do {
        guard let file = try BackupFile(row) else { fatalError("a file, directory or link is none") }
        guard file.metadata.mode & ~0o1777 == 0 else { fatalError("set-id bits") }
      } catch let error as DrydockError where error.code == .damaged {}
    }
  }

  /// An index as SQLite's bytes.
  func readIndex(_ bytes: [UInt8]) throws {
    try BackupIndex("index") { try $0.writeAll(bytes) }.rows { row in
      guard row.id.utf8.count == 40 else { fatalError("a name of a content that leads elsewhere") }
      _ = try? BackupFile(row)
    }
  }

  /// A whole file of `adb backup`; an encrypted one up to its header, since deriving keys takes long.
  func readAndroidBackup(_ bytes: [UInt8]) throws {
    try MemoryFile.with(bytes) { path in
      let backup = try AndroidBackup(at: path)
      if backup.isEncrypted { return }
      _ = try backup.list(nil, limit: ExpansionLimit(bytes: 32 << 20))
    }
  }

  /// The attributes of a keychain item, which become an item of a vault.
  func readKeychainItem(_ bytes: [UInt8]) throws {
    guard case .dictionary(let values)? = DERValue.read(bytes) else { return }
    for itemClass in VaultItem.Class.allCases { _ = VaultItem(itemClass, keychain: values)?.description }
  }
}
