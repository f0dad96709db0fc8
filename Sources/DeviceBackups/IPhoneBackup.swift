import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation
import SystemPackage

/// A backup of an iPhone or iPad as Finder and iTunes write it: a directory of files named by hashes, and an index. It is
/// only read.
package struct IPhoneBackup: Sendable {
  package let path: String
  package let isEncrypted: Bool
  /// Whether `Status.plist` says that the backup was not completed.
  let isUnfinished: Bool
  /// What `Info.plist` says: the device's name, its system, and when the backup was made, where known.
  package let device: String?, system: String?, time: String?
  let directory: Directory
  private let manifest: PropertyListDictionary

  /// - Throws: `DrydockError`: `notFound`, `notAContainer` for another directory, `damaged`, `newerFormat` for a backup of
  ///   iOS 9 or earlier.
  package init(at path: String) throws {
    self.path = path
    let source = DeviceSource.find(at: path)
    if let source, source == .androidBackup || source == .simulator { throw source.error(path) }
    let opened = try Directory(path)
    guard source == .iphoneBackup else {
      let backups = (try? DeviceSource.backups(in: opened)) ?? []
      let names = backups.prefix(10).map(\.description).joined(separator: ", ")
      let missing = try [Self.manifestName, BackupIndex.name].filter { try opened.status($0)?.type != .file }
      let lacks = missing.map(\.description).joined(separator: " and no ")
      throw DrydockError(
        .notAContainer,
        backups.isEmpty
          ? "not a device backup: it has no \(lacks); name the directory of one device, copied as a whole"
          : "a directory of device backups; name one of them: \(names)", path: path)
    }
    directory = opened
    guard try directory.status(BackupIndex.name)?.type == .file else {
      throw DrydockError(
        .newerFormat, "a backup of iOS 9 or earlier (Manifest.mbdb), which is not supported", path: path)
    }
    manifest = try Self.propertyList(Self.manifestName, directory)
    switch manifest["IsEncrypted"] {
    case .boolean(let flag)?: isEncrypted = flag
    case nil: isEncrypted = false
    default: throw Self.damaged("`IsEncrypted` of Manifest.plist is not a Bool", path)
    }
    let info = (try? Self.propertyList("Info.plist", directory)) ?? [:]
    let state = (try? Self.propertyList("Status.plist", directory))?.text("SnapshotState")
    isUnfinished = state.map { $0 != "finished" } ?? false
    device = info.text("Device Name")
    system = info.text("Product Version").map { "iOS \($0)" }
    if case .date(let date)? = info["Last Backup Date"] { time = UTCTime.text(date) } else { time = nil }
  }

  private static let manifestName: ContainerPath = "Manifest.plist"

  private static func propertyList(
    _ name: ContainerPath, _ directory: Directory
  ) throws -> PropertyListDictionary {
    do {
      return try PropertyListFile(bytes: directory.contents(name)).root
    } catch let error as DrydockError where error.code == .malformed {
      throw damaged("\(name) cannot be read (\(error.message))", directory.path)
    }
  }

  static func damaged(_ what: String, _ path: String) -> DrydockError {
    DrydockError(.damaged, "the backup is damaged: \(what); use another copy of it", path: path)
  }

  /// The groups that `Manifest.plist` gives an app, if it does.
  func declaredGroups(of app: String) -> Set<String> {
    guard case .dictionary(let apps)? = manifest["Applications"], case .dictionary(let own)? = apps[app]
    else {
      return []
    }
    switch own["GroupContainers"] {
    case .dictionary(let groups)?: return Set(groups.keys.map(\.text))
    case .array(let groups)?:
      return Set(groups.compactMap { if case .string(let id) = $0 { id } else { nil } })
    default: return []
    }
  }

  /// Opens the index.
  ///
  /// - Parameter password: of an encrypted backup; nil for one that is not encrypted.
  /// - Throws: `DrydockError`: `badKey` for a wrong password, `damaged`, `limit`.
  package func opened(with password: SecretBytes?) throws -> OpenedBackup {
    try DrydockError.locating(path) { try open(password) }
  }

  private func open(_ password: SecretBytes?) throws -> OpenedBackup {
    let (keys, key) = try isEncrypted ? unlock(password) : ([:], nil)
    return OpenedBackup(
      backup: self, keys: keys,
      index: try BackupIndex(directory.full(BackupIndex.name)) { file in
        try read(BackupIndex.name, key) { _ = try file.writeAll($0) }
      })
  }

  /// The keys of the classes, and the index's; iOS 10.0 and 10.1 encrypt the contents and not the index.
  private func unlock(_ password: SecretBytes?) throws -> ([UInt32: SecretBytes], SecretBytes?) {
    guard let password else {
      throw DrydockError(.badKey, "the backup is encrypted, and no password was given")
    }
    guard case .data(let keybag)? = manifest["BackupKeyBag"], keybag.count <= 1 << 20 else {
      throw Self.damaged("Manifest.plist has no keybag", path)
    }
    let keys = try BackupKeybag(keybag).unlock(password)
    guard let field = manifest["ManifestKey"] else { return (keys, nil) }
    guard case .data(let bytes) = field, let own = ClassWrappedKey(bytes), let key = try own.unwrapped(keys)
    else { throw Self.damaged("the key of its index cannot be opened", path) }
    return (keys, key)
  }

  /// The pieces of a file of the backup, decrypted where there is a key.
  func read(_ name: ContainerPath, _ key: SecretBytes?, _ body: ([UInt8]) throws -> Void) throws {
    // Without waiting: a FIFO must be refused instead of hanging.
    let file = try directory.openFile(name)
    defer { try? file.close() }
    guard try FileStatus(of: file, path: directory.full(name)).type == .file else {
      throw Self.damaged("it has something that is not a file", directory.full(name))
    }
    var pieces = FilePieces(file, directory.full(name))
    let cipher = try key.map { try CBCDecryption(key: $0, iv: [UInt8](repeating: 0, count: 16)) }
    while let piece = try pieces.next() {
      let plain = try cipher?.update(piece) ?? piece
      if !plain.isEmpty { try body(plain) }
    }
    guard let cipher else { return }
    guard let rest = cipher.finish() else {
      throw Self.damaged("a file cannot be decrypted, or was cut", directory.full(name))
    }
    if !rest.isEmpty { try body(rest) }
  }
}

extension PropertyListDictionary {
  func text(_ key: String) -> String? { if case .string(let text)? = self[key] { text } else { nil } }
}

/// A file, read from a place on to its end.
struct FilePieces {
  private static let size = 256 << 10
  private let file: FileDescriptor
  private let path: String
  private var offset: Int64

  init(_ file: FileDescriptor, _ path: String, from offset: Int64 = 0) {
    (self.file, self.path, self.offset) = (file, path, offset)
  }

  /// Nil at the end.
  mutating func next() throws -> [UInt8]? {
    let piece = try DrydockError.translating("cannot read", path) { try file.bytes(Self.size, at: offset) }
    offset += Int64(piece.count)
    return piece.isEmpty ? nil : piece
  }
}

/// A device backup whose index can be read, with the keys of its classes.
package struct OpenedBackup {
  package let backup: IPhoneBackup
  let keys: [UInt32: SecretBytes]
  let index: BackupIndex

  /// All apps, groups and extensions with data, sorted.
  package func list() throws -> [BackupContents] {
    var found: [String: BackupContents] = [:]
    try index.rows { row in
      guard let kind = BackupContents.Kind(domain: row.domain) else { return }
      var contents =
        found[row.domain] ?? BackupContents(id: String(row.domain.dropFirst(kind.prefix.count)), kind: kind)
      do {
        if case .file(let size)? = try BackupFile(row)?.kind {
          contents.files += 1
          contents.bytes += min(size, UInt64(Int64.max) - contents.bytes)
        }
      } catch is DrydockError {
        // Damaged records of one app do not prevent the import of another's.
        contents.damaged += 1
      }
      found[row.domain] = contents
    }
    return found.values.sorted { ($0.kind, $0.id) < ($1.kind, $1.id) }
  }

  private func name(of file: BackupFile) throws -> ContainerPath {
    try ContainerPath(String(file.id.prefix(2)) + "/" + file.id)
  }

  /// The bytes that a file's content takes in the backup, at most a block more than it has.
  func storedSize(of file: BackupFile) throws -> UInt64 {
    try backup.directory.status(name(of: file))?.size ?? 0
  }

  /// The pieces of a file's content.
  ///
  /// - Returns: why it is not in the backup; nil when it is.
  func read(_ file: BackupFile, _ body: ([UInt8]) throws -> Void) throws -> String? {
    let name = try name(of: file)
    guard try backup.directory.status(name)?.type == .file else {
      return file.size == 0 ? nil : "the backup does not have its content"
    }
    guard backup.isEncrypted else {
      try backup.read(name, nil, body)
      return nil
    }
    guard let wrapped = file.key else {
      return file.size == 0 ? nil : "it has no key, in an encrypted backup"
    }
    guard let key = try wrapped.unwrapped(keys) else { return "its key cannot be opened" }
    do {
      try backup.read(name, key, body)
      return nil
    } catch let error as DrydockError where error.code == .damaged {
      return "its content cannot be decrypted, or was cut"
    }
  }
}

/// An app, a group or an extension in a backup, and what it has there.
package struct BackupContents: Sendable, Codable, Equatable {
  package enum Kind: String, Sendable, Codable, CaseIterable, Comparable {
    case app, group, plugin

    /// What its domain begins with.
    var prefix: String {
      switch self {
      case .app: "AppDomain-"
      case .group: "AppDomainGroup-"
      case .plugin: "AppDomainPlugin-"
      }
    }

    init?(domain: String) {
      guard let kind = Self.allCases.first(where: { domain.hasPrefix($0.prefix) }) else { return nil }
      self = kind
    }

    package static func < (left: Self, right: Self) -> Bool {
      left.rawValue.utf8.count == right.rawValue.utf8.count
        ? left.rawValue < right.rawValue : left.rawValue.utf8.count < right.rawValue.utf8.count
    }
  }

  package var id: String, kind: Kind
  /// Files and the bytes of their contents.
  package var files = 0, bytes: UInt64 = 0
  /// Paths that an import would refuse.
  package var damaged = 0
}
