import AgeEncryption
import Formats

/// Keeps secrets out of what people and logs see: in place of a secret stands its length and a fingerprint, such as
/// `(secret, 24 characters, #3f9a1c2e)`.
///
/// Make one for each run, and pass it on: within a run equal secrets have equal fingerprints. The key of the
/// fingerprints is random and lives no longer than the run, so that nobody can try out what a secret was.
package struct Redactor: Sendable {
  private let fingerprint: Fingerprint?
  /// The fingerprints of texts and data that are secrets whatever their name is.
  private var known: Set<String> = []

  /// A redactor with a key of its own. Without any entropy in the system it shows no fingerprints.
  package init() { fingerprint = try? Fingerprint() }

  /// A value for people: secrets in it are replaced, all else is as in its description.
  ///
  /// - Parameter key: the name that the value has; empty when it has none.
  package func shown(_ value: PropertyListValue, key: String) -> String {
    shown(value, named: SecretName(key))
  }

  /// A value for people, under a name that was judged.
  package func shown(_ value: PropertyListValue, named name: SecretName) -> String {
    shown(value, name, depth: 0)
  }

  /// A name for people, which it is as a rule; but keys of settings may be anything, a token too.
  package func shown(name: String) -> String {
    SecretText.isSecret(name) ? shown(secret: name) : name
  }

  /// A message with what has a secret's form taken out, word by word: an argument that should have been a file's name,
  /// a password in an address.
  package func shown(message: String) -> String {
    guard SecretText.isSecret(message) else { return message }
    if let block = message.range(of: "-----BEGIN ") {
      let rest = String(message[block.lowerBound...])
      return shown(message: String(message[..<block.lowerBound])) + shown(secret: rest)
    }
    var (result, word) = ("", "")
    func endWord() {
      result += SecretText.isSecret(word) ? shown(secret: word) : word
      word = ""
    }
    for character in message {
      if character.isWhitespace || "\"'`,;()".contains(character) {
        endWord()
        result.append(character)
      } else {
        word.append(character)
      }
    }
    endWord()
    return result
  }

  /// Stands for a secret text, by its number of characters.
  package func shown(secret text: String) -> String {
    var text = text
    return secret(Self.counted(text.count, "character"), text.withUTF8 { mark(UnsafeRawBufferPointer($0)) })
  }

  /// Stands for secret bytes: by their characters when they are text, as the values of a vault are, else by their
  /// number.
  package func shown(secret bytes: UnsafeRawBufferPointer) -> String {
    let characters = String(validating: bytes, as: UTF8.self)?.count
    let size = characters.map { Self.counted($0, "character") } ?? Self.counted(bytes.count, "byte")
    return secret(size, mark(bytes))
  }

  /// Stands for secret bytes.
  package func shown(secret bytes: SecretBytes) -> String { bytes.withBytes { shown(secret: $0) } }

  /// Stands for a secret that is not here as a whole.
  ///
  /// - Parameters:
  ///   - size: such as `24 characters`.
  ///   - mark: its fingerprint, when that is known.
  package func secret(_ size: String, _ mark: String?) -> String {
    "(secret, \(size)\(mark.map { ", \($0)" } ?? ""))"
  }

  /// The fingerprint of a secret, such as `#3f9a1c2e`; nil when there is none.
  package func mark(_ bytes: UnsafeRawBufferPointer) -> String? {
    fingerprint.map { "#" + $0.text(of: bytes) }
  }

  /// A redactor that also hides what is a secret in these settings wherever else it stands: a token that has got a new
  /// name is one still.
  ///
  /// - Parameter shown: the values that it will be asked for; what is in none of them need not be looked at.
  package func knowing(
    _ settings: some Sequence<PropertyListDictionary>, among shown: [PropertyListValue]? = nil
  ) -> Redactor {
    var result = self
    // Settings files of up to 64 MB are read.
    var search = SecretSearch(least: .plain, budget: 64 << 20)
    let wanted = shown.map { TextHashes($0) }
    if wanted?.isEmpty == true { return result }
    for values in settings {
      for (key, value) in values where wanted?.hasPart(of: value) ?? true {
        search.visit(value, SecretName(key)) {
          if let mark = mark(of: $0) { result.known.insert(mark) }
        }
      }
    }
    return result
  }

  /// Shorter texts are found by chance.
  fileprivate static let leastKnown = 6

  private func isKnown(_ value: PropertyListValue) -> Bool {
    known.isEmpty ? false : mark(of: value).map(known.contains) ?? false
  }

  private func mark(of value: PropertyListValue) -> String? {
    switch value {
    case .string(var text):
      text.utf8.count < Self.leastKnown ? nil : text.withUTF8 { mark(UnsafeRawBufferPointer($0)) }
    case .data(let bytes): bytes.count < Self.leastKnown ? nil : bytes.withUnsafeBytes { mark($0) }
    default: nil
    }
  }

  // MARK: Values

  private func shown(_ value: PropertyListValue, _ name: SecretName, depth: Int) -> String {
    if SecretPattern.isSecret(leaf: value, name: name, looksInside: false) || isKnown(value) {
      return shown(secret: value)
    }
    switch value {
    case .array(let values):
      return "[" + values.map { shown($0, name, depth: depth) }.joined(separator: ", ") + "]"
    case .dictionary(let values):
      let names = SecretFields(values, inside: name)
      let pairs = values.sorted().map { key, value in
        let shownKey = names.isSecret(key: key) ? shown(secret: key) : key
        return "\(shownKey): \(shown(value, names[key], depth: depth))"
      }
      return "{" + pairs.joined(separator: ", ") + "}"
    case .string, .data:
      guard SecretPattern.isSecret(value, named: name) else { return value.description }
      // Of a document in a text only what is secret in it is hidden; data is never shown anyway.
      if case .string = value, depth < SecretSearch.depthLimit, let nested = NestedValue(value) {
        return shown(nested.value, name, depth: depth + 1)
      }
      return shown(secret: value)
    default: return value.description
    }
  }

  private func shown(secret value: PropertyListValue) -> String {
    switch value {
    case .string(let text): return shown(secret: text)
    case .data(let bytes):
      return secret(Self.counted(bytes.count, "byte"), bytes.withUnsafeBytes { mark($0) })
    default:
      let text = Array(value.description.utf8)
      let digits = text.count(where: SecretText.isDigit)
      return secret(Self.counted(digits, "digit"), text.withUnsafeBytes { mark($0) })
    }
  }

  /// `1 character`, `24 characters`.
  static func counted(_ count: Int, _ what: String) -> String { "\(count) \(what)\(count == 1 ? "" : "s")" }
}

/// Which texts and data are in values, as far as their hashes say.
private struct TextHashes {
  private var hashes: Set<Int> = []

  init(_ values: [PropertyListValue]) {
    for value in values { add(value, depth: 0) }
  }

  var isEmpty: Bool { hashes.isEmpty }

  /// Whether a text in a value may be one of these.
  func hasPart(of value: PropertyListValue) -> Bool {
    switch value {
    case .array(let values): values.contains(where: hasPart)
    case .dictionary(let values): values.values.contains(where: hasPart)
    default: Self.hash(of: value).map(hashes.contains) ?? false
    }
  }

  private mutating func add(_ value: PropertyListValue, depth: Int) {
    switch value {
    case .array(let values):
      for value in values { add(value, depth: depth) }
    case .dictionary(let values):
      for value in values.values { add(value, depth: depth) }
    default:
      guard let hash = Self.hash(of: value) else { return }
      hashes.insert(hash)
      // A document in a text is shown value by value.
      if depth < SecretSearch.depthLimit, case .string = value, let nested = NestedValue(value) {
        add(nested.value, depth: depth + 1)
      }
    }
  }

  private static func hash(of value: PropertyListValue) -> Int? {
    var hasher = Hasher()
    switch value {
    case .string(var text):
      guard text.utf8.count >= Redactor.leastKnown else { return nil }
      text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    case .data(let bytes):
      guard bytes.count >= Redactor.leastKnown else { return nil }
      bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    default: return nil
    }
    return hasher.finalize()
  }
}
