import AgeEncryption
import AppContainer
import ArchiveSigning
import DrydockErrors
import Formats

/// What `drydock.yaml` says about archives.
extension ContainerConfiguration {
  /// The recipients of new archives; empty for plain archives.
  public var recipients: [AgeRecipient] {
    get { self[value: "recipients", default: []] }
    set { self[value: "recipients", default: []] = newValue }
  }

  /// The public keys whose signatures archives must have to be restored, and absolute paths of files of them; nil for
  /// any archive.
  fileprivate var trusted: [String]? {
    get { self[value: "trusted", default: nil] }
    set { self[value: "trusted", default: nil] = newValue }
  }

  /// The keys whose signatures archives must have to be restored; nil for any archive. Reads their files.
  ///
  /// - Throws: `DrydockError` (`badKey`, `notFound`) with the file.
  package func trustedKeys() throws -> TrustedKeys? {
    try trusted?.reduce(into: TrustedKeys()) { keys, text in
      if text.hasPrefix("/") { try keys.add(file: text) } else { try keys.add(line: text) }
    }
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
    let elements = try node.elements("`trusted`")
    guard !elements.isEmpty else {
      throw node.position.error(
        "`trusted` has no key, so that no archive could be restored; name one, or remove the key")
    }
    configuration.trusted = try elements.map { element in
      let text = try element.text("a public key, or a file of public keys")
      guard TrustedKeys.isKey(text), !text.hasPrefix("/") else { return resolve(text) }
      do {
        var keys = TrustedKeys()
        try keys.add(line: text)
      } catch let error as DrydockError {
        throw element.position.error(error.message)
      }
      return text
    }
  }

  package static let retention = ConfigurationSection("retention") { node, configuration, _ in
    if !node.isNull { configuration.retention = try RetentionPolicy(node) }
  }

  package static let fullArchives = ConfigurationSection("snapshot") { node, configuration, _ in
    if !node.isNull { configuration.fullArchives = try FullArchiveRule(node) }
  }
}
