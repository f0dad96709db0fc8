import AppContainer
import ContainerDiff
import FileSystem
import Formats

/// A JSON document of a container as a golden has it: in `documents/`, below its own path, indented and with sorted keys,
/// so that the order in which an app writes keys makes no difference and a finding names the value.
enum GoldenDocument {
  static let directory: ContainerPath = "documents"
  /// Above this a file is compared by its digest alone.
  private static let sizeLimit: UInt64 = 1 << 20

  static func place(of path: ContainerPath) -> ContainerPath { path.rebased(from: .root, to: directory) }

  /// Whether a file may be one.
  static func isCandidate(_ entry: ComparedEntry) -> Bool {
    entry.kind == .file && entry.path.nameString.lowercased().hasSuffix(".json")
      && entry.size ?? 0 <= sizeLimit
  }

  /// The text for a golden; nil for what is not an object or an array in JSON.
  static func text(_ bytes: [UInt8], _ normalizer: ValueNormalizer) -> String? {
    guard let value = try? JSONDocument(bytes: bytes).value else { return nil }
    switch value {
    case .object, .array: return JSONDocument(normalized(value, normalizer), isIndented: true).text
    default: return nil
    }
  }

  private static func normalized(_ value: JSONValue, _ normalizer: ValueNormalizer) -> JSONValue {
    switch value {
    case .null, .boolean, .number: return value
    case .string(let string): return .string(JSONString(normalizer.text(string.text)))
    case .array(let array): return .array(JSONArray(array.elements.map { normalized($0, normalizer) }))
    case .object(let object):
      let members = object.members.map { member in
        let key = member.key.text
        let isVolatile = normalizer.volatile.settings.containsExactly(key)
        return (
          key: key, value: isVolatile ? Self.placeholder(member.value) : normalized(member.value, normalizer)
        )
      }
      return .object(JSONObject(members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }))
    }
  }

  private static func placeholder(_ value: JSONValue) -> JSONValue {
    switch value {
    case .null: .null
    case .boolean: .boolean(false)
    case .number: .number(JSONNumber(0))
    case .string: .string(JSONString(ValueNormalizer.word))
    case .array: .array(JSONArray([]))
    case .object: .object(JSONObject([]))
    }
  }

  /// One value of a document that holds no others.
  struct Leaf {
    var pointer: JSONPointer
    /// As JSON, and as it may be shown.
    var text: String, shown: String
    var type: String
    var line: Int
  }

  /// The values of a golden's text, in its order.
  static func leaves(_ bytes: [UInt8], _ redactor: Redactor) throws -> [Leaf] {
    var leaves: [Leaf] = []
    var line = 1
    visit(try JSONDocument(bytes: bytes).value, JSONPointer(tokens: []), .plain, redactor, &line, &leaves)
    return leaves
  }

  private static func visit(
    _ value: JSONValue, _ pointer: JSONPointer, _ name: SecretName, _ redactor: Redactor, _ line: inout Int,
    _ leaves: inout [Leaf]
  ) {
    func inner(_ token: String) -> JSONPointer { JSONPointer(tokens: pointer.tokens + [token]) }
    switch value {
    case .object(let object) where !object.members.isEmpty:
      let names = object.secretFields(inside: name)
      for member in object.members {
        line += 1
        visit(member.value, inner(member.key.text), names[member.key.text], redactor, &line, &leaves)
      }
      line += 1
    case .array(let array) where !array.elements.isEmpty:
      for (index, element) in array.elements.enumerated() {
        line += 1
        visit(element, inner("\(index)"), name, redactor, &line, &leaves)
      }
      line += 1
    default:
      let text = JSONDocument(value, isIndented: false).text
      let shown = value.propertyListValue.map { redactor.shown($0, named: name) } ?? text
      leaves.append(Leaf(pointer: pointer, text: text, shown: shown, type: value.typeName, line: line))
    }
  }
}

extension JSONObject {
  /// What the names of the members, and their texts, say about the values.
  func secretFields(inside name: SecretName) -> SecretFields {
    SecretFields(
      PropertyListDictionary(
        members.map { member in
          if case .string(let text) = member.value {
            (member.key.text, .string(text.text))
          } else {
            (member.key.text, .boolean(true))
          }
        }), inside: name)
  }
}
