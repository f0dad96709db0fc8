import AgeEncryption
import FileSystem
import Formats

/// An item of the document.
extension VaultItem {
  /// The attributes that are numbers to most who read the document.
  private static let numbers: Set<VaultAttribute> = [.port, .keySize]

  func write(to writer: inout SecretJSONWriter) {
    writer.object { writer in
      writer.field("class")
      writer.text(itemClass.rawValue)
      for attribute in VaultAttribute.allCases {
        guard let text = self[attribute] else { continue }
        writer.field(attribute.rawValue)
        if Self.numbers.contains(attribute), let number = Int(text), String(number) == text {
          writer.integer(number)
        } else {
          writer.text(text)
        }
      }
      writer.field("accessible")
      writer.text(accessibility.rawValue)
      if isSynchronizable {
        writer.field("synchronizable")
        writer.bool(true)
      }
      if let accessControl {
        writer.field("access_control")
        writer.array { writer in
          for flag in accessControl.flags {
            writer.element()
            writer.text(flag)
          }
        }
      }
      for (name, time) in [("created", created), ("modified", modified)] {
        guard let time else { continue }
        writer.field(name)
        writer.text(time)
      }
      for (name, value) in unknown.sorted(by: { $0.key < $1.key }) {
        writer.field(name)
        writer.raw(value)
      }
      writer.field("value")
      writer.base64(value)
    }
  }

  init(_ reader: inout SecretJSONReader) throws {
    let start = reader
    var itemClass: VaultItemClass?
    var accessibility: VaultAccessibility?
    var value: SecretBytes?
    var item = VaultItem(value: SecretBytes(count: 0) { _ in })
    try reader.object { name, reader in
      switch name {
      case "class": itemClass = try Self.choice(&reader, "class") { VaultItemClass(rawValue: $0) }
      case "accessible":
        accessibility = try Self.choice(&reader, "accessible") { VaultAccessibility(rawValue: $0) }
      case "synchronizable": item.isSynchronizable = try reader.bool()
      case "access_control":
        if reader.isNull() { break }
        var flags: [String] = []
        try reader.array { flags.append(try $0.text()) }
        if !flags.isEmpty { item.accessControl = VaultAccessControl(names: flags) }
      case "created": item.created = try Self.time(&reader)
      case "modified": item.modified = try Self.time(&reader)
      case "value": value = try reader.base64()
      default:
        guard let attribute = VaultAttribute(rawValue: name) else {
          item.unknown[name] = try reader.raw()
          break
        }
        if reader.isNull() { break }
        let isNumber = Self.numbers.contains(attribute) && !reader.isText()
        item[attribute] = isNumber ? String(try reader.integer()) : try reader.text()
      }
    }
    guard let itemClass else { throw start.broken("an item has no class") }
    guard let accessibility else {
      throw start.broken("an item does not say when it is accessible")
    }
    guard let value else { throw start.broken("an item has no value") }
    (item.itemClass, item.accessibility, item.value) = (itemClass, accessibility, value)
    self = item
  }

  private static func choice<Value>(
    _ reader: inout SecretJSONReader, _ field: String, _ value: (String) -> Value?
  ) throws -> Value {
    let text = try reader.text()
    guard let value = value(text) else {
      throw reader.broken(
        "an item's \(field) is \(ContainerPath.printable(Array(text.prefix(40).utf8))), which this version does not know"
      )
    }
    return value
  }

  private static func time(_ reader: inout SecretJSONReader) throws -> String? {
    if reader.isNull() { return nil }
    let text = try reader.text()
    guard UTCTime.isText(text) else { throw reader.broken("a time is not like 2026-11-20T10:15:00Z") }
    return text
  }
}
