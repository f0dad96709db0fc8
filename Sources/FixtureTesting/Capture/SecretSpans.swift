import AppContainer

/// The places in a text that hold a secret, or the value of a chosen key: in lines such as `password=…`, in columns of CSV, in
/// addresses, in keys between `-----BEGIN` and `-----END`.
struct SecretSpans {
  /// One place.
  struct Span {
    var range: Range<String.Index>
    var isSecret: Bool
  }

  /// Sorted; none overlaps another.
  private(set) var spans: [Span] = []
  private let text: String
  private let keys: Set<String>

  /// Looks at a text that is no document of its own.
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
      line(start..<end, isChosen: isChosen)
      start = end < text.endIndex ? text.index(after: end) : end
    }
    spans.sort { $0.range.lowerBound < $1.range.lowerBound }
  }

  private mutating func add(_ range: Range<String.Index>, isSecret: Bool) {
    guard !range.isEmpty, !spans.contains(where: { $0.range.overlaps(range) }) else { return }
    spans.append(Span(range: range, isSecret: isSecret))
  }

  /// Private keys, with all between the lines that begin and end them.
  private mutating func blocks() {
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
    spans.removeAll { $0.range.overlaps(range) }
    add(range, isSecret: true)
  }
}
