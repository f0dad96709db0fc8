import AppStores
import ContainerDiff
import FileSystem
import Formats

/// A JSON document of a container as a golden has it: in `documents/`, below its own path, indented and with sorted
/// keys, so that the order in which an app writes keys makes no difference and a finding names the value.
struct GoldenDocument {
  static let directory: ContainerPath = "documents"
  /// Above this a file is compared by its digest alone.
  private static let sizeLimit: UInt64 = 1 << 20

  static func place(of path: ContainerPath) -> ContainerPath { path.rebased(from: .root, to: directory) }

  /// Whether a file may be one.
  static func isCandidate(_ entry: ComparedEntry) -> Bool {
    entry.kind == .file && entry.path.nameString.lowercased().hasSuffix(".json")
      && entry.size ?? 0 <= sizeLimit
  }

  let text: String
  /// The values that hold no others, in the order of the text.
  private(set) var leaves: [Leaf] = []

  struct Leaf {
    var pointer: JSONPointer
    var value: JSONValue
    /// What the names around it say about it.
    var name: SecretName
    /// Its line in the text, from 1.
    var line: Int

    var text: String { JSONDocument(value, isIndented: false).text }

    func shown(_ redactor: Redactor) -> String {
      value.propertyListValue.map { redactor.shown($0, named: name) } ?? text
    }
  }

  /// Nil for what is not an object or an array in JSON.
  init?(_ bytes: [UInt8], _ normalizer: ValueNormalizer) {
    guard let value = try? JSONDocument(bytes: bytes).value else { return nil }
    switch value {
    case .object, .array: break
    default: return nil
    }
    let normalized = Self.normalized(value, normalizer)
    text = JSONDocument(normalized, isIndented: true).text
    var line = 1
    visit(normalized, [], .plain, &line)
  }

  private static func normalized(_ value: JSONValue, _ normalizer: ValueNormalizer) -> JSONValue {
    switch value {
    case .null, .boolean, .number: return value
    case .string(let string): return .string(JSONString(normalizer.text(string.text)))
    case .array(let array): return .array(JSONArray(array.elements.map { normalized($0, normalizer) }))
    case .object(let object):
      let members = object.members.map { member in
        let key = member.key.text
        let isVolatile = normalizer.isVolatile(setting: key)
        return (
          key: key, value: isVolatile ? placeholder(member.value) : normalized(member.value, normalizer)
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

  private mutating func visit(_ value: JSONValue, _ tokens: [String], _ name: SecretName, _ line: inout Int) {
    switch value {
    case .object(let object) where !object.members.isEmpty:
      let names = object.secretFields(inside: name)
      for member in object.members {
        line += 1
        visit(member.value, tokens + [member.key.text], names[member.key.text], &line)
      }
      line += 1
    case .array(let array) where !array.elements.isEmpty:
      for (index, element) in array.elements.enumerated() {
        line += 1
        visit(element, tokens + ["\(index)"], name, &line)
      }
      line += 1
    default: leaves.append(Leaf(pointer: JSONPointer(tokens: tokens), value: value, name: name, line: line))
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
