import DrydockErrors

/// A way in which texts write characters, such as `\u0041`, `&#65;`, `%41`. What a file says in it is searched as what it
/// means, and a replacement is written in the same way.
struct Escaping: Sendable {
  /// What an escape means, and how many bytes it has.
  typealias Escape = (meaning: [UInt8], length: Int)

  /// For each byte whether an escape may start with it.
  private let isMark: [Bool]
  /// Whether escapes in it can be told from other text, so that a secret with one is also searched for without.
  let isUnambiguous: Bool
  /// The least length of a match in what it reads as; shorter ones are there by chance.
  let least: Int
  /// The escape at the start of bytes; nil where there is none.
  let read: @Sendable (_ text: ArraySlice<UInt8>) -> Escape?
  /// The escape of a byte or a character, in the form of another one.
  let write: @Sendable (_ meaning: [UInt8], _ form: ArraySlice<UInt8>) -> [UInt8]

  private init(
    _ isMark: (UInt8) -> Bool, isUnambiguous: Bool = true, least: Int = 0,
    read: @escaping @Sendable (ArraySlice<UInt8>) -> Escape?,
    write: @escaping @Sendable ([UInt8], ArraySlice<UInt8>) -> [UInt8]
  ) {
    self.isMark = (0...UInt8.max).map(isMark)
    (self.isUnambiguous, self.least, self.read, self.write) = (isUnambiguous, least, read, write)
  }

  /// The first place from an index on where an escape may start; the end when there is none.
  func mark(from index: Int, in bytes: [UInt8]) -> Int {
    var index = index
    while index < bytes.count, !isMark[Int(bytes[index])] { index += 1 }
    return index
  }

  /// All of them. Each may be inside another.
  static let all = [backslash, markup, percent, form, quotedPrintable, doubled, lineBreaks, separators]

  // MARK: The kinds

  /// JSON, JavaScript, C, YAML: `\"`, `\n`, `\u0041`, `\U00000041`, `\x41`, `\101`.
  private static let backslash = Escaping("\\".utf8.contains) { text in
    guard let kind = text.dropFirst().first else { return nil }
    switch kind {
    case UInt8(ascii: "u"):
      guard let code = number(text, from: 2, digits: 4) else { return nil }
      let low = text.dropFirst(6).starts(with: "\\u".utf8) ? number(text, from: 8, digits: 4) : nil
      return character(code, length: 6, low: low.map { ($0, 6) })
    case UInt8(ascii: "U"): return number(text, from: 2, digits: 8).flatMap { character($0, length: 10) }
    case UInt8(ascii: "x"): return number(text, from: 2, digits: 2).map { ([UInt8($0)], 4) }
    case UInt8(ascii: "0")...UInt8(ascii: "3"):
      return number(text, from: 1, digits: 3, radix: 8).map { ([UInt8($0)], 4) }
    default:
      if let control = controls[kind] { return ([control], 2) }
      return PatternIndex.isLetter(kind) && kind != UInt8(ascii: "_") ? nil : ([kind], 2)
    }
  } write: { meaning, form in
    switch form.dropFirst().first {
    case UInt8(ascii: "x"): meaning.flatMap { Array("\\x\([$0].hex)".utf8) }
    case (UInt8(ascii: "0")...UInt8(ascii: "3"))?:
      meaning.flatMap { byte in
        Array("\\".utf8) + [byte >> 6, byte >> 3 & 7, byte & 7].map { $0 + UInt8(ascii: "0") }
      }
    case UInt8(ascii: "U"):
      scalars(meaning).flatMap {
        Array("\\U".utf8) + digits(UInt16($0.value >> 16)) + digits(UInt16($0.value & 0xFFFF))
      }
    default:
      String(decoding: meaning, as: UTF8.self).utf16.flatMap { Array("\\u".utf8) + digits($0) }
    }
  }

  private static let controls: [UInt8: UInt8] = [
    UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13, UInt8(ascii: "t"): 9, UInt8(ascii: "b"): 8,
    UInt8(ascii: "f"): 12,
  ]

  /// XML and HTML: `&amp;`, `&#65;`, `&#x41;`; some write a character beyond 16 bits as its two surrogates.
  static let markup = Escaping("&".utf8.contains) { text in
    guard let first = reference(text) else { return nil }
    return character(first.code, length: first.length, low: reference(text.dropFirst(first.length)))
  } write: { meaning, form in
    let isHexadecimal = form.dropFirst(2).first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
    return scalars(meaning).flatMap { scalar in
      Array((isHexadecimal ? "&#x\(String(scalar.value, radix: 16));" : "&#\(scalar.value);").utf8)
    }
  }

  private static func reference(_ text: ArraySlice<UInt8>) -> (code: UInt32, length: Int)? {
    guard text.first == UInt8(ascii: "&"), let end = text.prefix(12).firstIndex(of: UInt8(ascii: ";")) else {
      return nil
    }
    let length = end - text.startIndex + 1
    let name = String(decoding: text.dropFirst().prefix(length - 2), as: UTF8.self)
    if let code = names[name] { return (code, length) }
    guard name.hasPrefix("#") else { return nil }
    let digits = name.dropFirst()
    let code =
      digits.first.map { "xX".contains($0) } == true ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
    return code.map { ($0, length) }
  }

  private static let names: [String: UInt32] = [
    "amp": 0x26, "lt": 0x3C, "gt": 0x3E, "quot": 0x22, "apos": 0x27,
  ]

  /// Addresses.
  private static let percent = Escaping("%".utf8.contains) {
    byte($0)
  } write: { meaning, _ in
    meaning.flatMap { Array("%\([$0].hex.uppercased())".utf8) }
  }

  /// Forms of web pages: as in addresses, and spaces are `+`.
  private static let form = Escaping("+%".utf8.contains, isUnambiguous: false) { text in
    text.first == UInt8(ascii: "+") ? ([0x20], 1) : byte(text)
  } write: {
    percent.write($0, $1)
  }

  /// Mail: `=41`; a line that ends with `=` continues in the next one.
  private static let quotedPrintable = Escaping("=".utf8.contains, isUnambiguous: false) { text in
    let breaks = text.dropFirst().prefix { $0 == 0x0D || $0 == 0x0A }
    return breaks.isEmpty ? byte(text) : ([], 1 + breaks.count)
  } write: { meaning, _ in
    meaning.flatMap { Array("=\([$0].hex.uppercased())".utf8) }
  }

  /// SQL and CSV: a quote is written twice.
  private static let doubled = Escaping("'\"".utf8.contains) { text in
    guard let quote = text.first, text.dropFirst().first == quote else { return nil }
    return ([quote], 2)
  } write: { meaning, _ in
    meaning.flatMap { "'\"".utf8.contains($0) ? [$0, $0] : [$0] }
  }

  /// Base64 in lines, as in mail, PEM and XML, and folded headers: the line's end and the next one's indentation.
  private static let lineBreaks = Escaping("\r\n".utf8.contains, isUnambiguous: false) { text in
    ([], text.prefix { [0x0D, 0x0A, 0x20, 0x09].contains($0) }.count)
  } write: { meaning, _ in
    meaning
  }

  /// Hexadecimal with something between the bytes: `61:62`, `61 62`, `0x61, 0x62`. Times and dates look like it.
  private static let separators = Escaping(isSeparator, isUnambiguous: false, least: 12) { text in
    // Asked at each space of a text: no slices.
    var index = text.startIndex
    let end = min(text.endIndex, index + 40)
    while index < end, isSeparator(text[index]) { index += 1 }
    if index + 1 < text.endIndex, text[index] == UInt8(ascii: "0"),
      text[index + 1] | 0x20 == UInt8(ascii: "x")
    {
      index += 2
    }
    func isDigit(_ offset: Int) -> Bool {
      index + offset < text.endIndex && text[index + offset].hexDigitValue != nil
    }
    return isDigit(0) && isDigit(1) && !isDigit(2) ? ([], index - text.startIndex) : nil
  } write: { meaning, _ in
    meaning
  }

  private static func isSeparator(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "-"), 9, 10, 13: true
    default: false
    }
  }

  // MARK: Numbers

  private static func digits(_ unit: UInt16) -> [UInt8] {
    Array([UInt8(unit >> 8), UInt8(unit & 0xFF)].hex.utf8)
  }

  /// A mark and the two hexadecimal digits of a byte.
  private static func byte(_ text: ArraySlice<UInt8>) -> Escape? {
    number(text, from: 1, digits: 2).map { ([UInt8($0)], 3) }
  }

  private static func number(_ text: ArraySlice<UInt8>, from: Int, digits: Int, radix: Int = 16) -> UInt32? {
    let found = text.dropFirst(from).prefix(digits)
    guard found.count == digits, found.first != UInt8(ascii: "+"), found.first != UInt8(ascii: "-") else {
      return nil
    }
    return UInt32(String(decoding: found, as: UTF8.self), radix: radix)
  }

  private static func scalars(_ bytes: [UInt8]) -> String.UnicodeScalarView {
    String(decoding: bytes, as: UTF8.self).unicodeScalars
  }

  /// The character of a code, or of two surrogates.
  private static func character(_ code: UInt32, length: Int, low: (code: UInt32, length: Int)? = nil)
    -> Escape?
  {
    if let scalar = Unicode.Scalar(code) { return (Array(String(scalar).utf8), length) }
    guard let low, let high = UInt16(exactly: code), let second = UInt16(exactly: low.code) else {
      return nil
    }
    return String(validating: [high, second], as: UTF16.self).map { (Array($0.utf8), length + low.length) }
  }
}

/// Bytes with the escapes of one or more kinds resolved.
struct Unescaped {
  private(set) var bytes: [UInt8]
  private var levels: [Level] = []

  /// Escapes of one kind that were resolved.
  fileprivate struct Level {
    let escaping: Escaping
    let source: [UInt8], meaning: [UInt8]
    /// Where each escape is, and where what it means is.
    let escapes: [(source: Range<Int>, meaning: Range<Int>)]
  }

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The least length of a match that counts.
  var least: Int { levels.reduce(0) { max($0, $1.escaping.least) } }

  /// Calls a body with bytes as they are, as they read without the escapes of each kind, and of each kind in another:
  /// the simplest reading comes first.
  static func visit(_ bytes: [UInt8], _ body: (Unescaped) -> Void) {
    let plain = Unescaped(bytes)
    let once = Escaping.all.compactMap { plain.resolving($0) }
    ([plain] + once).forEach(body)
    for outer in once {
      for inner in Escaping.all { outer.resolving(inner).map(body) }
    }
  }

  /// A text as it reads without the escapes of each kind that is unambiguous.
  static func meanings(of text: String) -> [String] {
    Escaping.all.filter(\.isUnambiguous).compactMap { meaning(of: text, $0) }
  }

  /// A text as it reads without the escapes of a kind; nil when it has none.
  static func meaning(of text: String, _ escaping: Escaping) -> String? {
    Unescaped(Array(text.utf8)).resolving(escaping).flatMap { String(validating: $0.bytes, as: UTF8.self) }
  }

  /// Nil when there are no escapes of the kind.
  private func resolving(_ escaping: Escaping) -> Unescaped? {
    var next = escaping.mark(from: 0, in: bytes)
    var escapes: [(source: Range<Int>, meaning: Range<Int>)] = []
    var (meaning, end): ([UInt8], Int) = ([], 0)
    while next < bytes.count {
      guard let escape = escaping.read(bytes[next...]) else {
        next = escaping.mark(from: next + 1, in: bytes)
        continue
      }
      meaning += bytes[end..<next]
      escapes.append((next..<next + escape.length, meaning.count..<meaning.count + escape.meaning.count))
      meaning += escape.meaning
      end = next + escape.length
      next = escaping.mark(from: end, in: bytes)
    }
    guard !escapes.isEmpty else { return nil }
    meaning += bytes[end...]
    var result = self
    result.bytes = meaning
    result.levels.append(Level(escaping: escaping, source: bytes, meaning: meaning, escapes: escapes))
    return result
  }

  /// Where a part of the bytes is in the file, and what is written there instead, in its escapes.
  func written(_ made: [UInt8], over range: Range<Int>) -> (range: Range<Int>, bytes: [UInt8]) {
    levels.reversed().reduce((range, made)) { $1.written($0.1, over: $0.0) }
  }
}

extension Unescaped.Level {
  fileprivate func written(_ made: [UInt8], over range: Range<Int>) -> (Range<Int>, [UInt8]) {
    let first = escapes.indices.first { escapes[$0].meaning.upperBound > range.lowerBound }
    let before = first > 0 ? escapes[first - 1] : (source: 0..<0, meaning: 0..<0)
    var start = before.source.upperBound + range.lowerBound - before.meaning.upperBound
    var (end, at) = (start, range.lowerBound)
    // As many bytes: each keeps its form. A part of an escape is replaced as a whole.
    var isAligned = made.count == range.count
    var result: [UInt8] = []
    for (source, old) in escapes[first...] {
      guard old.lowerBound < range.upperBound else { break }
      if old.lowerBound < range.lowerBound { (start, isAligned) = (source.lowerBound, false) }
      if old.upperBound > range.upperBound { isAligned = false }
      if isAligned {
        result += made[at - range.lowerBound..<old.lowerBound - range.lowerBound]
        let new = Array(made[old.lowerBound - range.lowerBound..<old.upperBound - range.lowerBound])
        let form = self.source[source]
        result += new.elementsEqual(meaning[old]) ? Array(form) : escaping.write(new, form)
      }
      (at, end) = (max(old.upperBound, at), source.upperBound)
    }
    if at < range.upperBound {
      if isAligned { result += made[(at - range.lowerBound)...] }
      end += range.upperBound - at
    }
    if isAligned { return (start..<end, result) }
    return (
      start..<end,
      String(decoding: made, as: UTF8.self).unicodeScalars.flatMap { scalar in
        let bytes = Array(String(scalar).utf8)
        let isPlain = bytes[0] < 0x80 && PatternIndex.isLetter(bytes[0])
        return isPlain ? bytes : escaping.write(bytes, [])
      }
    )
  }
}
