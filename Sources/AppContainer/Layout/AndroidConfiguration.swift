import FileSystem
import Formats

/// What `drydock.yaml` says under `android:`: the app's own backup rules, and what a backup is taken for.
package struct AndroidConfiguration: Sendable, Equatable {
  /// What the backup is made for.
  package var transfer = AndroidTransfer.cloud
  /// Whether it counts as encrypted on the client's side.
  package var isEncrypted = false
  /// Up to Android 11.
  var fullBackupContent: AndroidRuleFile?
  /// Since Android 12.
  var dataExtractionRules: AndroidRuleFile?

  /// Says nothing.
  package init() {}

  /// Reads the mapping; files are relative to `folder`.
  init(_ node: YAMLNode, folder: String) throws {
    let reader = try YAMLReader(
      node, what: "android",
      keys: ["full-backup-content", "data-extraction-rules", "transfer", "client-side-encryption"])
    transfer = try reader.choice("transfer") ?? .cloud
    isEncrypted = try reader.boolean("client-side-encryption") ?? false
    let read = { (key: String, root: AndroidRuleFile.Root) throws -> AndroidRuleFile? in
      guard let path = try reader.text(key) else { return nil }
      return try AndroidRuleFile(path.hasPrefix("/") ? path : folder + "/" + path, root)
    }
    fullBackupContent = try read("full-backup-content", .fullBackupContent)
    dataExtractionRules = try read("data-extraction-rules", .dataExtractionRules)
  }

  /// What in the rule files has no effect and why, each with `file:line`.
  package var notes: [String] { (fullBackupContent?.notes ?? []) + (dataExtractionRules?.notes ?? []) }

  /// The rules that count, placed in a container; nil when there are none and everything is taken.
  func rules(isDirectory: (ContainerPath) -> Bool) -> AndroidRules? {
    let section =
      dataExtractionRules?.section(for: transfer)
      ?? fullBackupContent?.section(for: transfer)
    guard let section else { return nil }
    var flags: Set<String> = []
    if isEncrypted { flags.insert("clientSideEncryption") }
    if transfer == .device { flags.insert("deviceToDeviceTransfer") }
    let disabled =
      section.needsEncryption && !isEncrypted
      ? "\(section.source): Android makes no such backup without encryption; set client-side-encryption" : nil
    return AndroidRules(section.rules, flags: flags, disabled: disabled, isDirectory: isDirectory)
  }
}
