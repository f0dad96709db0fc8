import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// Something that changes a document, whichever format it has.
protocol DocumentRule: Sendable {
  /// - Parameter what: what the document is, for messages: ``the setting `state` ``.
  /// - Returns: remarks.
  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String]
}

/// What a document is called.
struct DocumentName {
  /// The setting that it is in; nil for a file.
  var key: String?
  /// For messages: ``the setting `state` ``.
  let text: String
  /// What hides secrets in messages.
  let redactor: Redactor

  init(setting key: String, _ redactor: Redactor) {
    (self.key, text, self.redactor) = (key, "the setting `\(key)`", redactor)
  }

  init(file: ContainerPath, _ redactor: Redactor) { (text, self.redactor) = ("`\(file)`", redactor) }
}

/// A JSON text or a property list, written again in its own format.
enum StructuredDocument: Sendable {
  case json(JSONDocument)
  case propertyList(PropertyListDocument)

  /// Reads a file's content.
  ///
  /// - Throws: `DrydockError` with code `malformed`.
  init(bytes: [UInt8]) throws {
    if PropertyListDocument.isBegun(by: bytes) {
      self = .propertyList(try PropertyListDocument(bytes: bytes))
    } else {
      self = .json(try JSONDocument(bytes: bytes))
    }
  }

  /// The file's content.
  func encoded() throws -> [UInt8] {
    switch self {
    case .json(let document): document.bytes
    case .propertyList(let document): try document.encoded()
    }
  }

  /// Applies a rule.
  mutating func apply(
    _ rule: some DocumentRule, of name: DocumentName
  ) throws -> (notes: [String], changes: [DocumentChange]) {
    switch self {
    case .json(var document):
      var edit = DocumentEdit(document.value, of: name)
      let notes = try rule.apply(to: &edit, of: name.text)
      document.value = edit.value
      self = .json(document)
      return (notes, edit.changes)
    case .propertyList(var document):
      var edit = DocumentEdit(document.value, of: name)
      var notes = try rule.apply(to: &edit, of: name.text)
      if document.format.rounds(edit.value), !document.format.rounds(document.value) {
        notes.append("\(name.text): the file is XML, which keeps whole seconds only")
      }
      document.value = edit.value
      self = .propertyList(document)
      return (notes, edit.changes)
    }
  }
}

/// The document that a setting holds: a dictionary or array, or JSON or a property list as text or data.
struct SettingDocument {
  private enum Form { case value, text, data }

  var document: StructuredDocument
  private let form: Form

  /// - Throws: ``StepFailure`` when the setting is no document.
  init(_ value: PropertyListValue, key: String) throws {
    do {
      switch value {
      case .dictionary, .array:
        (document, form) = (.propertyList(PropertyListDocument(format: .binary, value: value)), .value)
      case .string(let text): (document, form) = (try StructuredDocument(bytes: Array(text.utf8)), .text)
      case .data(let bytes): (document, form) = (try StructuredDocument(bytes: bytes), .data)
      default:
        throw StepFailure(
          message: "the setting `\(key)` is \(value.nounPhrase): neither a dictionary, nor an array, nor JSON"
        )
      }
    } catch let error as DrydockError {
      throw StepFailure(message: "the setting `\(key)`, \(value.nounPhrase): \(error.message)")
    }
  }

  /// The setting, with the type that it had.
  func value() throws -> PropertyListValue {
    if form == .value, case .propertyList(let document) = document { return document.value }
    let bytes = try document.encoded()
    return form == .data ? .data(bytes) : .string(String(decoding: bytes, as: UTF8.self))
  }
}
