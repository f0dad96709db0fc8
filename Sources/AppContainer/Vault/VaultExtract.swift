import AgeEncryption
import DrydockErrors

/// What an encrypted archive holds of a vault besides the sealed file, for other devices: the items that may leave, and
/// the names of those that may not, so that a restore can tell what stayed behind.
package struct VaultExtract: Sendable, Equatable {
  /// An item that may not leave: all but its value and its attributes.
  package struct Staying: Sendable, Equatable {
    /// Its name for people.
    package var name: String
    /// What keeps it.
    package var accessibility: VaultAccessibility, accessControl: VaultAccessControl?
    /// Whether it is synchronizable.
    package var isSynchronizable: Bool
  }

  /// The device and the items that may leave it; sealed to nobody.
  package private(set) var document: VaultDocument
  /// The items that may not, in the vault's order.
  package private(set) var staying: [Staying]

  /// The field of the document with ``staying``.
  private static let field = "staying"

  /// What of a vault may leave.
  package init(of vault: Vault) {
    document = VaultDocument(device: vault.device, items: vault.sorted.filter(\.leavesDevice))
    staying = vault.sorted.filter { !$0.leavesDevice }.map {
      Staying(
        name: $0.id.description, accessibility: $0.accessibility, accessControl: $0.accessControl,
        isSynchronizable: $0.isSynchronizable)
    }
  }

  // MARK: Writing

  /// The document as JSON, in memory that is wiped.
  package func encoded() -> SecretBytes {
    var document = document
    if !staying.isEmpty {
      let text = SecretJSONWriter.document { writer in
        writer.array { writer in
          for item in staying {
            writer.element()
            Self.write(item, to: &writer)
          }
        }
      }
      // Without the line break at its end, in the middle of another document.
      document.unknown[Self.field] = text.withBytes { .init(copying: .init(rebasing: $0.dropLast())) }
    }
    return document.encoded()
  }

  private static func write(_ item: Staying, to writer: inout SecretJSONWriter) {
    writer.object { writer in
      writer.field("name")
      writer.text(item.name)
      writer.field("accessible")
      writer.text(item.accessibility.rawValue)
      if item.isSynchronizable {
        writer.field("synchronizable")
        writer.bool(true)
      }
      if let accessControl = item.accessControl {
        writer.field("access_control")
        writer.array { writer in
          for flag in accessControl.flags {
            writer.element()
            writer.text(flag)
          }
        }
      }
    }
  }

  // MARK: Reading

  /// Reads a document.
  ///
  /// - Throws: ``DrydockError`` with code `badVault` when it is damaged, of a newer format, or holds an item that may
  ///   not leave its device.
  package init(decoding bytes: SecretBytes, path: String?) throws {
    do {
      document = try VaultDocument(decoding: bytes, path: path)
      staying = try document.unknown.removeValue(forKey: Self.field).map(Self.read) ?? []
    } catch var error as DrydockError where error.code == .badVault {
      error.path = path
      throw error
    }
    if let item = document.sorted.first(where: { !$0.leavesDevice }) {
      throw DrydockError(
        .badVault, "it holds \(item.id), which may not leave its device: no Drydock writes that", path: path)
    }
  }

  private static func read(_ bytes: SecretBytes) throws -> [Staying] {
    try bytes.withBytes { bytes in
      var reader = SecretJSONReader(bytes)
      var items: [Staying] = []
      try reader.array { items.append(try item(&$0)) }
      try reader.end()
      return items
    }
  }

  private static func item(_ reader: inout SecretJSONReader) throws -> Staying {
    let start = reader
    var name: String?
    var accessibility: VaultAccessibility?
    var flags: [String] = []
    var isSynchronizable = false
    try reader.object { field, reader in
      switch field {
      case "name": name = try reader.text()
      case "accessible": accessibility = VaultAccessibility(rawValue: try reader.text())
      case "synchronizable": isSynchronizable = try reader.bool()
      case "access_control": try reader.array { flags.append(try $0.text()) }
      default: _ = try reader.raw()
      }
    }
    guard let name, let accessibility else {
      throw start.broken("an item that stays has no name, or no class that is known")
    }
    return Staying(
      name: name, accessibility: accessibility,
      accessControl: flags.isEmpty ? nil : VaultAccessControl(names: flags),
      isSynchronizable: isSynchronizable)
  }
}
