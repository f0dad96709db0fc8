import Foundation

/// What is known of a value that must not be in a fixture; not the value.
struct Original: Sendable {
  /// Whether it is a secret; otherwise it was chosen.
  var isSecret: Bool
  /// Where it was found first, for people.
  var source: String
  /// Whether it identifies a device or a container.
  var isIdentifier = false
  /// Whether it has letters only, as a name in the app's schema or settings.
  var isPlainWord = false
  /// The text in the cases in which it was found.
  var spellings: Set<String> = []

  /// For people.
  var kind: String { isSecret ? "a secret" : "a value" }
}

/// The values of a container that must not be in its fixture.
struct Originals {
  /// Texts, line by line, with the letters A to Z in lower case: an address in capitals is the same one.
  private(set) var texts: [String: Original] = [:]
  private(set) var data: [[UInt8]: Original] = [:]

  /// Adds the lines of a text that have letters or digits, as they are and without their escapes.
  mutating func add(_ text: String, isSecret: Bool, isIdentifier: Bool = false, source: String) {
    let lines = ([text] + Unescaped.meanings(of: text)).flatMap { $0.matches(of: Self.line) }.map {
      String($0.output)
    }
    for line in lines where Pseudonyms.canChange(line) {
      let folded = line.asciiLowercased
      var original = texts[folded] ?? Original(isSecret: isSecret, source: source)
      original.isSecret = original.isSecret || isSecret
      original.isIdentifier = original.isIdentifier || isIdentifier
      original.isPlainWord = line.unicodeScalars.allSatisfy {
        $0.properties.isAlphabetic || "_-.".unicodeScalars.contains($0)
      }
      original.spellings.insert(line)
      texts[folded] = original
    }
  }

  /// Adds bytes, unless so few that they occur by chance.
  mutating func add(_ bytes: [UInt8], isSecret: Bool, source: String) {
    guard bytes.count >= PatternIndex.least else { return }
    data[bytes, default: Original(isSecret: isSecret, source: source)].isSecret =
      isSecret || data[bytes]?.isSecret == true
  }

  /// A line without the white space around it.
  static var line: Regex<Substring> { #/\S(?:.*\S)?/# }
}

/// The replacement of each value that must not be in a fixture, in whatever form it is found.
struct Replacements: Sendable {
  /// Shorter texts are replaced only where they were found.
  private static let leastWord = 3

  /// Words of the fixture's SQL and YAML, which are not searched for.
  private static let formatWords = Set(
    """
    access-group accessible account always attributes boolean cascade collate commit constraint container create
    database default delete description directories excluded exists fixture foreign groups insert integer nocase
    only-in-wal pragma primary protection references replace select service synchronizable trigger unique unmarked
    update user_version values varchar version virtual without
    """.split(whereSeparator: \.isWhitespace).map(String.init))

  private let pseudonyms: Pseudonyms
  private let madeTexts: [String: String]
  private var madeData: [[UInt8]: [UInt8]] = [:]
  /// The forms of all originals, and the original of each.
  private let forms: [PatternIndex.Pattern]
  private let originals: [Original]
  private let index: PatternIndex

  /// Makes up a value for each original.
  ///
  /// - Parameter kept: words that are not searched for.
  init(_ originals: Originals, keeping kept: [String]) throws {
    pseudonyms = try Pseudonyms()
    madeTexts = try Self.texts(for: originals, pseudonyms)
    let kept = Self.formatWords.union(kept.map(\.asciiLowercased))
    var forms: [(form: PatternIndex.Pattern, original: Original)] = []
    for (text, original) in originals.texts where text.utf8.count >= Self.leastWord && !kept.contains(text) {
      guard let made = madeTexts[text] else { continue }
      // A short text is searched for as a word, and never in an encoding.
      let isShort = text.utf8.count < PatternIndex.least
      let isNumber = Pseudonyms.isNumber(text)
      let short = PatternIndex.Pattern(bytes: Array(text.utf8), replacement: Array(made.utf8))
      var seen: Set<[UInt8]> = []
      for var form in isShort ? [short] : EncodedForm.all(of: text, original, made)
      where seen.insert(form.bytes).inserted {
        // Beside an encoded number digits mean nothing.
        form.bound = isShort ? .letter : isNumber && form.bytes.count == text.utf8.count ? .digit : .none
        forms.append((form, original))
      }
      if original.isIdentifier, let bytes = DeviceIdentifiers.bytes(text) {
        madeData[bytes] = DeviceIdentifiers.bytes(made)
      }
    }
    for (data, original) in originals.data where madeData[data] == nil {
      let made = try pseudonyms.bytes(data)
      madeData[data] = made
      forms += EncodedForm.binary(data, made).map { ($0, original) }
    }
    (self.forms, self.originals) = (forms.map(\.form), forms.map(\.original))
    index = PatternIndex(self.forms)
  }

  /// A different value for each text, which contains none of the originals.
  private static func texts(for originals: Originals, _ pseudonyms: Pseudonyms) throws -> [String: String] {
    let known = PatternIndex(originals.texts.keys.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
    var used = Set(originals.texts.keys)
    var result: [String: String] = [:]
    for text in originals.texts.keys.sorted() {
      var made = text
      // There may be no unused text of one letter: then an equal one must do.
      for attempt in 0..<200 {
        made = try pseudonyms.text(text, attempt: attempt)
        let isFree = attempt > 100 || !used.contains(made)
        if made != text, isFree, known.matches(in: Array(made.utf8), includesShort: false).isEmpty { break }
      }
      used.insert(made)
      result[text] = made
    }
    return result
  }

  // MARK: Replacing

  /// The replacement of a whole text.
  func replacement(of text: String) throws -> String {
    try text.replacing(Originals.line) { line in
      let folded = String(line.output).asciiLowercased
      let made = try madeTexts[folded] ?? pseudonyms.text(folded)
      return String(decoding: Self.cased(Array(made.utf8), as: Array(line.output.utf8)), as: UTF8.self)
    }
  }

  /// The replacement of bytes as a whole.
  func replacement(of data: [UInt8]) throws -> [UInt8] { try madeData[data] ?? pseudonyms.bytes(data) }

  func replacement(of date: Date) throws -> Date { try pseudonyms.date(date) }

  /// A text with all originals in it replaced; nil when there are none.
  func replacing(in text: String) -> String? {
    // Text in which UTF-16 was replaced may be invalid UTF-8; the final scan of all bytes finds it.
    replacing(in: Array(text.utf8), includesShort: true) { _ in true }.flatMap {
      String(validating: $0, as: UTF8.self)
    }
  }

  /// Binary data with the identifiers in it replaced, each by as many bytes; nil when there are none.
  func replacing(identifiersIn bytes: [UInt8]) -> [UInt8]? {
    replacing(in: bytes, includesShort: false) {
      $0.original.isIdentifier && $0.made.count == $0.range.count
    }
  }

  private func replacing(
    in bytes: [UInt8], includesShort: Bool, where isReplaced: (Match) -> Bool
  ) -> [UInt8]? {
    var (result, end): ([UInt8], Int) = ([], 0)
    for match in matches(in: bytes, includesShort: includesShort) where isReplaced(match) {
      result += bytes[end..<match.range.lowerBound] + match.made
      end = match.range.upperBound
    }
    return end == 0 ? nil : result + bytes[end...]
  }

  /// Where an original is in bytes, and what takes its place.
  typealias Match = (range: Range<Int>, made: [UInt8], original: Original)

  /// The originals in bytes, in any encoding and escaped in any way: the first, and the longest of those
  /// that begin together.
  func matches(in bytes: [UInt8], includesShort: Bool) -> [Match] {
    var found: [Match] = []
    Unescaped.visit(bytes) { text in
      for (range, number) in index.matches(in: text.bytes, includesShort: includesShort)
      where range.count >= text.least {
        let form = forms[number]
        let made =
          form.ignoresCase ? Self.cased(form.replacement, as: Array(text.bytes[range])) : form.replacement
        let written = text.written(made, over: range)
        found.append((written.range, written.bytes, originals[number]))
      }
    }
    let key = { (match: (offset: Int, element: Match)) in
      (match.element.range.lowerBound, -match.element.range.count, match.offset)
    }
    var end = 0
    return found.enumerated().sorted { key($0) < key($1) }.map(\.element).compactMap { match in
      defer { end = max(end, match.range.upperBound) }
      guard match.range.lowerBound < end else { return match }
      // Of one that another overlaps the rest must go, too.
      let rest = match.range.clamped(to: end..<max(end, match.range.upperBound))
      return rest.isEmpty ? nil : (rest, Array(match.made.suffix(rest.count)), match.original)
    }
  }

  /// Whether a text as a whole is an original.
  func isOriginal(_ text: String) -> Bool { madeTexts[text.asciiLowercased] != nil }

  /// Whether bytes as a whole are an original.
  func isOriginal(_ data: [UInt8]) -> Bool { madeData[data] != nil }

  /// The originals in bytes, without those so short that they occur by chance.
  func found(in bytes: [UInt8]) -> [(range: Range<Int>, original: Original)] {
    matches(in: bytes, includesShort: false).map { ($0.range, $0.original) }
  }

  static func cased(_ bytes: [UInt8], as other: [UInt8]) -> [UInt8] {
    guard bytes.count == other.count else { return bytes }
    return zip(bytes, other).map { byte, other in
      (0x41...0x5A).contains(other) && (0x61...0x7A).contains(byte) ? byte & ~0x20 : byte
    }
  }
}
