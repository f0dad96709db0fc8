import AgeEncryption
import DrydockErrors

/// The document in a vault: the items, the device they belong to, and the keys that the file is sealed to.
package struct VaultDocument: Sendable, Equatable {
  /// The version of the format that this program writes.
  package static let currentFormat = 1

  /// The device's random name, made with its vault: 32 hexadecimal digits. New keys do not change it.
  package let device: String
  /// The keys that the file is sealed to; none in a copy of items for an archive.
  package internal(set) var recipients: [AgeRecipient]
  /// The items.
  package internal(set) var items: [VaultItem.ID: VaultItem]
  /// Fields that this version does not know, as they stand in the document.
  var unknown: [String: SecretBytes] = [:]

  /// A document from its parts; of two items with one id the last counts.
  package init(device: String, recipients: [AgeRecipient] = [], items: some Sequence<VaultItem> = []) {
    (self.device, self.recipients) = (device, recipients)
    self.items = Dictionary(items.map { ($0.id, $0) }, uniquingKeysWith: { _, last in last })
  }

  /// The items in order.
  package var sorted: [VaultItem] { items.sorted { $0.key < $1.key }.map(\.value) }

  /// A name for a device that nothing else has.
  static func newDevice() throws -> String {
    try RandomBytes.make(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}

// MARK: Writing

extension VaultDocument {
  /// The document as JSON, in memory that is wiped.
  package func encoded() -> SecretBytes {
    let (sorted, names) = (sorted, unknown.keys.sorted())
    return SecretJSONWriter.document { writer in
      writer.object { writer in
        writer.field("format")
        writer.integer(Self.currentFormat)
        writer.field("device")
        writer.text(device)
        if !recipients.isEmpty {
          writer.field("recipients")
          writer.array { writer in
            for recipient in recipients {
              writer.element()
              writer.text(recipient.description)
            }
          }
        }
        for name in names {
          writer.field(name)
          if let value = unknown[name] { writer.raw(value) }
        }
        writer.field("items")
        writer.array { writer in
          for item in sorted {
            writer.element()
            item.write(to: &writer)
          }
        }
      }
    }
  }
}

// MARK: Reading

extension VaultDocument {
  /// Reads a document.
  ///
  /// - Throws: ``DrydockError`` with code `badVault` when it is damaged, or of a newer format.
  package init(decoding bytes: SecretBytes, path: String?) throws {
    do {
      self = try bytes.withBytes { bytes in
        try Self.requireFormat(bytes)
        var reader = SecretJSONReader(bytes)
        return try Self(&reader)
      }
    } catch var error as DrydockError where error.code == .badVault {
      error.path = path
      throw error
    }
  }

  /// The format decides what all the rest means, wherever it stands.
  private static func requireFormat(_ bytes: UnsafeRawBufferPointer) throws {
    var format: Int?
    var reader = SecretJSONReader(bytes)
    try reader.object { name, reader in
      if name == "format" { format = try reader.integer() } else { _ = try reader.raw() }
    }
    try reader.end()
    guard let format, format > 0 else {
      throw DrydockError(.badVault, "its document says no format, so that it is no vault of Drydock's")
    }
    guard format <= currentFormat else {
      throw DrydockError(
        .badVault,
        "its document is of format \(format), and this version knows up to \(currentFormat); use a newer Drydock"
      )
    }
  }

  private init(_ reader: inout SecretJSONReader) throws {
    var (device, items): (String?, [VaultItem]?)
    var recipients: [AgeRecipient] = []
    var unknown: [String: SecretBytes] = [:]
    try reader.object { name, reader in
      switch name {
      case "format": _ = try reader.integer()
      case "device": device = try reader.text()
      case "recipients": try reader.array { recipients.append(try Self.recipient(&$0)) }
      case "items":
        var read: [VaultItem] = []
        try reader.array { read.append(try VaultItem(&$0)) }
        items = read
      default: unknown[name] = try reader.raw()
      }
    }
    guard let device, Self.isName(device) else {
      throw DrydockError(.badVault, "its document names no device (32 lower-case hexadecimal digits)")
    }
    guard let items else { throw DrydockError(.badVault, "its document has no items") }
    self.init(device: device, recipients: recipients)
    self.unknown = unknown
    for item in items {
      let id = item.id
      guard self.items.updateValue(item, forKey: id) == nil else {
        throw DrydockError(
          .badVault,
          "two of its items are the same, \(id): restore the vault from a backup, or take one out by hand")
      }
    }
  }

  private static func recipient(_ reader: inout SecretJSONReader) throws -> AgeRecipient {
    let text = try reader.text()
    do { return try AgeRecipient(text) } catch let error as DrydockError {
      throw reader.broken("one of its recipients is none, for \(error.message)")
    }
  }

  private static func isName(_ text: String) -> Bool {
    text.utf8.count == 32 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
