import AppContainer
import FileSystem
import Formats

/// A setting whose value was moved out of its file, into the vault: nothing that a transaction keeps, and no archive that
/// is not encrypted, should hold it any longer. It lives in memory only.
package struct MovedSecret: Sendable {
  /// The settings file.
  package let path: ContainerPath
  /// Its key there.
  package let key: String
  private let value: PropertyListValue
  /// The texts and data in it, as bytes.
  private let parts: [[UInt8]]
  /// A part this long is found inside of other text too; a shorter one would be found everywhere.
  private static let distinct = 8

  /// A setting and the value that it had.
  package init(path: ContainerPath, key: String, value: PropertyListValue) {
    (self.path, self.key, self.value) = (path, key, value)
    parts = value.textParts.filter { !$0.isEmpty }
  }

  /// Whether a setting of any file holds the value, or a part of it: under whatever key, since it may have had another
  /// name before. A number or a Bool says nothing under another key.
  package func isHeld(by other: PropertyListValue, of key: String) -> Bool {
    if key.isExactly(self.key) && other.matches(value) { return true }
    return other.textParts.contains { text in
      parts.contains { $0 == text || ($0.count >= Self.distinct && text.contains($0)) }
    }
  }

  /// A redactor that hides the value wherever it stands.
  func known(to redactor: Redactor) -> Redactor { redactor.knowing([["secret": value]]) }

  /// The value for people: its length and its fingerprint.
  func shown(by redactor: Redactor) -> String { redactor.shown(value, key: "secret") }

  /// Whether bytes that are no property list hold it.
  func isHeld(inBytes bytes: [UInt8]) -> Bool {
    parts.contains { $0.count >= Self.distinct && bytes.contains($0) }
  }
}

extension MovedSecret: CustomStringConvertible, CustomReflectable {
  /// Where it was; never what.
  package var description: String { "\(key) in \(path)" }

  /// Nothing: what dumps values shows no secret.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension [MovedSecret] {
  /// The keys of settings that hold one of the values, sorted.
  package func keys(in settings: PropertyListDictionary) -> [String] {
    settings.filter { key, value in contains { $0.isHeld(by: value, of: key) } }.keys.sorted().map(\.text)
  }

  /// Whether a file's content holds one of the values.
  func areHeld(inFile bytes: [UInt8]) -> Bool {
    guard let file = try? PropertyListFile(bytes: bytes) else {
      return contains { $0.isHeld(inBytes: bytes) }
    }
    return !keys(in: file.root).isEmpty
  }
}

extension PropertyListValue {
  /// Every text and every data in it, as bytes.
  fileprivate var textParts: [[UInt8]] {
    switch self {
    case .string(let text): [Array(text.utf8)]
    case .data(let bytes): [bytes]
    case .array(let values): values.flatMap(\.textParts)
    case .dictionary(let values): values.values.flatMap(\.textParts)
    case .boolean, .integer, .unsigned, .real, .single, .date, .unknown: []
    }
  }
}
