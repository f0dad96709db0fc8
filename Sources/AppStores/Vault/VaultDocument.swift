import AgeEncryption
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation

// The document in a vault's file.
extension Vault {
  /// The version of the format that this program writes.
  package static let currentFormat = 1
  /// The most levels of nesting that the format allows.
  private static let depthLimit = 32

  // MARK: Writing

  package func encoded() -> SecretBytes { encoded(with: []) }

  fileprivate func encoded(with more: [JSONField]) -> SecretBytes {
    var fields: [JSONField] = [
      ("format", .number(JSONNumber(Self.currentFormat))), ("device", .text(device)),
    ]
    if !recipients.isEmpty { fields.append(("recipients", .texts(recipients.map(\.description)))) }
    fields += unknown.sorted + more
    fields.append(("items", .array(JSONArray(sorted.map { .object(JSONObject($0.fields)) }))))
    var bytes = JSONDocument(.object(JSONObject(fields)), isIndented: true).bytes
    return SecretBytes(wiping: &bytes)
  }

  // MARK: Reading

  /// Reads a document.
  ///
  /// - Throws: ``DrydockError`` (`badVault`) when it is corrupt or of a newer format.
  package init(decoding bytes: SecretBytes, path: String?) throws {
    do {
      let bytes = bytes.withBytes { Array($0) }
      var fields = try VaultFields(
        JSONDocument(bytes: bytes, depthLimit: Self.depthLimit).value, "the document")
      // The format decides what all other fields mean.
      try Self.requireFormat(&fields)
      try self.init(&fields)
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError(.badVault, "the vault document is \(error.message)", path: path)
    } catch var error as DrydockError where error.code == .badVault {
      error.path = path
      throw error
    }
  }

  private static func requireFormat(_ fields: inout VaultFields) throws {
    guard let format = try fields.integer("format"), format > 0 else {
      throw DrydockError(.badVault, "the vault document has no format, so it is not a Drydock vault")
    }
    guard format <= currentFormat else {
      throw DrydockError(
        .badVault,
        "the vault document has format \(format), and this version supports up to \(currentFormat); use a newer Drydock"
      )
    }
  }

  private init(_ fields: inout VaultFields) throws {
    guard let device = try fields.text("device"), Self.isName(device) else {
      throw DrydockError(.badVault, "the vault document has no device (32 lower-case hexadecimal digits)")
    }
    let recipients = try (fields.texts("recipients") ?? []).map(Self.recipient)
    guard let items = try fields.array("items") else {
      throw DrydockError(.badVault, "the vault document has no items")
    }
    self.init(device: device, recipients: recipients)
    for value in items {
      let item = try VaultItem(value)
      guard self.items.updateValue(item, forKey: item.id) == nil else {
        throw DrydockError(
          .badVault,
          "the vault document has two items \(item.id); restore the vault from a backup, or remove one by hand"
        )
      }
    }
    unknown = fields
  }

  private static func recipient(_ text: String) throws -> AgeRecipient {
    do { return try AgeRecipient(text) } catch let error as DrydockError {
      throw VaultFields.invalid("one of its recipients is not valid: \(error.message)")
    }
  }

  private static func isName(_ text: String) -> Bool {
    text.utf8.count == 32 && text.utf8.allSatisfy(\.isLowercaseHexDigit)
  }
}

// MARK: Items

extension VaultItem {
  /// The attributes that are numbers in the document.
  private static let numbers: Set<VaultItem.Attribute> = [.port, .keySize]

  fileprivate var fields: [JSONField] {
    var fields: [JSONField] = [("class", .text(itemClass.rawValue))]
    for attribute in VaultItem.Attribute.allCases {
      guard let text = self[attribute] else { continue }
      if Self.numbers.contains(attribute), let number = Int(text), String(number) == text {
        fields.append((attribute.rawValue, .number(JSONNumber(number))))
      } else {
        fields.append((attribute.rawValue, .text(text)))
      }
    }
    fields.append(("accessible", .text(accessibility.rawValue)))
    if isSynchronizable { fields.append(("synchronizable", .boolean(true))) }
    if let accessControl { fields.append(("access_control", .texts(accessControl.flags))) }
    if let created { fields.append(("created", .text(created))) }
    if let modified { fields.append(("modified", .text(modified))) }
    fields += unknown.sorted
    fields.append(("value", .text(value.withBytes { Data($0) }.base64EncodedString())))
    return fields
  }

  fileprivate init(_ value: JSONValue) throws {
    var fields = try VaultFields(value, "an item")
    guard let itemClass = try fields.choice("class", { VaultItem.Class(rawValue: $0) }) else {
      throw VaultFields.invalid("an item has no class")
    }
    guard let accessibility = try fields.choice("accessible", { VaultItem.Accessibility(rawValue: $0) })
    else {
      throw VaultFields.invalid("an item has no field `accessible`")
    }
    guard let value = try fields.base64("value") else { throw VaultFields.invalid("an item has no value") }
    self.init(itemClass, accessibility: accessibility, value: value)
    for attribute in VaultItem.Attribute.allCases {
      let isNumber = Self.numbers.contains(attribute) && fields.isNumber(attribute.rawValue)
      self[attribute] =
        try isNumber
        ? fields.integer(attribute.rawValue).map { String($0) } : fields.text(attribute.rawValue)
    }
    isSynchronizable = try fields.boolean("synchronizable") ?? false
    let flags = try fields.texts("access_control") ?? []
    if !flags.isEmpty { accessControl = VaultItem.AccessControl(names: flags) }
    created = try fields.time("created")
    modified = try fields.time("modified")
    unknown = fields
  }

  /// Adds a field that this version does not use, such as an attribute of a keychain that a vault has no name for.
  package mutating func setUnknown(_ name: String, _ value: JSONValue) { unknown.set(name, value) }

  /// Whether the document has fields of the item that this version does not know.
  package var hasUnknownFields: Bool { !unknown.isEmpty }

  /// These fields as JSON, to compare.
  package var unknownFields: SecretBytes {
    var bytes = JSONDocument(.object(JSONObject(unknown.sorted)), isIndented: true).bytes
    return SecretBytes(wiping: &bytes)
  }
}

// MARK: The extract

/// The part of a vault that an encrypted archive has for other devices: the items that may leave the device, and the names
/// of the others, so that a restore can report what stayed behind.
package struct VaultExtract: Sendable, Equatable {
  /// An item that may not leave, without its value and its attributes.
  package struct Staying: Sendable, Equatable {
    package var name: String
    /// The reason.
    package var accessibility: VaultItem.Accessibility, accessControl: VaultItem.AccessControl?
    package var isSynchronizable: Bool
  }

  /// The device and the items that may leave it, without recipients.
  package private(set) var document: Vault
  /// The items that may not leave, in the vault's order.
  package private(set) var staying: [Staying]

  /// The field of the document with ``staying``.
  private static let field = "staying"

  package init(of vault: Vault) {
    document = Vault(device: vault.device, items: vault.sorted.filter(\.leavesDevice))
    staying = vault.sorted.filter { !$0.leavesDevice }.map {
      Staying(
        name: $0.id.description, accessibility: $0.accessibility, accessControl: $0.accessControl,
        isSynchronizable: $0.isSynchronizable)
    }
  }

  package func encoded() -> SecretBytes {
    let items = JSONValue.array(JSONArray(staying.map(Self.value)))
    return document.encoded(with: staying.isEmpty ? [] : [(Self.field, items)])
  }

  private static func value(of item: Staying) -> JSONValue {
    var fields: [JSONField] = [
      ("name", .text(item.name)), ("accessible", .text(item.accessibility.rawValue)),
    ]
    if item.isSynchronizable { fields.append(("synchronizable", .boolean(true))) }
    if let accessControl = item.accessControl {
      fields.append(("access_control", .texts(accessControl.flags)))
    }
    return .object(JSONObject(fields))
  }

  /// Reads a document.
  ///
  /// - Throws: ``DrydockError`` (`badVault`) when it is corrupt, of a newer format, or has an item that may not leave its
  ///   device.
  package init(decoding bytes: SecretBytes, path: String?) throws {
    do {
      document = try Vault(decoding: bytes, path: path)
      staying = try document.unknown.array(Self.field)?.map(Self.read) ?? []
    } catch var error as DrydockError where error.code == .badVault {
      error.path = path
      throw error
    }
    if let item = document.sorted.first(where: { !$0.leavesDevice }) {
      throw DrydockError(
        .badVault, "the archive has the item \(item.id), which may not leave its device", path: path)
    }
  }

  private static func read(_ value: JSONValue) throws -> Staying {
    var fields = try VaultFields(value, "an item of `\(field)`")
    guard let name = try fields.text("name"),
      let accessibility = try fields.text("accessible").flatMap({ VaultItem.Accessibility(rawValue: $0) })
    else { throw VaultFields.invalid("an item of `\(field)` has no name, or no known class") }
    let flags = try fields.texts("access_control") ?? []
    return Staying(
      name: name, accessibility: accessibility,
      accessControl: flags.isEmpty ? nil : VaultItem.AccessControl(names: flags),
      isSynchronizable: try fields.boolean("synchronizable") ?? false)
  }
}

// MARK: Fields

private typealias JSONField = (key: String, value: JSONValue)

extension JSONValue {
  fileprivate static func text(_ text: String) -> JSONValue { .string(JSONString(text)) }
  fileprivate static func texts(_ texts: [String]) -> JSONValue { .array(JSONArray(texts.map { .text($0) })) }
}

/// The fields of an object. A reader takes the known ones; the rest are those that this version does not know, which are
/// preserved as written. Null is the same as no field. Errors contain names of fields only, since values may be secret.
struct VaultFields: Sendable {
  private var what = ""
  private var fields: [ExactText: JSONValue] = [:]

  init() {}

  fileprivate init(_ value: JSONValue, _ what: String) throws {
    guard case .object(let object) = value else { throw Self.invalid("\(what) is not an object") }
    self.what = what
    fields = Dictionary(
      object.members.map { (ExactText($0.key.text), $0.value) }, uniquingKeysWith: { first, _ in first })
  }

  fileprivate static func invalid(_ what: String) -> DrydockError {
    DrydockError(.badVault, "the vault document is invalid: \(what)")
  }

  var isEmpty: Bool { fields.isEmpty }

  /// In the order of their names.
  fileprivate var sorted: [JSONField] { fields.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) } }

  fileprivate mutating func set(_ name: String, _ value: JSONValue) { fields[ExactText(name)] = value }

  private mutating func take(_ name: String) -> JSONValue? {
    guard let value = fields.removeValue(forKey: ExactText(name)) else { return nil }
    if case .null = value { return nil }
    return value
  }

  private func wrong(_ name: String, _ type: String) -> DrydockError {
    Self.invalid("`\(name)` of \(what) is not \(type)")
  }

  fileprivate func isNumber(_ name: String) -> Bool {
    if case .number = fields[ExactText(name)] { true } else { false }
  }

  fileprivate mutating func integer(_ name: String) throws -> Int? {
    guard let value = take(name) else { return nil }
    guard case .number(let number) = value, let integer = Int(number.text) else {
      throw wrong(name, "an integer")
    }
    return integer
  }

  fileprivate mutating func boolean(_ name: String) throws -> Bool? {
    guard let value = take(name) else { return nil }
    guard case .boolean(let bool) = value else { throw wrong(name, "true or false") }
    return bool
  }

  fileprivate mutating func text(_ name: String) throws -> String? {
    try take(name).map { try text($0, name) }
  }

  private func text(_ value: JSONValue, _ name: String) throws -> String {
    guard case .string(let string) = value, let text = string.validText else { throw wrong(name, "text") }
    return text
  }

  fileprivate mutating func array(_ name: String) throws -> [JSONValue]? {
    guard let value = take(name) else { return nil }
    guard case .array(let array) = value else { throw wrong(name, "a list") }
    return array.elements
  }

  fileprivate mutating func texts(_ name: String) throws -> [String]? {
    try array(name)?.map { try text($0, name) }
  }

  fileprivate mutating func choice<Choice>(_ name: String, _ choice: (String) -> Choice?) throws -> Choice? {
    guard let text = try text(name) else { return nil }
    guard let choice = choice(text) else {
      let shown = ContainerPath.printable(Array(text.prefix(40).utf8))
      throw Self.invalid("`\(name)` of \(what) is `\(shown)`, which this version does not know")
    }
    return choice
  }

  fileprivate mutating func time(_ name: String) throws -> String? {
    guard let text = try text(name) else { return nil }
    guard UTCTime.isText(text) else { throw wrong(name, "a time such as 2026-11-20T10:15:00Z") }
    return text
  }

  /// Padded and canonical base64.
  fileprivate mutating func base64(_ name: String) throws -> SecretBytes? {
    guard let text = try text(name) else { return nil }
    guard var data = Data(base64Encoded: text), data.base64EncodedString() == text else {
      throw wrong(name, "base64")
    }
    defer { data.resetBytes(in: 0..<data.count) }
    return data.withUnsafeBytes { SecretBytes(copying: $0) }
  }
}

extension VaultFields: Equatable {
  static func == (left: Self, right: Self) -> Bool {
    left.fields.count == right.fields.count
      && left.fields.allSatisfy { right.fields[$0.key]?.matches($0.value) == true }
  }
}
