import AgeEncryption
import Foundation

/// The values of a container that must not be in its fixture.
struct Originals {
  struct Entry {
    /// Whether it is a secret; else it was chosen.
    var isSecret: Bool
    /// Where it was found first, for people.
    var source: String
    /// The text as it was found, in one way or another.
    var spellings: Set<String> = []
    /// Whether it identifies a device or a container.
    var isIdentifier = false
  }

  /// Texts, line by line, with the letters A to Z in lower case: who writes an address in capitals means the same one.
  private(set) var texts: [String: Entry] = [:]
  /// Binary data.
  private(set) var data: [[UInt8]: Entry] = [:]

  /// Takes a text, unless a made-up one would look the same.
  mutating func add(_ text: String, isSecret: Bool, source: String) {
    for line in Self.lines(of: text).lazy.map(\.content) where Pseudonyms.canChange(line) {
      var entry = texts[line.asciiLowercased] ?? Entry(isSecret: isSecret, source: source)
      entry.isSecret = entry.isSecret || isSecret
      entry.spellings.insert(line)
      texts[line.asciiLowercased] = entry
    }
  }

  /// Takes an identifier of a device or a container; a UUID counts with its dashes.
  mutating func add(identifier: String, source: String) {
    let text = DeviceIdentifiers.uuid(identifier) ?? identifier
    add(text, isSecret: false, source: source)
    texts[text.asciiLowercased]?.isIdentifier = true
  }

  /// Takes bytes, unless so few that they occur by chance.
  mutating func add(_ bytes: [UInt8], isSecret: Bool, source: String) {
    guard bytes.count >= PatternIndex.least else { return }
    data[bytes, default: Entry(isSecret: isSecret, source: source)].isSecret =
      isSecret || data[bytes]?.isSecret == true
  }

  /// The lines of a text: white space that a line starts and ends with belongs to none.
  static func lines(of text: String) -> [(content: String, gap: String)] {
    var lines: [(content: String, gap: String)] = []
    var rest = Substring(text)
    while !rest.isEmpty {
      let line = rest.prefix { !$0.isNewline }
      let lead = line.prefix { $0.isWhitespace }
      if !lead.isEmpty { lines.append(("", String(lead))) }
      var content = line.dropFirst(lead.count)
      while content.last?.isWhitespace == true { content.removeLast() }
      let end = rest[content.endIndex...].prefix { $0.isWhitespace }
      lines.append((String(content), String(end)))
      rest = rest[end.endIndex...]
    }
    return lines
  }
}

/// The replacement of each value that must not be in a fixture, in whatever form it is found.
struct Replacements: Sendable {
  /// Shorter texts are replaced where they are found out, and looked for nowhere else.
  private static let leastWord = 3

  private struct Form: Sendable {
    var replacement: [UInt8]
    var origin: Origin
    /// Whether capitals in the match are kept in the replacement.
    var ignoresCase: Bool
  }

  /// One original, without its value.
  struct Origin: Sendable {
    var isSecret: Bool
    var source: String
    /// Nothing but letters, which a name of the app's own may be too.
    var isPlainWord = false
    /// Whether it identifies a device or a container.
    var isIdentifier = false
  }

  private let pseudonyms: Pseudonyms
  private var madeTexts: [String: String] = [:]
  private var madeData: [[UInt8]: [UInt8]] = [:]
  private var forms: [Form] = []
  private let index: PatternIndex

  /// Makes up a value for each original.
  ///
  /// - Parameter kept: words that are not looked for.
  init(_ originals: Originals, keeping kept: Set<String>) throws {
    pseudonyms = try Pseudonyms()
    madeTexts = try Self.texts(for: originals, pseudonyms)
    let kept = Set(kept.map(\.asciiLowercased)).union(FormatWords.all)
    var patterns: [PatternIndex.Pattern] = []
    var forms: [Form] = []
    for (text, entry) in originals.texts where text.utf8.count >= Self.leastWord && !kept.contains(text) {
      guard let made = madeTexts[text] else { continue }
      let isPlainWord = text.unicodeScalars.allSatisfy {
        $0.properties.isAlphabetic || "_-.".unicodeScalars.contains($0)
      }
      let origin = Origin(
        isSecret: entry.isSecret, source: entry.source, isPlainWord: isPlainWord,
        isIdentifier: entry.isIdentifier)
      let isNumber = text.utf8.allSatisfy { (0x30...0x39).contains($0) }
      // A short one is a word of a text, and is never escaped.
      let isShort = text.utf8.count < PatternIndex.least
      var seen: Set<[UInt8]> = []
      for form in isShort ? [EncodedForm(text, made)] : EncodedForm.all(of: text, entry, made)
      where seen.insert(form.bytes).inserted {
        patterns.append(
          .init(
            bytes: form.bytes, ignoresCase: form.ignoresCase,
            bound: isShort ? .letter : isNumber ? .digit : .none))
        forms.append(Form(replacement: form.replacement, origin: origin, ignoresCase: form.ignoresCase))
      }
      if entry.isIdentifier, let bytes = DeviceIdentifiers.bytes(text) {
        madeData[bytes] = DeviceIdentifiers.bytes(made)
      }
    }
    for (data, entry) in originals.data where madeData[data] == nil {
      let made = try pseudonyms.bytes(data)
      madeData[data] = made
      for (bytes, replacement) in [(data, made)] + zip(EncodedForm.digits(data), EncodedForm.digits(made)) {
        patterns.append(.init(bytes: bytes, ignoresCase: false))
        let origin = Origin(isSecret: entry.isSecret, source: entry.source)
        forms.append(Form(replacement: replacement, origin: origin, ignoresCase: false))
      }
    }
    (self.forms, index) = (forms, PatternIndex(patterns))
  }

  /// A different value for each text, which contains none of the originals.
  private static func texts(
    for originals: Originals, _ pseudonyms: Pseudonyms
  ) throws -> [String: String] {
    let texts = originals.texts.keys.sorted()
    let known = PatternIndex(texts.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
    var used: Set<String> = []
    var result: [String: String] = [:]
    for text in texts {
      var made = text
      // A text of one letter has few others: what cannot be its own is at least another.
      for attempt in 0..<200 {
        made = try pseudonyms.text(text, attempt: attempt)
        let isFree = !used.contains(made) && originals.texts[made] == nil
        if made != text, isFree || attempt > 100,
          known.matches(in: Array(made.utf8), includesShort: false).isEmpty
        {
          break
        }
      }
      used.insert(made)
      result[text] = made
    }
    return result
  }

  // MARK: Replacing

  /// The replacement of a whole text.
  func replacement(of text: String) throws -> String {
    try Originals.lines(of: text).map { line in
      let folded = line.content.asciiLowercased
      let made = try madeTexts[folded] ?? pseudonyms.text(folded)
      return String(decoding: Self.cased(Array(made.utf8), as: Array(line.content.utf8)), as: UTF8.self)
        + line.gap
    }.joined()
  }

  /// The replacement of bytes as a whole.
  func replacement(of data: [UInt8]) throws -> [UInt8] { try madeData[data] ?? pseudonyms.bytes(data) }

  func replacement(of date: Date) throws -> Date {
    let seconds = date.timeIntervalSinceReferenceDate
    let days = try pseudonyms.number(for: Array("\(seconds)".utf8), below: 3000) + 30
    return Date(timeIntervalSinceReferenceDate: seconds - Double(days) * 86_400)
  }

  /// A text with all originals in it replaced; nil when there are none.
  func replacing(in text: String) -> String? {
    // A form such as UTF-16 in a text is not valid UTF-8 afterwards; the final scan of all bytes finds it.
    replacing(in: Array(text.utf8), includesShort: true) { _, _ in true }.flatMap {
      String(validating: $0, as: UTF8.self)
    }
  }

  /// Binary data with the identifiers of the device and its containers replaced, each by as many bytes; nil
  /// when there is none in them.
  func replacing(identifiersIn bytes: [UInt8]) -> [UInt8]? {
    replacing(in: bytes, includesShort: false) { $0.origin.isIdentifier && $0.replacement.count == $1.count }
  }

  private func replacing(
    in bytes: [UInt8], includesShort: Bool, where isReplaced: (Form, Range<Int>) -> Bool
  ) -> [UInt8]? {
    let matches = index.matches(in: bytes, includesShort: includesShort).filter {
      isReplaced(forms[$0.pattern], $0.range)
    }
    if matches.isEmpty { return nil }
    var result: [UInt8] = []
    var end = 0
    for match in matches {
      result += bytes[end..<match.range.lowerBound]
      let form = forms[match.pattern]
      result +=
        form.ignoresCase ? Self.cased(form.replacement, as: Array(bytes[match.range])) : form.replacement
      end = match.range.upperBound
    }
    return result + bytes[end...]
  }

  /// Whether a text as a whole is an original.
  func isOriginal(_ text: String) -> Bool { madeTexts[text.asciiLowercased] != nil }

  /// Whether bytes as a whole are an original.
  func isOriginal(_ data: [UInt8]) -> Bool { madeData[data] != nil }

  /// The originals in bytes, without those so short that they occur by chance.
  func found(in bytes: [UInt8]) -> [(range: Range<Int>, origin: Origin)] {
    index.matches(in: bytes, includesShort: false).map { ($0.range, forms[$0.pattern].origin) }
  }

  static func cased(_ bytes: [UInt8], as other: [UInt8]) -> [UInt8] {
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
    let random = try random(for: Array(folded.utf8), attempt, count: text.unicodeScalars.count)
    let isHexadecimal = Self.isHexadecimal(folded)
    var result = String.UnicodeScalarView()
    var isNumberStart = true
    for (scalar, byte) in zip(text.unicodeScalars, random) {
      result.append(Self.other(scalar, byte, isHexadecimal: isHexadecimal, isNumberStart: isNumberStart))
      isNumberStart = !("0"..."9" ~= scalar)
    }
    return String(result)
  }

  func bytes(_ bytes: [UInt8]) throws -> [UInt8] {
    Array(try random(for: bytes, 0, count: bytes.count).prefix(bytes.count))
  }

  /// A number from 0 on for a value, below a limit.
  func number(for bytes: [UInt8], below limit: Int) throws -> Int {
    try key.code(of: bytes).prefix(6).reduce(0) { $0 << 8 | Int($1) } % limit
  }

  /// At least so many bytes that look random, by a value and the key.
  private func random(for value: [UInt8], _ attempt: Int, count: Int) throws -> [UInt8] {
    func bytes(_ number: Int) -> [UInt8] { withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) } }
    // The value's own code, so that a long value is hashed once.
    let seed = try key.code(of: value + bytes(attempt))
    var result: [UInt8] = []
    while result.count < count { result += try key.code(of: seed + bytes(result.count)) }
    return result
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
    default:
      let properties = scalar.properties
      guard properties.isAlphabetic || properties.numericType != nil || properties.isEmojiPresentation,
        let letters = letters[scalar.utf8.count]
      else { return scalar }
      return letters[Int(byte) % letters.count]
    }
  }

  /// Letters and pictures by their number of bytes. What else a script has, such as marks that join letters, stays.
  private static let letters: [Int: [Unicode.Scalar]] = [
    2: Array("àáâäåæçèéêëìíîïñòóôöøùúûü".unicodeScalars),
    3: Array("あいうえおかきくけこさしすせそたちつてと".unicodeScalars),
    4: Array("😀😃😄😁😆😅😊🙂🙃😉😌😍😘😋😎🤓🧐😏".unicodeScalars),
  ]
}

extension String {
  /// With the letters A to Z in lower case, so that every byte stays in its place.
  var asciiLowercased: String {
    String(decoding: utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
