import AppContainer
import AppStores
import Cryptography
import DrydockTesting
import FileSystem
import Formats
import Foundation
import TestSupport

/// A container for tests of goldens, made of what a test says.
struct GoldenContainer {
  static let settings: ContainerPath = "Library/Preferences/com.example.g.plist"

  let container: Container
  let directory: Directory
  var volatile: VolatileValues
  /// What the vault is sealed and opened with.
  var keys: DeviceKeys?
  private let folder: TemporaryDirectory

  init(
    _ folder: TemporaryDirectory, _ name: String = "c", groups: [String: String] = [:],
    volatile: VolatileValues = VolatileValues(), keys: DeviceKeys? = nil
  ) throws {
    (self.folder, self.volatile, self.keys) = (folder, volatile, keys)
    let root = folder(name)
    var configuration = ContainerConfiguration()
    (configuration.app, configuration.layout, configuration.groups) = ("com.example.g", .ios, groups)
    for path in ["Library/Preferences", "Library/Caches", "Documents", "tmp"] {
      try RawFiles.createDirectories("\(root)/\(path)")
    }
    directory = try Directory(root)
    for path in [".", "Library", "Library/Preferences", "Library/Caches", "Documents", "tmp"] {
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: "\(root)/\(path)")
    }
    container = try Container(at: root, configuration: configuration)
  }

  func set(_ values: PropertyListDictionary, _ path: ContainerPath = settings) throws {
    try directory.replace(path, with: PropertyListFile(root: values).encoded())
  }

  func sql(_ text: String, _ path: String = "Documents/db.sqlite") throws {
    let result = try Command.run(Tools.system("sqlite3"), ["-bail", "\(directory.path)/\(path)", text])
    guard result.succeeded else { throw SystemFailure("\(result)") }
  }

  func seal(_ items: [VaultItem]) throws {
    guard let keys else { throw SystemFailure("no keys are given") }
    var vault = try Vault(new: keys)
    for item in items { vault.put(item) }
    try directory.createDirectories(container.vaultPath.parent, mode: 0o755)
    try directory.replace(container.vaultPath, with: vault.sealed())
  }

  func write(_ name: String = "golden") throws {
    try GoldenText(of: container, volatile: volatile, deviceKeys: keys).write(to: folder(name))
  }

  func findings(_ name: String = "golden", rowLimit: Int = 20) throws -> [FixtureResult.Finding] {
    try GoldenText(of: container, volatile: volatile, deviceKeys: keys).findings(
      against: folder(name), volatile: volatile, rowLimit: rowLimit)
  }

  func text(_ file: String, of name: String = "golden") throws -> String {
    try String(contentsOfFile: "\(folder(name))/\(file)", encoding: .utf8)
  }

  /// Edits a file of the golden by hand.
  func edit(_ file: String, _ old: String, _ new: String) throws {
    let text = try text(file)
    guard text.contains(old) else { throw SystemFailure("\(file) has no \(old): \(text)") }
    try text.replacing(old, with: new).write(
      toFile: "\(folder("golden"))/\(file)", atomically: true, encoding: .utf8)
  }
}

extension VaultItem {
  static func made(_ account: String, _ value: String) -> VaultItem {
    VaultItem(
      service: "com.example.g", account: account, accessibility: .afterFirstUnlock,
      value: SecretBytes(Array(value.utf8)))
  }
}
