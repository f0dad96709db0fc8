import AppContainer
import FileSystem
import Foundation

/// Replaces the values that must not be in a fixture with made-up ones, and counts them.
struct ValueReplacer: LeafVisitor {
  let resolvesArchives = false
  let keys: Set<String>
  let replacements: Replacements
  private(set) var counts: [String: CaptureReport.Replaced] = [:]
  /// What keeps the fixture from being written.
  private(set) var problems: [String] = []
  private let names: Set<String>

  init(_ replacements: Replacements, _ options: CaptureOptions) {
    (self.replacements, keys, names) = (replacements, options.keys, options.keptNames)
  }

  // MARK: Values

  mutating func text(_ text: String, _ place: LeafPlace) throws -> String {
    let isSecret = SecretPattern.isSecret(leaf: .string(text), name: place.name, looksInside: false)
    let isChosen = place.isChosen || place.isIdentifier && replacements.isOriginal(text)
    if isSecret || isChosen {
      let fake = try replacements.fake(of: text)
      if fake != text { count(place, isSecret: isSecret, isChosen: isChosen) }
      return fake
    }
    var result = ""
    var end = text.startIndex
    for span in SecretSpans(text, choosing: keys).spans {
      result += replacing(in: String(text[end..<span.range.lowerBound]), place)
      result += try replacements.fake(of: String(text[span.range]))
      count(place, isSecret: span.isSecret, isChosen: !span.isSecret)
      end = span.range.upperBound
    }
    return result + replacing(in: String(text[end...]), place)
  }

  private mutating func replacing(in text: String, _ place: LeafPlace) -> String {
    guard let other = replacements.replacing(in: text) else { return text }
    count(place, isSecret: false, isChosen: false)
    return other
  }

  mutating func data(_ bytes: [UInt8], _ place: LeafPlace) throws -> [UInt8] {
    let isSecret = SecretPattern.isSecret(leaf: .data(bytes), name: place.name, looksInside: false)
    if isSecret || place.isChosen || replacements.isOriginal(bytes) {
      count(place, isSecret: isSecret, isChosen: place.isChosen)
      return try replacements.fake(of: bytes)
    }
    if let text = BinaryText(bytes) {
      var place = place
      place.isChosen = false
      return text.encoded(try ValueWalk.text(text.text, place, &self))
    }
    var bytes = bytes
    // A format that is compressed or has checksums cannot be changed in place.
    if OpaqueFormat.of(bytes) == nil, let other = replacements.replacing(identifiersIn: bytes) {
      count(place, isSecret: false, isChosen: false)
      bytes = other
    }
    look(into: bytes, place)
    return bytes
  }

  /// Data that cannot be searched, and data that seem to contain a secret, are kept only with `--keep`.
  private mutating func look(into bytes: [UInt8], _ place: LeafPlace) {
    if let origin = replacements.found(in: bytes).first?.origin {
      problem(
        "\(shown(place.label)): binary data with \(origin.isSecret ? "a secret" : "a value") of \(shown(origin.source)) in it; "
          + "replace the value or the whole file, or leave it out")
      return
    }
    guard !place.isKept else { return }
    let advice =
      "replace the value or the whole file, leave it out, or keep it as it is"
    if let format = OpaqueFormat.of(bytes) {
      problem("\(shown(place.label)): data in \(format), which cannot be searched; \(advice)")
    } else if BinaryText.runs(in: bytes).contains(where: SecretPattern.isSecret(text:)) {
      problem("\(shown(place.label)): binary data that seem to contain a secret; \(advice)")
    }
  }

  mutating func number(_ digits: String, _ place: LeafPlace) throws -> String {
    let isSecret = OriginalCollector.isSecret(digits, place)
    let isSame = digits.utf8.count >= PatternIndex.least && replacements.isOriginal(digits)
    guard isSecret || place.isChosen || isSame else { return digits }
    let fake = try replacements.fake(of: digits)
    if fake != digits { count(place, isSecret: isSecret, isChosen: place.isChosen) }
    return fake
  }

  mutating func date(_ date: Date, _ place: LeafPlace) throws -> Date {
    guard place.isChosen else { return date }
    count(place, isSecret: false, isChosen: true)
    return try replacements.fake(of: date)
  }

  mutating func key(_ key: String, isSecret: Bool, _ place: LeafPlace) throws -> String {
    name(key, "a key in \(shown(place.label))", place)
  }

  // MARK: Names

  /// A name that the app or a person may have given: personal data in it are replaced, and a word that may be either stops the
  /// capture.
  mutating func name(_ name: String, _ what: String, _ place: LeafPlace) -> String {
    if names.contains(name) { return name }
    let found = replacements.found(in: Array(name.utf8))
    if found.isEmpty { return name }
    // A secret is never the app's own word.
    if let origin = found.first(where: { $0.origin.isPlainWord && !$0.origin.isSecret })?.origin {
      refuse(name, what, origin)
      return name
    }
    count(place, isSecret: false, isChosen: false)
    return replacements.replacing(in: name) ?? name
  }

  /// A name that must stay, such as a table's.
  mutating func fixed(_ name: String, _ what: String) {
    if names.contains(name) { return }
    if let origin = replacements.found(in: Array(name.utf8)).first?.origin { refuse(name, what, origin) }
  }

  private mutating func refuse(_ name: String, _ what: String, _ origin: Replacements.Origin) {
    // A name with a secret in it is not shown.
    let shownName = origin.isSecret ? "" : " `\(name)`"
    let word = origin.isSecret ? "its name" : name
    problem(
      "\(what)\(shownName) contains a value that is to be replaced, of \(shown(origin.source)); if it is the app's own word, keep "
        + "\(word), else leave its file out")
  }

  /// A place for people, who must not find there what was replaced.
  func shown(_ place: String) -> String { replacements.replacing(in: place) ?? place }

  mutating func problem(_ text: String) {
    if !problems.contains(text) { problems.append(text) }
  }

  mutating func count(_ place: LeafPlace, isSecret: Bool, isChosen: Bool) {
    var entry = counts[place.label] ?? CaptureReport.Replaced(place: place.label)
    if isSecret { entry.secrets += 1 } else if isChosen { entry.chosen += 1 } else { entry.others += 1 }
    counts[place.label] = entry
  }
}

/// Looks at every byte of a fixture, and at every name, for what must not be there.
struct CaptureScan {
  private let replacements: Replacements
  private let kept: PatternIndex

  /// - Parameter kept: names that may stay, whatever is in them.
  init(_ replacements: Replacements, keeping kept: Set<String>) {
    self.replacements = replacements
    self.kept = PatternIndex(kept.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
  }

  /// Where something was found, for people.
  func problems(in root: Directory) throws -> [String] {
    var problems: [String] = []
    try root.walk { entry in
      if let source = leftBehind(in: entry.name.bytes).first {
        problems.append("a name in the fixture contains \(source.text); leave the file out")
      }
      switch entry.status.type {
      case .file:
        let bytes = try root.contents(entry.path, limit: 1 << 30)
        problems += leftBehind(in: bytes).prefix(3).map {
          "\(shown(entry.path)):\(line(of: $0.offset, in: bytes)): still contains \($0.text); \($0.advice)"
        }
      case .symbolicLink:
        if let source = leftBehind(in: try root.linkTarget(entry.path)).first {
          problems.append(
            "\(shown(entry.path)): the link's target contains \(source.text); leave it out")
        }
      default: break
      }
      return .into
    }
    return problems
  }

  private struct Finding {
    var offset: Int
    var text: String
    var advice: String
  }

  private func leftBehind(in bytes: [UInt8]) -> [Finding] {
    let found = replacements.found(in: bytes)
    if found.isEmpty { return [] }
    let kept = kept.matches(in: bytes, includesShort: true).map(\.range)
    return found.filter { match in
      !kept.contains { $0.lowerBound <= match.range.lowerBound && $0.upperBound >= match.range.upperBound }
    }.map { match in
      Finding(
        offset: match.range.lowerBound,
        text: "\(match.origin.isSecret ? "a secret" : "a value") of \(shown(match.origin.source))",
        advice: match.origin.isSecret
          ? "replace the file, or leave it out"
          : "if it is the app's own word, keep it, else leave the file out"
      )
    }
  }

  private func shown(_ path: ContainerPath) -> String { shown(path.description) }
  private func shown(_ text: String) -> String { replacements.replacing(in: text) ?? text }

  private func line(of offset: Int, in bytes: [UInt8]) -> Int {
    bytes[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
  }
}
