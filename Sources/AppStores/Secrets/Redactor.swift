import Cryptography
import DrydockErrors
import Formats
import Foundation

/// Redacts secrets in output: a secret is replaced with its length and a fingerprint, such as
/// `(secret, 24 characters, #3f9a1c2e)`.
///
/// Use one instance for a whole run: then equal secrets have equal fingerprints. The key of the fingerprints is random and
/// exists only during the run, so that secrets cannot be guessed from them.
package struct Redactor: Sendable {
  private let fingerprint: Fingerprint?
  /// The fingerprints of texts and data that are secret under any name.
  private var known: Set<String> = []

  /// A redactor with a new key. Without entropy in the system, it shows no fingerprints.
  package init() { fingerprint = try? Fingerprint() }

  /// The description of a value, with secrets redacted.
  ///
  /// - Parameter key: the name of the value, or empty.
  package func shown(_ value: PropertyListValue, key: String) -> String {
    shown(value, named: SecretName(key))
  }

  /// The same with a classified name.
  package func shown(_ value: PropertyListValue, named name: SecretName) -> String {
    shown(value, name, depth: 0)
  }

  /// The description of a part of a setting, which the names around it may make a secret.
  ///
  /// - Parameter inside: the members and indexes that lead to the part.
  /// - Returns: the text, and whether the part was found and shown as it is.
  package func shown(
    _ value: PropertyListValue, key: String, inside tokens: [String]
  ) -> (text: String, isShown: Bool) {
    var (part, name) = (value, SecretName(key))
    for token in tokens {
      switch part {
      case .dictionary(let values):
        name = SecretFields(values, inside: name)[token]
        part = values[token] ?? part
      case .array(let values):
        part = Int(token).flatMap { values.indices.contains($0) ? values[$0] : nil } ?? part
      default: break
      }
    }
    let text = shown(part, named: name)
    return (text, text == part.description)
  }

  /// A name, redacted if it is a secret itself: keys of settings may be tokens.
  package func shown(name: String) -> String {
    SecretText.isSecret(name) ? shown(secret: name) : name
  }

  /// A message with the secrets in it redacted, such as a token given as a file name, or a password in a URL.
  package func shown(message: String) -> String {
    guard SecretPattern.isSecret(text: message) else { return message }
    if let block = message.range(of: "-----BEGIN ") {
      let rest = String(message[block.lowerBound...])
      return shown(message: String(message[..<block.lowerBound])) + shown(secret: rest)
    }
    if let document = PropertyListValue.string(message).document { return shown(document, .plain, depth: 1) }
    var (result, end) = ("", message.startIndex)
    for span in SecretSpans(message).spans {
      result += message[end..<span.range.lowerBound] + shown(secret: String(message[span.range]))
      end = span.range.upperBound
    }
    return result + message[end...]
  }

  /// A text with given secrets redacted, as they are and in base64.
  package func shown(_ text: String, without secrets: [SecretBytes]) -> String {
    var text = text
    for secret in secrets.sorted(by: { $0.count > $1.count }) where secret.count >= Self.leastKnown {
      let replacement = shown(secret: secret)
      let data = secret.withBytes { Data($0) }
      for form in [String(validating: data, as: UTF8.self), data.base64EncodedString()].compactMap(\.self) {
        text = text.replacing(form, with: replacement)
      }
    }
    return text
  }

  /// Redacts a secret text.
  package func shown(secret text: String) -> String {
    var text = text
    return secret(Self.counted(text.count, "character"), text.withUTF8 { mark(UnsafeRawBufferPointer($0)) })
  }

  /// Redacts secret bytes, with the number of characters if they are text, as most vault values.
  package func shown(secret bytes: UnsafeRawBufferPointer) -> String {
    let characters = String(validating: bytes, as: UTF8.self)?.count
    let size = characters.map { Self.counted($0, "character") } ?? Self.counted(bytes.count, "byte")
    return secret(size, mark(bytes))
  }

  package func shown(secret bytes: SecretBytes) -> String { bytes.withBytes { shown(secret: $0) } }

  /// The replacement for a secret with a size such as `24 characters` and maybe a fingerprint.
  package func secret(_ size: String, _ mark: String?) -> String {
    "(secret, \(size)\(mark.map { ", \($0)" } ?? ""))"
  }

  /// The fingerprint of a secret, such as `#3f9a1c2e`, if available.
  package func mark(_ bytes: UnsafeRawBufferPointer) -> String? {
    fingerprint.map { "#" + $0.text(of: bytes) }
  }

  /// A redactor that also redacts the secrets of these settings elsewhere, such as a token under a new name.
  ///
  /// - Parameter shown: the values that will be shown; secrets that are in none of them are not collected.
  package func knowing(
    _ settings: some Sequence<PropertyListDictionary>, among shown: [PropertyListValue]? = nil
  ) -> Redactor {
    var result = self
    // Settings files of up to 64 MB are read.
    var budget = 64 << 20
    let wanted = shown.map { Self.texts(in: $0) }
    if wanted?.isEmpty == true { return result }
    func isWanted(_ value: PropertyListValue) -> Bool {
      guard let wanted else { return true }
      return value.contains { Self.bytes(of: $0).map(wanted.contains) ?? false }
    }
    for values in settings {
      for (key, value) in values where isWanted(value) {
        SecretPattern.visit(value, SecretName(key), within: &budget) {
          if let mark = mark(of: $0) { result.known.insert(mark) }
        }
      }
    }
    return result
  }

  /// Shorter texts match by chance.
  private static let leastKnown = 6

  /// The bytes of a text or data that is long enough: a secret may be kept as either.
  private static func bytes(of value: PropertyListValue) -> [UInt8]? {
    let bytes: [UInt8]
    switch value {
    case .string(let text): bytes = Array(text.utf8)
    case .data(let data): bytes = data
    default: return nil
    }
    return bytes.count < leastKnown ? nil : bytes
  }

  /// The bytes of the texts and data in values, also of those in documents, which are redacted value by value.
  private static func texts(in values: [PropertyListValue], depth: Int = 0) -> Set<[UInt8]> {
    var texts: Set<[UInt8]> = []
    for value in values {
      _ = value.contains { part in
        guard let bytes = bytes(of: part) else { return false }
        texts.insert(bytes)
        if case .string = part, depth < SecretPattern.depthLimit, let document = part.document {
          texts.formUnion(Self.texts(in: [document], depth: depth + 1))
        }
        return false
      }
    }
    return texts
  }

  private func isKnown(_ value: PropertyListValue) -> Bool {
    known.isEmpty ? false : mark(of: value).map(known.contains) ?? false
  }

  private func mark(of value: PropertyListValue) -> String? {
    Self.bytes(of: value).flatMap { $0.withUnsafeBytes { mark($0) } }
  }

  /// Whether a value is redacted as a whole.
  package func isHidden(_ value: PropertyListValue, named name: SecretName) -> Bool {
    SecretPattern.isSecret(leaf: value, name: name, looksInside: false) || isKnown(value)
  }

  // MARK: Values

  private func shown(_ value: PropertyListValue, _ name: SecretName, depth: Int) -> String {
    // A part of a set may be a secret.
    if case .set(let values) = value {
      return shown(.array(values.strings.map { .string($0) }), name, depth: depth)
    }
    if isHidden(value, named: name) { return shown(secret: value) }
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
      // In a document in a text only the secrets are redacted; data is never shown.
      if case .string = value, depth < SecretPattern.depthLimit, let document = value.document {
        return shown(document, name, depth: depth + 1)
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
      let digits = text.count(where: \.isDigit)
      return secret(Self.counted(digits, "digit"), text.withUnsafeBytes { mark($0) })
    }
  }

  /// `1 character`, `24 characters`.
  static func counted(_ count: Int, _ what: String) -> String { "\(count) \(what)\(count == 1 ? "" : "s")" }
}
