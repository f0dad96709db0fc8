import AppContainer
import Formats

/// The rules of an audit, by the names in `drydock.yaml` and in reports.
public enum AuditRuleID: String, Sendable, Codable, CaseIterable {
  // MARK: Secrets
  case secretInSettings = "secret-in-settings"
  case secretInDocument = "secret-in-document"
  case secretInLog = "secret-in-log"
  case secretInDatabase = "secret-in-database"
  case tokenInRows = "token-in-rows"

  // MARK: Settings
  case settingsLarge = "settings-large"
  case blobInSettings = "blob-in-settings"
  case jsonInSettings = "json-in-settings"
  case pathInSettings = "container-path-in-settings"
  case customClassInArchive = "custom-class-in-archive"
  case cloudStoreLimit = "icloud-store-limit"
  case settingsDamaged = "settings-damaged"
  case settingsOfDevice = "settings-of-one-device"

  // MARK: Vault
  case keychainAlways = "keychain-always-accessible"
  case keychainKeyLeaves = "keychain-key-leaves-device"
  case keychainNoGroup = "keychain-no-access-group"

  // MARK: Files
  case protectionBelowPolicy = "protection-below-policy"
  case protectionBelowRule = "protection-below-rule"
  case worldReadable = "world-readable-file"
  case worldWritable = "world-writable-file"
  case cacheInBackup = "cache-in-backup"
  case userDataNotInBackup = "user-data-not-in-backup"
  case largeIncluded = "large-included-directory"
  case largeExcluded = "large-excluded-directory"
  case backupTooLarge = "android-backup-too-large"

  // MARK: Databases
  case databaseDamaged = "database-damaged"
  case foreignKeyViolated = "foreign-key-violated"
  case foreignKeyWithoutIndex = "foreign-key-without-index"
  case pathInDatabase = "container-path-in-database"
  case freePages = "database-free-pages"
  case smallPages = "database-small-pages"
  case walLarge = "wal-large"

  // MARK: Versions
  case versionContradiction = "version-contradiction"

  // MARK: What the app declares
  case privacyManifestMissing = "privacy-manifest-missing"
  case privacyManifestInvalid = "privacy-manifest-invalid"
  case requiredReasonMissing = "required-reason-missing"
  case dataTypeNotDeclared = "data-type-not-declared"
  case usageDescriptionEmpty = "usage-description-empty"
  case usageDescriptionUnknown = "usage-description-unknown"
  case usageDescriptionMissing = "usage-description-missing"
  case groupNotEntitled = "group-not-entitled"
  case groupNotConfigured = "group-not-configured"
  case keychainGroupNotEntitled = "keychain-group-not-entitled"
  case cloudNotEntitled = "icloud-not-entitled"
  case transportException = "transport-security-exception"
}

/// How serious a finding of an audit is.
public enum AuditSeverity: String, Sendable, Codable, CaseIterable, Comparable {
  case note, warning, error

  public static func < (left: Self, right: Self) -> Bool {
    (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
  }
}

/// `audit:` in `drydock.yaml`.
package struct AuditConfiguration: Sendable, Equatable {
  package enum Setting: Sendable, Equatable {
    case off(reason: String)
    case severity(AuditSeverity)
  }

  package var rules: [AuditRuleID: Setting] = [:]
  /// The class of data protection that the app's files are meant to have, at least.
  package var protection: ProtectionClass?

  package init() {}

  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "`audit`", keys: ["rules", "protection"])
    protection = try reader.choice("protection", of: ProtectionClass.self)
    for pair in try reader.pairs("rules") {
      guard let rule = AuditRuleID(rawValue: pair.key.source) else {
        let known = AuditRuleID.allCases.map(\.rawValue)
        throw pair.keyPosition.error(
          "unknown audit rule `\(pair.key.source)`; "
            + (NearestWord.to(pair.key.source, among: known).map { "did you mean `\($0)`?" }
              ?? "it is none of the \(known.count) rules"))
      }
      rules[rule] = try Self.setting(pair.value, of: rule)
    }
  }

  private static func setting(_ node: YAMLNode, of rule: AuditRuleID) throws -> Setting {
    let advice =
      "write `\(rule.rawValue): {off: \"the reason\"}`, or `{severity: SEVERITY}` with note, warning or error"
    guard node.mapping != nil else {
      throw node.position.error("a rule is switched off with a reason, or gets another severity: \(advice)")
    }
    let reader = try YAMLReader(node, what: "`\(rule.rawValue)`", keys: ["off", "severity"])
    switch (reader["off"], try reader.choice("severity", of: AuditSeverity.self)) {
    case (let reason?, nil):
      let reason = try reason.text("`off`, the reason,")
      guard reason.contains(where: { !$0.isWhitespace }) else {
        throw node.position.error("`off` needs a reason: \(advice)")
      }
      return .off(reason: reason)
    case (nil, let severity?): return .severity(severity)
    default: throw node.position.error("a rule has one of `off` and `severity`: \(advice)")
    }
  }
}

extension ContainerConfiguration {
  /// Audit rules that are off, or have another severity.
  package var audit: AuditConfiguration {
    get { self[value: "audit", default: AuditConfiguration()] }
    set { self[value: "audit", default: AuditConfiguration()] = newValue }
  }
}

extension ConfigurationSection {
  package static let audit = ConfigurationSection("audit") { node, configuration, _ in
    if !node.isNull { configuration.audit = try AuditConfiguration(node) }
  }
}
