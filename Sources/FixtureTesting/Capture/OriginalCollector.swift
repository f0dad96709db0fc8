import AppContainer
import Foundation

/// Finds what must not stand in a fixture.
struct OriginalCollector: LeafVisitor {
  let resolvesArchives = true
  let keys: Set<String>
  private(set) var originals = Originals()

  init(choosing keys: Set<String>) { self.keys = keys }

  mutating func text(_ text: String, _ place: LeafPlace) -> String {
    if place.isIdentifier, DeviceIdentifiers.isIdentifier(text) { add(identifier: text, place) }
    for identifier in DeviceIdentifiers.inPaths(text) { add(identifier: identifier, place) }
    let isSecret = SecretPattern.isSecret(leaf: .string(text), name: place.name, looksInside: false)
    if isSecret || place.isChosen {
      originals.add(text, isSecret: isSecret, source: place.label)
    } else {
      for span in SecretSpans(text, choosing: keys).spans {
        originals.add(String(text[span.range]), isSecret: span.isSecret, source: place.label)
      }
    }
    return text
  }

  mutating func data(_ bytes: [UInt8], _ place: LeafPlace) throws -> [UInt8] {
    if let text = BinaryText(bytes) { _ = try ValueWalk.text(text.text, place, &self) }
    let isSecret = SecretPattern.isSecret(leaf: .data(bytes), name: place.name, looksInside: false)
    if isSecret || place.isChosen { originals.add(bytes, isSecret: isSecret, source: place.label) }
    if place.isIdentifier, let identifier = DeviceIdentifiers.uuid(bytes: bytes) {
      add(identifier: identifier, place)
    }
    // Bookmarks and their like hold paths.
    guard DeviceIdentifiers.holdsPath(bytes) else { return bytes }
    for run in BinaryText.runs(in: bytes) {
      for identifier in DeviceIdentifiers.inPaths(run) { add(identifier: identifier, place) }
    }
    return bytes
  }

  /// Takes an identifier of the device or of a container, which is then looked for in every form.
  mutating func add(identifier: String, _ place: LeafPlace) {
    originals.add(identifier: identifier, source: place.label)
  }

  mutating func number(_ digits: String, _ place: LeafPlace) -> String {
    if place.isChosen || Self.isSecret(digits, place) {
      originals.add(digits, isSecret: Self.isSecret(digits, place), source: place.label)
    }
    return digits
  }

  mutating func date(_ date: Date, _ place: LeafPlace) -> Date { date }

  mutating func key(_ key: String, isSecret: Bool, _ place: LeafPlace) -> String {
    if isSecret { originals.add(key, isSecret: true, source: "a name in \(place.label)") }
    return key
  }

  /// Takes a secret that is one wherever it stands, as it is in a vault.
  mutating func add(secret bytes: [UInt8], _ place: LeafPlace) throws {
    var place = place
    place.name = .secret
    place.isChosen = true
    _ = try ValueWalk.data(bytes, place, &self)
  }

  static func isSecret(_ digits: String, _ place: LeafPlace) -> Bool {
    guard let number = Int64(digits) else { return place.name == .secret }
    return SecretPattern.isSecret(leaf: .integer(number), name: place.name, looksInside: false)
  }
}
