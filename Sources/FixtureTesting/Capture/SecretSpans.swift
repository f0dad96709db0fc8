import AppContainer

/// The places in a text that hold a secret, or the value of a chosen key: in lines such as `password=…`, in columns of CSV, in
/// addresses, in keys between `-----BEGIN` and `-----END`.
struct SecretSpans {
  struct Span {
    var range: Range<String.Index>
    var isSecret: Bool
  }

  /// Sorted; none overlaps another.
  private(set) var spans: [Span] = []
  private let text: String
  private let keys: Set<String>

  /// Searches a text that is not a document.
  ///
  /// - Parameter keys: names whose values were chosen.
  init(_ text: String, choosing keys: Set<String>) {
    (self.text, self.keys) = (text, keys)
    let isChosen = keys.contains { text.contains($0) }
    table()
    guard isChosen || !spans.isEmpty || SecretPattern.isSecret(text: text) else { return }
    blocks()
    var start = text.startIndex
    while start < text.endIndex {
      let end = text[start...].firstIndex(where: \.isNewline) ?? text.endIndex
      for part in parts(of: start..<end) { line(part, isChosen: isChosen) }
      start = end < text.endIndex ? text.index(after: end) : end
    }
  }

  /// A longer line is looked at in parts, each of which reaches into the next one: the work grows with the square of a
  /// line's length.
  private static let lineLimit = 16 << 10, overlap = 256

  private func parts(of line: Range<String.Index>) -> [Range<String.Index>] {
    var parts: [Range<String.Index>] = []
    var start = line.lowerBound
    while true {
      let limit = text.utf8.index(start, offsetBy: Self.lineLimit, limitedBy: line.upperBound)
      guard let limit, limit < line.upperBound else { return parts + [start..<line.upperBound] }
      let end = text.utf8.index(limit, offsetBy: Self.overlap, limitedBy: line.upperBound) ?? line.upperBound
      parts.append(start..<self.start(at: end))
      start = self.start(at: limit)
    }
  }

  /// The start of the character of UTF-8 that an index is in.
  private func start(at index: String.Index) -> String.Index {
    var index = index
    while index < text.endIndex, text.utf8[index] & 0xC0 == 0x80 { index = text.utf8.index(before: index) }
    return index
  }

  /// The first span that ends after an index; spans are sorted.
  private func firstSpan(endingBehind place: String.Index) -> Int {
    var (low, high) = (0, spans.count)
    while low < high {
      let middle = (low + high) / 2
      if spans[middle].range.upperBound > place { high = middle } else { low = middle + 1 }
    }
    return low
  }

  private mutating func add(_ range: Range<String.Index>, isSecret: Bool) {
    let index = firstSpan(endingBehind: range.lowerBound)
    guard !range.isEmpty, index == spans.count || !spans[index].range.overlaps(range) else { return }
    spans.insert(Span(range: range, isSecret: isSecret), at: index)
  }

  /// Adds a range with all that overlaps it.
  private mutating func addWhole(_ range: Range<String.Index>) {
    let first = firstSpan(endingBehind: range.lowerBound)
    var last = first
    while last < spans.count, spans[last].range.lowerBound < range.upperBound { last += 1 }
    let lower = min(range.lowerBound, spans[first..<last].first?.range.lowerBound ?? range.lowerBound)
    let upper = max(range.upperBound, spans[first..<last].last?.range.upperBound ?? range.upperBound)
    spans.replaceSubrange(first..<last, with: [Span(range: lower..<upper, isSecret: true)])
  }

  /// Private keys, with all between the lines that begin and end them.
  private mutating func blocks() {
    guard text.utf8.contains(UInt8(ascii: "-")), text.contains("-----BEGIN") else { return }
    let block = #/-----BEGIN [^-]*-----(?<body>.*?)(-----END|\z)/#.dotMatchesNewlines()
    for match in text.matches(of: block) where SecretPattern.isSecret(text: String(text[match.range])) {
      add(match.body.startIndex..<match.body.endIndex, isSecret: true)
    }
  }

  /// A table in text, such as CSV: its first line names the columns.
  private mutating func table() {
    let lines = text.split(whereSeparator: \.isNewline)
    guard lines.count > 1, lines[0].utf8.count < 4096,
      let separator = ([",", ";", "\t", "|"] as [Character]).first(where: { lines[0].contains($0) })
    else { return }
    let names = Self.fields(of: lines[0], separator).map { String($0) }
    guard names.contains(where: { SecretName($0) > .plain || keys.contains($0) }) else { return }
    for line in lines.dropFirst() {
      for (name, field) in zip(names, Self.fields(of: line, separator)) where !field.isEmpty {
        pair(name, field)
      }
    }
  }

  /// The fields of a line, without the quotes around them; one between quotes may have the separator in it.
  private static func fields(of line: Substring, _ separator: Character) -> [Substring] {
    var isQuoted = false
    let parts = line.split(omittingEmptySubsequences: false) { character in
      if character == "\"" { isQuoted.toggle() }
      return character == separator && !isQuoted
    }
    return parts.map { part in
      var part = part
      while let first = part.first, first == " " || first == "\"" { part.removeFirst() }
      while let last = part.last, last == " " || last == "\"" { part.removeLast() }
      return part
    }
  }

  @discardableResult
  private mutating func pair(_ name: String, _ value: Substring) -> Bool {
    let isSecret = SecretPattern.isSecret(
      leaf: .string(String(value)), name: SecretName(name), looksInside: false)
    guard isSecret || keys.contains(name) else { return false }
    add(value.startIndex..<value.endIndex, isSecret: isSecret)
    return true
  }

  private mutating func line(_ range: Range<String.Index>, isChosen: Bool) {
    let line = text[range]
    let looksSecret = SecretPattern.isSecret(text: String(line))
    guard looksSecret || isChosen else { return }
    var rest = String(line)
    let assignment = #/(?<name>[A-Za-z_][\w.\-]*)["']?\s*[:=]\s*["']?(?<value>[^\s"'&;,<>]+)/#
    for match in line.matches(of: assignment) where pair(String(match.name), match.value) {
      rest.replace(String(line[match.range]), with: " ")
    }
    guard looksSecret else { return }
    let address = #/:\/\/[^\s:\/@]+:(?<password>[^\s\/@]+)@/#
    for match in line.matches(of: address) {
      add(match.password.startIndex..<match.password.endIndex, isSecret: true)
      rest.replace(String(line[match.range]), with: " ")
    }
    let scheme = #/\b(?:[Bb]earer|[Bb]asic)\s+(?<value>\S+)/#
    for match in line.matches(of: scheme) where SecretPattern.isSecret(text: String(line[match.range])) {
      add(match.value.startIndex..<match.value.endIndex, isSecret: true)
      rest.replace(String(line[match.range]), with: " ")
    }
    for word in [#/[^\s"'`,;()<>\[\]{}=]+/#, #/\d[\d \-]{6,}\d/#] {
      for match in line.matches(of: word) where SecretPattern.isSecret(text: String(line[match.range])) {
        add(match.range, isSecret: true)
        rest.replace(String(line[match.range]), with: " ")
      }
    }
    // Whatever it is that looks like a secret: all of the line goes.
    guard SecretPattern.isSecret(text: rest) else { return }
    addWhole(range)
  }
}

/// Text that is not in UTF-8.
struct BinaryText {
  let text: String
  private let isBigEndian: Bool

  /// Nil for what does not begin as text in UTF-16 does, or is not well formed.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 2, bytes.count % 2 == 0 else { return nil }
    isBigEndian = bytes[0] == 0xFE && bytes[1] == 0xFF
    guard isBigEndian || bytes[0] == 0xFF && bytes[1] == 0xFE else { return nil }
    let pairs = stride(from: 2, to: bytes.count, by: 2).map { (UInt16(bytes[$0]), UInt16(bytes[$0 + 1])) }
    let units: [UInt16] = isBigEndian ? pairs.map { $0 << 8 | $1 } : pairs.map { $1 << 8 | $0 }
    guard let text = String(validating: units, as: UTF16.self) else { return nil }
    self.text = text
  }

  func encoded(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = isBigEndian ? [0xFE, 0xFF] : [0xFF, 0xFE]
    for unit in text.utf16 {
      let pair = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
      bytes += isBigEndian ? pair : pair.reversed()
    }
    return bytes
  }

  /// What a person could read in binary data: eight letters and more, of one byte or of two.
  static func runs(in bytes: [UInt8]) -> [String] {
    var runs: [String] = []
    for (start, step) in [(0, 1), (0, 2), (1, 2)] {
      var run: [UInt8] = []
      func end() {
        if run.count >= 8 { runs.append(String(decoding: run, as: UTF8.self)) }
        run = []
      }
      for index in stride(from: start, to: bytes.count, by: step) {
        let isWide = step == 2 && index + 1 < bytes.count && bytes[index + 1] != 0
        if (0x20..<0x7F).contains(bytes[index]), !isWide { run.append(bytes[index]) } else { end() }
      }
      end()
    }
    return runs
  }
}

/// Formats that hide what is in them.
enum OpaqueFormat {
  private static let beginnings: [(String, [UInt8])] = [
    ("gzip", [0x1F, 0x8B, 0x08]), ("zip", [0x50, 0x4B, 0x03, 0x04]), ("zstd", [0x28, 0xB5, 0x2F, 0xFD]),
    ("xz", [0xFD, 0x37, 0x7A, 0x58, 0x5A]), ("bzip2", Array("BZh".utf8)), ("7z", [0x37, 0x7A, 0xBC, 0xAF]),
    ("rar", Array("Rar!".utf8)), ("lz4", [0x04, 0x22, 0x4D, 0x18]), ("PDF", Array("%PDF-".utf8)),
    ("age", Array("age-encryption.org/".utf8)), ("Apple's archive format", Array("AA01".utf8)),
    ("an SQLite database", Array("SQLite format 3".utf8)), ("an SQLite log", [0x37, 0x7F, 0x06]),
    ("LZFSE", Array("bvx".utf8)),
  ]

  /// The name of the format that data begin as; nil for all that can be looked into.
  static func of(_ bytes: [UInt8]) -> String? {
    if let found = beginnings.first(where: { bytes.starts(with: $0.1) }) { return found.0 }
    // A stream of zlib's: its first two bytes are a number that 31 divides.
    if bytes.count > 10, bytes[0] == 0x78, (Int(bytes[0]) << 8 | Int(bytes[1])) % 31 == 0 { return "zlib" }
    return nil
  }
}
