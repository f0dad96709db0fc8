import DrydockErrors
import Formats

/// A document in text or data, decoded for display: a keyed archive, a property list, or JSON.
///
/// Its size is bounded: what is larger, nested deeper or damaged counts as plain text or data.
package struct DecodedDocument: Sendable {
  package enum Form: String, Sendable, Codable {
    case keyedArchive = "keyed archive"
    case propertyList = "property list"
    case json = "JSON"
  }

  /// Larger documents are not decoded.
  package static let sizeLimit = 1 << 20
  /// The most values in a document, each counted as often as it is referenced.
  private static let valueLimit = 50_000

  package let form: Form
  /// In a keyed archive, an object of an app's class is a dictionary of its fields with the name of the class as `$class`.
  package let value: PropertyListValue

  /// Decodes a text or data; nil for other values.
  package init?(_ value: PropertyListValue) {
    switch value {
    case .string(let text): self.init(bytes: Array(text.utf8))
    case .data(let bytes): self.init(bytes: bytes)
    default: return nil
    }
  }

  package init?(bytes: [UInt8]) {
    guard bytes.count <= Self.sizeLimit, let first = bytes.first(where: { $0 > 0x20 }) else { return nil }
    if [UInt8(ascii: "{"), UInt8(ascii: "[")].contains(first) {
      guard let value = NestedValue.json(bytes) else { return nil }
      (form, self.value) = (.json, value)
    } else if PropertyListDocument.isBinary(bytes) || NestedValue.isXMLPropertyList(bytes) {
      guard let document = try? PropertyListDocument(bytes: bytes),
        let (form, value) = Self.decoded(document)
      else { return nil }
      (self.form, self.value) = (form, value)
    } else {
      return nil
    }
    var left = Self.valueLimit
    guard Self.fits(value, &left) else { return nil }
  }

  private static func decoded(_ document: PropertyListDocument) -> (Form, PropertyListValue)? {
    switch document.value {
    case .dictionary(let root) where root["$archiver"] != nil:
      let file = PropertyListFile(format: document.format, root: root)
      return (try? KeyedArchiveReader.read(file, .display)).map { (.keyedArchive, $0) }
    case .dictionary, .array: return (.propertyList, document.value)
    default: return nil
    }
  }

  private static func fits(_ value: PropertyListValue, _ left: inout Int) -> Bool {
    left -= 1
    if left < 0 { return false }
    switch value {
    case .array(let values):
      for value in values where !fits(value, &left) { return false }
    case .dictionary(let values):
      for value in values.values where !fits(value, &left) { return false }
    default: break
    }
    return true
  }
}

/// What differs between two documents, by key path.
package struct DocumentDifference: Sendable {
  /// A field that differs; nil where a side does not have it.
  package struct Field: Sendable, Equatable {
    /// Such as `profile.theme` or `items[2]`.
    package var path: String
    package var before, after: String?
  }

  /// The most fields that are listed.
  package static let limit = 20

  package fileprivate(set) var fields: [Field] = []
  /// The number of more fields that differ.
  package fileprivate(set) var more = 0
}

extension Redactor {
  /// The most characters of a document, and of a field of one.
  private static let shownLength = (document: 300, field: 120, key: 60)

  /// The description of a value. A document in data is decoded, with the secrets in it redacted.
  package func shownDecoded(_ value: PropertyListValue, named name: SecretName) -> String {
    guard case .data = value, let document = document(in: value, named: name) else {
      return shown(value, named: name)
    }
    return shown(document, named: name)
  }

  /// Such as `keyed archive {theme: "dark"}`; a long one is cut.
  package func shown(_ document: DecodedDocument, named name: SecretName) -> String {
    let text = knowing([["": document.value]]).shown(document.value, named: name)
    return "\(document.form.rawValue) \(Self.cut(text, Self.shownLength.document))"
  }

  /// The document in a text or data; nil when there is none, or all of it is secret.
  package func document(in value: PropertyListValue, named name: SecretName) -> DecodedDocument? {
    isHidden(value, named: name) ? nil : DecodedDocument(value)
  }

  /// What differs between two values that both hold a document; nil for others, and when nothing does.
  package func difference(
    from old: PropertyListValue, to new: PropertyListValue, named name: SecretName
  ) -> DocumentDifference? {
    guard let old = document(in: old, named: name), let new = document(in: new, named: name) else {
      return nil
    }
    return difference(from: old, to: new, named: name)
  }

  package func difference(
    from old: DecodedDocument, to new: DecodedDocument, named name: SecretName
  ) -> DocumentDifference? {
    if old.value.matches(new.value) { return nil }
    var difference = DocumentDifference()
    // A secret of one field is one in the others.
    knowing([["": old.value], ["": new.value]]).compare(old.value, new.value, name, "", &difference)
    return difference.fields.isEmpty ? nil : difference
  }

  private func compare(
    _ old: PropertyListValue?, _ new: PropertyListValue?, _ name: SecretName, _ path: String,
    _ difference: inout DocumentDifference
  ) {
    switch (old, new) {
    case (.dictionary(let old)?, .dictionary(let new)?):
      let (names, newNames) = (SecretFields(old, inside: name), SecretFields(new, inside: name))
      for key in old.differingKeys(from: new, isSame: { $0.matches($1) }) {
        let isSecret = names.isSecret(key: key.text) || newNames.isSecret(key: key.text)
        let shown = isSecret ? shown(secret: key.text) : Self.cut(key.text, Self.shownLength.key)
        let inner = max(names[key.text], newNames[key.text])
        compare(old[key], new[key], inner, path.isEmpty ? shown : "\(path).\(shown)", &difference)
      }
    case (.array(let old)?, .array(let new)?):
      for index in 0..<max(old.count, new.count) {
        let (old, new) = (
          old.indices.contains(index) ? old[index] : nil, new.indices.contains(index) ? new[index] : nil
        )
        if let old, let new, old.matches(new) { continue }
        compare(old, new, name, "\(path)[\(index)]", &difference)
      }
    default:
      guard difference.fields.count < DocumentDifference.limit else {
        difference.more += 1
        return
      }
      let texts = [old, new].map { $0.map { Self.cut(shown($0, named: name), Self.shownLength.field) } }
      difference.fields.append(.init(path: path.isEmpty ? "value" : path, before: texts[0], after: texts[1]))
    }
  }

  private static func cut(_ text: String, _ length: Int) -> String {
    text.utf8.count <= length || text.count <= length ? text : "\(text.prefix(length))…"
  }
}
