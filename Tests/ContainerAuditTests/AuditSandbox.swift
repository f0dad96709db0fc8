import AgeEncryption
import Cryptography
import Foundation
import GRDB
import TestSupport

@testable import AppContainer
@testable import AppStores
@testable import ContainerAudit
@testable import ContainerTransaction
@testable import FileSystem
@testable import Formats

/// A container in a temporary directory, with what an app may do to it, and what is given to an audit.
final class AuditSandbox {
  static let settings = "Library/Preferences/com.example.notes.plist"

  let folder: TemporaryDirectory
  let root: Directory
  var configuration = ContainerConfiguration()
  var keys: DeviceKeys?
  var app: AppDeclaration?

  init() throws {
    folder = try TemporaryDirectory()
    try Directory(folder.path).createDirectory("c")
    root = try Directory(folder("c"))
    configuration.layout = .ios
    configuration.app = "com.example.notes"
  }

  func audit() throws -> AuditReport {
    var options = AuditOptions()
    options.transaction.deviceKeys = keys
    options.app = app
    return try Audit.run(on: Container(at: folder("c"), configuration: configuration), options: options)
  }

  func put(_ path: String, _ text: String, mode: UInt16 = 0o600) throws {
    try put(path, bytes: Array(text.utf8), mode: mode)
  }

  func put(_ path: String, bytes: [UInt8], mode: UInt16 = 0o600) throws {
    let path = try ContainerPath(path)
    try root.createDirectories(path.parent, mode: 0o755)
    try root.create(path, bytes)
    try root.setMode(mode, of: path)
  }

  /// A file that has a size and no content.
  func put(_ path: String, sparse size: Int) throws {
    try put(path, "")
    let file = try root.open(ContainerPath(path), .writeOnly)
    defer { try? file.close() }
    try file.resize(to: Int64(size))
  }

  func settings(_ values: PropertyListDictionary, at path: String = settings) throws {
    try put(path, bytes: PropertyListFile(root: values).encoded())
  }

  func database(
    _ sql: String, at path: String = "Library/Application Support/notes.sqlite"
  ) throws {
    try root.createDirectories(ContainerPath(path).parent, mode: 0o755)
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: folder("c/" + path), configuration: configuration)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  func vault(_ items: VaultItem...) throws {
    let keys = DeviceKeys(try AgeIdentity.generate())
    var vault = try Vault(new: keys)
    for item in items { vault.put(item) }
    try put("Library/Vault/vault.age", bytes: vault.sealed())
    self.keys = keys
  }

  func item(
    _ accessibility: VaultItem.Accessibility, account: String = "ada", group: String? = nil,
    _ itemClass: VaultItem.Class = .genericPassword
  ) throws -> VaultItem {
    VaultItem(
      itemClass, service: "com.example.notes", account: account, accessGroup: group,
      accessibility: accessibility, value: SecretBytes(Array("value".utf8)))
  }

  func protect(_ path: String, _ protection: ProtectionClass) throws {
    try root.setAttribute(
      ExtendedAttribute(name: ProtectionClass.attribute, value: Array(protection.appleName.utf8)),
      of: ContainerPath(path))
  }

  func declare(
    info: PropertyListDictionary? = nil, privacy: PropertyListDictionary? = nil,
    entitlements: PropertyListDictionary? = nil
  ) {
    app = AppDeclaration(
      info: info.map { .init(path: "Info.plist", values: $0) },
      privacy: privacy.map { [.init(path: "PrivacyInfo.xcprivacy", values: $0)] },
      entitlements: entitlements.map { .init(path: "Notes.entitlements", values: $0) })
  }
}

/// Made-up secrets, in pieces: no program that looks for secrets in source code finds them.
enum MadeUp {
  static let github = "gh" + "p_" + "q7Zk3VwX9pLmR8Yj4UvW0oKnS9Xh"
  static let aws = "AK" + "IA" + "Q7ZK3VWX9PLMR8YJ"
  static let google = "AI" + "za" + "SyQ7Zk3VwX9pLmR8Yj4UvW0oKnS9Xh5TuV1"
  static let slack = "xo" + "xb-" + "812739-q7Zk3VwX9pLm"
  static let stripe = "sk_" + "live_" + "q7Zk3VwX9pLmR8Yj4UvW"
  static let jwt = "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.q7Zk3VwX9pLmR8Yj4UvW0oKn"
  static let pem = "-----BEGIN " + "RSA PRIVATE KEY-----\nq7Zk3VwX9pLm\n-----END RSA PRIVATE KEY-----\n"
  static let password = "q7Zk3VwX9pLm"
}
