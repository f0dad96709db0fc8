import AgeEncryption
import AppContainer
import DrydockErrors
import Formats

/// What `drydock.yaml` says about archives.
extension ContainerConfiguration {
  /// The recipients of new archives; empty for plain archives.
  public var recipients: [AgeRecipient] {
    get { self[value: "recipients", default: []] }
    set { self[value: "recipients", default: []] = newValue }
  }

  /// The keys whose signatures archives must have to be restored; nil for any archive.
  package var trusted: TrustedKeyList? {
    get { self[value: "trusted", default: nil] }
    set { self[value: "trusted", default: nil] = newValue }
  }

  /// The rules for keeping archives, when `forget` gets no others.
  public var retention: RetentionPolicy {
    get { self[value: "retention", default: RetentionPolicy()] }
    set { self[value: "retention", default: RetentionPolicy()] = newValue }
  }

  /// When a snapshot is a full archive.
  public var fullArchives: FullArchiveRule {
    get { self[value: "snapshot", default: FullArchiveRule()] }
    set { self[value: "snapshot", default: FullArchiveRule()] = newValue }
  }
}

extension ConfigurationSection {
  package static let recipients = ConfigurationSection("recipients") { node, configuration, _ in
    if node.isNull { return }
    configuration.recipients = try node.elements("`recipients`").map { node in
      let text = try node.text("a recipient")
      do { return try AgeRecipient(text) } catch let error as DrydockError {
        throw node.position.error(error.message)
      }
    }
  }

  // Without keys it is an error, and not the absence of the policy: the last key may have been commented out.
  package static let trusted = ConfigurationSection("trusted") { node, configuration, resolve in
    configuration.trusted = try TrustedKeyList(node, resolve)
  }

  package static let retention = ConfigurationSection("retention") { node, configuration, _ in
    if !node.isNull { configuration.retention = try RetentionPolicy(node) }
  }

  package static let fullArchives = ConfigurationSection("snapshot") { node, configuration, _ in
    if !node.isNull { configuration.fullArchives = try FullArchiveRule(node) }
  }
}
