import AppContainer
import DrydockErrors
import Formats

/// How `files.unarchive` turns one archive into a document, wherever it is.
struct ArchiveConversion: Sendable {
  static let keys = [
    "as", "dates", "dictionary-keys", "decimals", "classes", "class-key", "unmapped",
  ]

  /// What an archive becomes.
  enum Form: String, CaseIterable, Sendable { case json, plist }

  /// What became of a value.
  enum Outcome {
    case converted(Document)
    case kept(String)
    case deleted(String)
  }

  /// What was in an archive, in the new form.
  struct Document {
    enum Content {
      case json(JSONValue)
      case plist(PropertyListDocument)
    }

    let content: Content

    /// What a file holds; JSON is indented.
    func file() throws -> [UInt8] {
      switch content {
      case .json(let value): JSONDocument(value, isIndented: true).bytes
      case .plist(let document): try document.encoded()
      }
    }
  }

  let form: Form
  private let dates: ArchivedDates
  private let options: UnarchiveOptions
  private let unmapped: Unmapped

  init(reading reader: YAMLReader) throws {
    form = try reader.choice("as") ?? .json
    dates = try reader.choice("dates") ?? .iso8601
    if form == .plist, let node = reader["dates"] {
      throw node.position.error("`dates` is for JSON: a property list holds dates as they are")
    }
    var options = UnarchiveOptions()
    options.keys = try reader.choice("dictionary-keys") ?? .fail
    options.decimals = try reader.choice("decimals") ?? .number
    options.classKey = try reader.text("class-key")
    options.classes = try reader["classes"].map(Self.classes) ?? [:]
    self.options = options
    unmapped = try reader.choice("unmapped") ?? .fail
  }

  /// A list of names, or a mapping from names to what becomes of their fields.
  private static func classes(_ node: YAMLNode) throws -> [String: UnarchiveOptions.ClassRule] {
    guard node.mapping != nil else {
      let names = try node.texts("`classes`")
      return Dictionary(names.map { ($0, .init()) }, uniquingKeysWith: { first, _ in first })
    }
    var rules: [String: UnarchiveOptions.ClassRule] = [:]
    for pair in try node.pairs("`classes`").pairs {
      guard case .text(let name) = pair.key.value else {
        throw pair.keyPosition.error("a class's name is text, not \(pair.key.value.summary): quote it")
      }
      let reader = try YAMLReader(pair.value, what: "the class \(name)", keys: ["rename", "drop"])
      var names: [String: String] = [:]
      for field in try reader["rename"]?.pairs("`rename`").pairs ?? [] {
        guard case .text(let old) = field.key.value else {
          throw field.keyPosition.error("a field's name is text, not \(field.key.value.summary): quote it")
        }
        names[old] = try field.value.text("the new name of `\(old)`")
      }
      rules[name] = .init(names: names, dropped: Set(try reader.texts("drop") ?? []))
    }
    return rules
  }

  /// Converts an archive.
  ///
  /// - Parameters:
  ///   - bytes: nil for a value that is no text and no data.
  ///   - what: where the archive is, for messages.
  /// - Throws: ``StepFailure`` for what has no counterpart, unless it is to be kept or deleted.
  func convert(_ bytes: [UInt8]?, _ what: String) throws -> Outcome {
    do {
      guard let bytes else { throw DrydockError(.malformed, "it is neither data nor text") }
      return .converted(try document(bytes))
    } catch let error as DrydockError {
      switch unmapped {
      case .fail:
        throw StepFailure(
          message: "\(what) cannot be unarchived: \(error.message); mend that, or say `unmapped: keep` or "
            + "`unmapped: delete`")
      case .keep: return .kept("\(what): \(error.message): kept as it is")
      case .delete: return .deleted("\(what): \(error.message): deleted")
      }
    }
  }

  private func document(_ bytes: [UInt8]) throws -> Document {
    let value = try Unarchiver.read(bytes, options)
    switch form {
    case .json: return Document(content: .json(try JSONValue(archived: value, dates: dates)))
    case .plist:
      guard let plain = value.withoutNulls else {
        throw DrydockError(
          .unsupported,
          "a property list has no form for nothing (null) in a list or as the whole: say `as: json`")
      }
      let format: PropertyListFile.Format = PropertyListDocument.isBinary(bytes) ? .binary : .xml
      return Document(content: .plist(PropertyListDocument(format: format, value: plain)))
    }
  }
}

extension PropertyListValue {
  /// Without the fields that are nothing; nil where that would move what follows in a list.
  fileprivate var withoutNulls: PropertyListValue? {
    switch self {
    case .array(let values):
      let plain = values.compactMap(\.withoutNulls)
      return plain.count == values.count ? .array(plain) : nil
    case .dictionary(let values):
      var plain: PropertyListDictionary = [:]
      for (key, value) in values where !value.isNull {
        guard let value = value.withoutNulls else { return nil }
        plain[key] = value
      }
      return .dictionary(plain)
    default: return isNull ? nil : self
    }
  }
}
