import AgeEncryption
import Foundation

/// The replacement of each value that must not be in a fixture, in whatever form it is found.
struct Replacements: Sendable {
  /// Shorter texts are replaced where they are found out, and looked for nowhere else.
  private static let leastWord = 3

  private struct Form: Sendable {
    var replacement: [UInt8]
    var origin: Int
    /// Whether capitals in the match are kept in the replacement.
    var ignoresCase: Bool
  }

  /// One original, without its value.
  struct Origin: Sendable {
    var isSecret: Bool
    var source: String
    /// Nothing but letters, which a name of the app's own may be too.
    var isPlainWord: Bool
    /// Whether it identifies a device or a container.
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
    // A short one is a word of a text, and is never escaped.
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

  /// A different value for each text, which contains none of the originals.
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

  /// The replacement of a whole text.
  func fake(of text: String) throws -> String {
    try Originals.lines(of: text).map { line in
      let folded = line.content.asciiLowercased
      let fake = try fakes[folded] ?? pseudonyms.text(folded)
      return String(decoding: Self.cased(Array(fake.utf8), as: Array(line.content.utf8)), as: UTF8.self)
        + line.gap
    }.joined()
  }

  /// The replacement of bytes as a whole.
  func fake(of data: [UInt8]) throws -> [UInt8] { try fakeData[data] ?? pseudonyms.bytes(data) }

  /// The replacement of a date.
  func fake(of date: Date) throws -> Date {
    let seconds = date.timeIntervalSinceReferenceDate
    let days = try pseudonyms.number(for: Array("\(seconds)".utf8), below: 3000) + 30
    return Date(timeIntervalSinceReferenceDate: seconds - Double(days) * 86_400)
  }

  /// A text with all originals in it replaced; nil when there are none.
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
    // A form such as UTF-16 in a text is not valid UTF-8 afterwards; the final scan of all bytes finds it.
    return String(validating: result + bytes[end...], as: UTF8.self)
  }

  /// Binary data with the identifiers of the device and its containers replaced, each by as many bytes; nil
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

  /// The originals in bytes, without those so short that they occur by chance.
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

/// The words of a fixture's own files, which are there whatever the data are.
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

/// Makes up values of the same shape and length: a letter for a letter, a digit for a digit, all else as it is. The
/// same value gives the same one as long as the same value of this type makes it; its key is random and is kept
/// nowhere, so that values cannot be guessed and tried.
struct Pseudonyms {
  private let key: Fingerprint

  init() throws { key = try Fingerprint() }

  /// A text with other letters and digits, in the same case and with the same number of bytes.
  ///
  /// - Parameter attempt: another number gives another text.
  func text(_ text: String, attempt: Int = 0) throws -> String {
    let folded = text.asciiLowercased
    var random = try Stream(key, Array(folded.utf8), attempt)
    let isHexadecimal = Self.isHexadecimal(folded)
    var result = String.UnicodeScalarView()
    var isNumberStart = true
    for scalar in text.unicodeScalars {
      let byte = try random.next()
      result.append(Self.other(scalar, byte, isHexadecimal: isHexadecimal, isNumberStart: isNumberStart))
      isNumberStart = !("0"..."9" ~= scalar)
    }
    return String(result)
  }

  func bytes(_ bytes: [UInt8]) throws -> [UInt8] {
    var random = try Stream(key, bytes, 0)
    return try bytes.map { _ in try random.next() }
  }

  /// A number from 0 on for a value, below a limit.
  func number(for bytes: [UInt8], below limit: Int) throws -> Int {
    try key.code(of: bytes).prefix(6).reduce(0) { $0 << 8 | Int($1) } % limit
  }

  /// Whether a text would change: one with neither letters nor digits says nothing.
  static func canChange(_ text: String) -> Bool {
    text.unicodeScalars.contains {
      other($0, 1, isHexadecimal: false, isNumberStart: false)
        != other($0, 2, isHexadecimal: false, isNumberStart: false)
    }
  }

  private static func isHexadecimal(_ text: String) -> Bool {
    let letters = text.unicodeScalars.filter { $0.properties.isAlphabetic || "0"..."9" ~= $0 }
    return letters.count >= 8 && letters.allSatisfy { "0"..."9" ~= $0 || "a"..."f" ~= $0 }
      && letters.contains { "0"..."9" ~= $0 } && letters.contains { "a"..."f" ~= $0 }
  }

  private static func other(
    _ scalar: Unicode.Scalar, _ byte: UInt8, isHexadecimal: Bool, isNumberStart: Bool
  ) -> Unicode.Scalar {
    switch scalar {
    case "0"..."9":
      // A number keeps its number of digits.
      let first: UInt8 = isNumberStart && scalar != "0" ? 1 : 0
      return Unicode.Scalar(UInt8(ascii: "0") + first + byte % (10 - first))
    case "a"..."z": return Unicode.Scalar(UInt8(ascii: "a") + byte % (isHexadecimal ? 6 : 26))
    case "A"..."Z": return Unicode.Scalar(UInt8(ascii: "A") + byte % (isHexadecimal ? 6 : 26))
    case _ where scalar.isASCII: return scalar
    default: return otherLetter(scalar, byte)
    }
  }

  private static let short = Array("àáâäåæçèéêëìíîïñòóôöøùúûü".unicodeScalars)
  private static let long = Array("あいうえおかきくけこさしすせそたちつてと".unicodeScalars)
  private static let pictures = Array("😀😃😄😁😆😅😊🙂🙃😉😌😍😘😋😎🤓🧐😏".unicodeScalars)

  /// A letter of the same number of bytes: what else a script has, such as marks that join letters, stays.
  private static func otherLetter(_ scalar: Unicode.Scalar, _ byte: UInt8) -> Unicode.Scalar {
    let properties = scalar.properties
    switch scalar.utf8.count {
    case 2 where properties.isAlphabetic:
      let letter = short[Int(byte) % short.count]
      guard properties.isUppercase, let upper = letter.properties.uppercaseMapping.unicodeScalars.first else {
        return letter
      }
      return upper
    case 3 where properties.isAlphabetic || properties.numericType != nil: return long[Int(byte) % long.count]
    case 4 where properties.isEmojiPresentation: return pictures[Int(byte) % pictures.count]
    case 4 where properties.isAlphabetic:
      return Unicode.Scalar(scalar.value & ~0x3F | UInt32(byte & 0x3F)) ?? scalar
    default: return scalar
    }
  }

  /// Bytes that look random, by a value and the key.
  private struct Stream {
    private let key: Fingerprint
    private let seed: [UInt8]
    private var block: [UInt8] = []
    private var number = 0

    init(_ key: Fingerprint, _ value: [UInt8], _ attempt: Int) throws {
      self.key = key
      // The value's own code, so that a long value is hashed once.
      seed = try key.code(of: value + Self.bytes(of: attempt))
    }

    mutating func next() throws -> UInt8 {
      if block.isEmpty {
        block = try key.code(of: seed + Self.bytes(of: number))
        number += 1
      }
      return block.removeLast()
    }

    private static func bytes(of number: Int) -> [UInt8] {
      withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    }
  }
}

extension String {
  /// With the letters A to Z in lower case, so that every byte stays in its place.
  var asciiLowercased: String {
    String(decoding: utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
