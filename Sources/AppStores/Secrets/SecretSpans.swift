/// The places in a text that hold a secret, or the value of a chosen key: in lines such as `password=…`, in columns of
/// CSV, in addresses, in keys between `-----BEGIN` and `-----END`.
package struct SecretSpans {
  package typealias Span = (range: Range<String.Index>, isSecret: Bool)

  /// Sorted; none overlaps another.
  package private(set) var spans: [Span] = []
  private let text: String
  private let keys: Set<String>

  /// Searches a text that is not a document.
  ///
  /// - Parameter keys: names whose values were chosen.
  package init(_ text: String, choosing keys: Set<String> = []) {
    (self.text, self.keys) = (text, keys)
    let isChosen = keys.contains { text.contains($0) }
    var found = table()
    guard isChosen || !found.isEmpty || SecretPattern.isSecret(text: text) else { return }
    found += blocks() + puttyKeys()
    for line in text.split(whereSeparator: \.isNewline) {
      for part in Self.parts(of: line) { found += self.line(part, isChosen: isChosen) }
    }
    for span in found.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) where !span.range.isEmpty {
      if let last = spans.last, last.range.overlaps(span.range) {
        let end = max(last.range.upperBound, span.range.upperBound)
        spans[spans.count - 1] = (
          range: last.range.lowerBound..<end, isSecret: last.isSecret || span.isSecret
        )
      } else {
        spans.append(span)
      }
    }
  }

  /// The work grows with the square of a line's length: a longer one is searched in parts, each of which reaches into
  /// the next one.
  private static let lineLimit = 16 << 10, overlap = 256

  private static func parts(of line: Substring) -> [Substring] {
    var parts: [Substring] = []
    var rest = line
    while rest.utf8.count > lineLimit {
      let next = rest.index(rest.startIndex, offsetBy: lineLimit, limitedBy: rest.endIndex) ?? rest.endIndex
      let end = rest.index(next, offsetBy: overlap, limitedBy: rest.endIndex) ?? rest.endIndex
      parts.append(rest[..<end])
      rest = rest[next...]
    }
    return parts + [rest]
  }

  /// Private keys, with all between the lines that begin and end them.
  private func blocks() -> [Span] {
    guard text.utf8.contains(UInt8(ascii: "-")), text.contains("-----BEGIN") else { return [] }
    let block = #/-----BEGIN [^-]*-----(?<body>.*?)(-----END|\z)/#.dotMatchesNewlines()
    return text.matches(of: block).filter { SecretPattern.isSecret(text: String(text[$0.range])) }.map {
      (range: $0.body.startIndex..<$0.body.endIndex, isSecret: true)
    }
  }

  /// The private lines of PuTTY's keys, and the code that is computed from them.
  private func puttyKeys() -> [Span] {
    guard text.contains("PuTTY-User-Key-File") else { return [] }
    let key =
      #/Private-Lines:\s*\d+(?<body>.*?)(?:Private-(?:MAC|Hash):\s*(?<code>\w+)|\z)/#.dotMatchesNewlines()
    return text.matches(of: key).flatMap { match -> [Span] in
      let parts: [Substring] = [match.body] + (match.code.map { [$0] } ?? [])
      return parts.map { (range: $0.startIndex..<$0.endIndex, isSecret: true) }
    }
  }

  /// A table in text, such as CSV: its first line names the columns.
  private func table() -> [Span] {
    let lines = text.split(whereSeparator: \.isNewline)
    guard lines.count > 1, lines[0].utf8.count < 4096,
      let separator = ([",", ";", "\t", "|"] as [Character]).first(where: { lines[0].contains($0) })
    else { return [] }
    let names = Self.fields(of: lines[0], separator).map { String($0) }
    guard names.contains(where: { SecretName($0) > .plain || keys.contains($0) }) else { return [] }
    return lines.dropFirst().flatMap { line in
      zip(names, Self.fields(of: line, separator)).compactMap { pair($0, $1) }
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
      var part = part.drop { " \"".contains($0) }
      while let last = part.last, " \"".contains(last) { part.removeLast() }
      return part
    }
  }

  /// A value beside its name; nil when it stays.
  private func pair(_ name: String, _ value: Substring) -> Span? {
    let isSecret = SecretPattern.isSecret(
      leaf: .string(String(value)), name: SecretName(name), looksInside: false)
    guard isSecret || keys.contains(name) else { return nil }
    return (range: value.startIndex..<value.endIndex, isSecret: isSecret)
  }

  private func line(_ line: Substring, isChosen: Bool) -> [Span] {
    let looksSecret = SecretPattern.isSecret(text: String(line))
    guard looksSecret || isChosen else { return [] }
    var (found, rest): ([Span], String) = ([], String(line))
    func add(_ span: Span, in match: Range<String.Index>) {
      if !found.contains(where: { $0.range.overlaps(span.range) }) { found.append(span) }
      rest.replace(String(line[match]), with: " ")
    }
    // The prefix of a log is not a name.
    let assignment =
      #/(?<name>[A-Za-z_][\w.\-]*)\\?["']?\s*[:=]\s*(?!\S+:\s)(?:\\"(?<escaped>[^"\\]+)|"(?<double>(?:[^"\\]|\\.)+)|'(?<single>(?:[^'\\]|\\.)+)|(?<value>[^\s"'&;,<>]+))/#
    for match in line.matches(of: assignment) {
      guard let value = match.escaped ?? match.double ?? match.single ?? match.value else { continue }
      if let span = pair(String(match.name), value) { add(span, in: match.range) }
    }
    guard looksSecret else { return found }
    for match in line.matches(of: #/:\/\/[^\s:\/@]+:(?<password>[^\s\/@]+)@/#) {
      let password = match.password
      add((range: password.startIndex..<password.endIndex, isSecret: true), in: match.range)
    }
    for match in line.matches(of: #/\b(?:[Bb]earer|[Bb]asic)\s+(?<value>\S+)/#)
    where SecretPattern.isSecret(text: String(match.0)) {
      add((range: match.value.startIndex..<match.value.endIndex, isSecret: true), in: match.range)
    }
    for word in [#/[^\s"'`,;()<>\[\]{}=]+/#, #/\d[\d \-]{6,}\d/#] {
      for match in line.matches(of: word) where SecretPattern.isSecret(text: String(match.0)) {
        add((range: match.range, isSecret: true), in: match.range)
      }
    }
    // Whatever it is that looks like a secret: all of the line goes.
    guard SecretPattern.isSecret(text: rest) else { return found }
    return [(range: line.startIndex..<line.endIndex, isSecret: true)]
  }
}
