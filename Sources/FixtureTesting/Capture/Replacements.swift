import Foundation

/// What stands for each value that must not stand in a fixture, in whatever form it is found.
struct Replacements: Sendable {
  /// Shorter texts are replaced where they are found out, and looked for nowhere else.
  private static let leastWord = 3

  /// One form of an original.
  private struct Form: Sendable {
    var replacement: [UInt8]
    var origin: Int
    /// Whether a capital in what is found makes one of what stands for it.
    var ignoresCase: Bool
  }

  /// One original, as far as it may be told.
  struct Origin: Sendable {
    var isSecret: Bool
    var source: String
    /// Nothing but letters, which a name of the app's own may be too.
    var isPlainWord: Bool
    /// Whether it tells a device or a container apart.
    var isIdentifier = false
  }

  private let pseudonyms: Pseudonyms
  private let fakes: [String: String]
  private var fakeData: [[UInt8]: [UInt8]] = [:]
  private var origins: [Origin] = []
  private var forms: [Form] = []
  private let index: PatternIndex

  /// Makes up a value for each original.
  ///
  /// - Parameter kept: words that are not looked for.
  init(_ originals: Originals, _ pseudonyms: Pseudonyms, keeping kept: Set<String>) throws {
    self.pseudonyms = pseudonyms
    fakes = try Self.fakes(for: originals, pseudonyms)
    let kept = Set(kept.map(\.asciiLowercased)).union(FormatWords.all)
    var patterns: [PatternIndex.Pattern] = []
    for (text, fake) in fakes where text.utf8.count >= Self.leastWord && !kept.contains(text) {
      guard let entry = originals.texts[text] else { continue }
      origins.append(
        Origin(
          isSecret: entry.isSecret, source: entry.source, isPlainWord: Self.isPlainWord(text),
          isIdentifier: entry.isIdentifier))
      var seen: Set<[UInt8]> = []
      for (bytes, replacement, ignoresCase) in Self.forms(of: text, entry, fake)
      where seen.insert(bytes).inserted {
        var pattern = PatternIndex.Pattern(bytes: bytes, ignoresCase: ignoresCase)
        if text.utf8.count < PatternIndex.least {
          pattern.bound = .letter
        } else if text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) {
          pattern.bound = .digit
        }
        patterns.append(pattern)
        forms.append(Form(replacement: replacement, origin: origins.count - 1, ignoresCase: ignoresCase))
      }
    }
    for (text, entry) in originals.texts where entry.isIdentifier {
      guard let fake = fakes[text], let bytes = DeviceIdentifiers.bytes(text) else { continue }
      fakeData[bytes] = DeviceIdentifiers.bytes(fake)
    }
    for (data, entry) in originals.data where fakeData[data] == nil {
      let fake = try pseudonyms.bytes(data)
      fakeData[data] = fake
      origins.append(Origin(isSecret: entry.isSecret, source: entry.source, isPlainWord: false))
      let pairs = [(data, fake)] + zip(OriginalForms.encoded(data), OriginalForms.encoded(fake))
      for (bytes, replacement) in pairs {
        patterns.append(PatternIndex.Pattern(bytes: bytes, ignoresCase: false))
        forms.append(Form(replacement: replacement, origin: origins.count - 1, ignoresCase: false))
      }
    }
    index = PatternIndex(patterns)
  }

  private static func forms(
    of text: String, _ entry: Originals.Entry, _ fake: String
  ) -> [(bytes: [UInt8], replacement: [UInt8], ignoresCase: Bool)] {
    // A short one is a word of a text, and stands there as it is.
    if text.utf8.count < PatternIndex.least { return [(Array(text.utf8), Array(fake.utf8), true)] }
    var forms: [(bytes: [UInt8], replacement: [UInt8], ignoresCase: Bool)] = []
    if entry.isIdentifier, let bytes = DeviceIdentifiers.bytes(text),
      let other = DeviceIdentifiers.bytes(fake)
    {
      // Without dashes, and as the bytes that its digits are.
      let (bare, otherBare) = (text.replacing("-", with: ""), fake.replacing("-", with: ""))
      forms += OriginalForms.all.map { ($0.encode(bare), $0.encode(otherBare), true) }
      for (spelling, made) in [(bare, otherBare), (bare.uppercased(), otherBare.uppercased())] {
        forms += zip(OriginalForms.encoded(Array(spelling.utf8)), OriginalForms.encoded(Array(made.utf8)))
          .map { ($0, $1, false) }
      }
      forms.append((bytes, other, false))
      forms += zip(OriginalForms.encoded(bytes), OriginalForms.encoded(other)).map { ($0, $1, false) }
    }
    for variant in variants(of: [text]) {
      forms += OriginalForms.all.map { ($0.encode(variant), $0.encode(fake), true) }
    }
    // Who has encoded a text may have changed its capitals before.
    for variant in variants(of: entry.spellings.union([text])) {
      let spelling = Array(variant.utf8)
      let other = cased(Array(fake.utf8), as: spelling)
      forms += zip(OriginalForms.encoded(spelling), OriginalForms.encoded(other)).map { ($0, $1, false) }
    }
    return forms
  }

  /// Texts in small letters and capitals, and with their accents composed or apart, as file systems have them.
  private static func variants(of texts: Set<String>) -> [String] {
    let cased = texts.flatMap { [$0, $0.lowercased(), $0.uppercased()] }
    let all = cased.flatMap { text in
      text.utf8.allSatisfy { $0 < 0x80 }
        ? [text]
        : [text, text.precomposedStringWithCanonicalMapping, text.decomposedStringWithCanonicalMapping]
    }
    // Swift takes composed and decomposed for the same.
    var seen: Set<[UInt8]> = []
    return all.filter { seen.insert(Array($0.utf8)).inserted }
  }

  /// A value of its own for each text, which holds none of the originals.
  private static func fakes(for originals: Originals, _ pseudonyms: Pseudonyms) throws -> [String: String] {
    let texts = originals.texts.keys.sorted()
    let known = PatternIndex(texts.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
    var used: Set<String> = []
    var fakes: [String: String] = [:]
    for text in texts {
      var fake = text
      // A text of one letter has few others: what cannot be its own is at least another.
      for attempt in 0..<200 {
        fake = try pseudonyms.text(text, attempt: attempt)
        let isFree = !used.contains(fake) && originals.texts[fake] == nil
        if fake != text, isFree || attempt > 100,
          known.matches(in: Array(fake.utf8), includesShort: false).isEmpty
        {
          break
        }
      }
      used.insert(fake)
      fakes[text] = fake
    }
    return fakes
  }

  private static func isPlainWord(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { $0.properties.isAlphabetic || "_-.".unicodeScalars.contains($0) }
  }

  // MARK: Replacing

  /// What stands for a text as a whole.
  func fake(of text: String) throws -> String {
    try Originals.lines(of: text).map { line in
      let folded = line.content.asciiLowercased
      let fake = try fakes[folded] ?? pseudonyms.text(folded)
      return String(decoding: Self.cased(Array(fake.utf8), as: Array(line.content.utf8)), as: UTF8.self)
        + line.gap
    }.joined()
  }

  /// What stands for bytes as a whole.
  func fake(of data: [UInt8]) throws -> [UInt8] { try fakeData[data] ?? pseudonyms.bytes(data) }

  /// A day that stands for another one.
  func fake(of date: Date) throws -> Date {
    let seconds = date.timeIntervalSinceReferenceDate
    let days = try pseudonyms.number(for: Array("\(seconds)".utf8), below: 3000) + 30
    return Date(timeIntervalSinceReferenceDate: seconds - Double(days) * 86_400)
  }

  /// A text with all that must not stand in it replaced; nil when there is nothing of the kind.
  func replacing(in text: String) -> String? {
    let bytes = Array(text.utf8)
    let matches = index.matches(in: bytes, includesShort: true)
    guard !matches.isEmpty else { return nil }
    var result: [UInt8] = []
    var end = 0
    for match in matches {
      result += bytes[end..<match.range.lowerBound]
      let form = forms[match.pattern]
      result +=
        form.ignoresCase ? Self.cased(form.replacement, as: Array(bytes[match.range])) : form.replacement
      end = match.range.upperBound
    }
    // A form of fewer bits (UTF-16 in a text) is no text any more, and is found by the last look at all bytes.
    return String(validating: result + bytes[end...], as: UTF8.self)
  }

  /// Bytes that are no text with the identifiers of the device and its containers replaced, each by as many bytes; nil
  /// when there is none in them.
  func replacing(identifiersIn bytes: [UInt8]) -> [UInt8]? {
    var result = bytes
    for match in index.matches(in: bytes, includesShort: false) {
      let form = forms[match.pattern]
      guard origins[form.origin].isIdentifier, form.replacement.count == match.range.count else { continue }
      let found = Array(bytes[match.range])
      result.replaceSubrange(
        match.range, with: form.ignoresCase ? Self.cased(form.replacement, as: found) : form.replacement)
    }
    return result == bytes ? nil : result
  }

  /// Whether a text as a whole is an original.
  func isOriginal(_ text: String) -> Bool { fakes[text.asciiLowercased] != nil }

  /// Whether bytes as a whole are an original.
  func isOriginal(_ data: [UInt8]) -> Bool { fakeData[data] != nil }

  /// What of the originals is in bytes, but for those that are too short to be told from chance.
  func found(in bytes: [UInt8]) -> [(range: Range<Int>, origin: Origin)] {
    index.matches(in: bytes, includesShort: false).map { ($0.range, origins[forms[$0.pattern].origin]) }
  }

  private static func cased(_ bytes: [UInt8], as other: [UInt8]) -> [UInt8] {
    guard bytes.count == other.count else { return bytes }
    return zip(bytes, other).map { byte, other in
      (0x41...0x5A).contains(other) && (0x61...0x7A).contains(byte) ? byte & ~0x20 : byte
    }
  }
}

/// The words of a fixture's own files, which stand there whatever the data are.
enum FormatWords {
  static let all: Set<String> = [
    "account", "accessible", "access-group", "action", "after", "always", "attributes", "autoincrement",
    "before",
    "begin", "between", "blob", "boolean", "cascade", "check", "collate", "column", "commit", "conflict",
    "constraint",
    "container", "create", "current_timestamp", "data", "database", "date", "default", "deferrable",
    "deferred",
    "delete", "description", "directories", "drop", "excluded", "exists", "expect", "false", "fixture",
    "foreign",
    "from", "group", "groups", "index", "insert", "integer", "into", "join", "key", "label", "modes",
    "nocase", "null",
    "only-in-wal", "order", "pragma", "primary", "protection", "real", "references", "replace", "rowid",
    "select",
    "service", "table", "text", "timestamp", "trigger", "true", "unique", "unmarked", "update",
    "user_version", "using",
    "value", "values", "varchar", "vault", "version", "view", "virtual", "when", "where", "without",
  ]
}
