import AppContainer
import FileSystem
import Formats
import Foundation

/// The values of a captured container. In the first of two passes it collects those that must be replaced; in the
/// second it replaces them and counts.
struct CapturedValues {
  /// What must be replaced.
  private(set) var originals = Originals()
  private(set) var counts: [String: CaptureReport.Replaced] = [:]
  /// What keeps the fixture from being written.
  private(set) var problems: [String] = []
  /// Nil in the first pass.
  let replacements: Replacements?
  /// Keys whose values are chosen.
  private let keys: Set<String>
  private let keptNames: Set<String>

  init(_ options: CaptureOptions, replacing replacements: Replacements? = nil) {
    (keys, keptNames, self.replacements) = (options.keys, options.keptNames, replacements)
  }

  // MARK: Text

  /// A text, or the documents in it.
  ///
  /// - Parameter depth: how many documents it is in.
  mutating func text(_ text: String, _ place: CapturePlace, depth: Int = 0) throws -> String {
    guard let first = text.utf8.first(where: { $0 > 0x20 }), depth < Self.depthLimit else {
      return try plain(text, place)
    }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
      var document = try? JSONDocument(bytes: Array(text.utf8))
    {
      let value = try json(document.value, place, depth: depth + 1)
      guard let value else { return text }
      document.value = value
      return document.text
    }
    if first == UInt8(ascii: "<") {
      if let bytes = try propertyList(Array(text.utf8), place, depth) {
        return String(decoding: bytes, as: UTF8.self)
      }
      return try markup(text, place, depth: depth)
    }
    return try plain(text, place)
  }

  /// How often a document is looked for in the text or data of a document.
  private static let depthLimit = 8

  /// A text that is not a document.
  mutating func plain(_ text: String, _ place: CapturePlace) throws -> String {
    if replacements == nil {
      if place.isIdentifier, DeviceIdentifiers.isIdentifier(text) { add(identifier: text, place) }
      for identifier in DeviceIdentifiers.inPaths(text) { add(identifier: identifier, place) }
    }
    if case .replace(let isSecret) = CaptureRules.decision(text, place) {
      return try replaced(text, isSecret, place)
    }
    if place.isIdentifier, replacements?.isOriginal(text) == true { return try replaced(text, false, place) }
    var result = ""
    var end = text.startIndex
    for span in SecretSpans(text, choosing: keys).spans {
      result += searched(String(text[end..<span.range.lowerBound]), place)
      result += try replaced(String(text[span.range]), span.isSecret, place)
      end = span.range.upperBound
    }
    return result + searched(String(text[end...]), place)
  }

  /// The replacement of a whole text.
  private mutating func replaced(_ text: String, _ isSecret: Bool, _ place: CapturePlace) throws -> String {
    guard let replacements else {
      originals.add(text, isSecret: isSecret, source: place.label)
      return text
    }
    let made = try replacements.replacement(of: text)
    if made != text { count(place, isSecret: isSecret, isChosen: !isSecret) }
    return made
  }

  /// A text that stays, with the originals in it replaced.
  private mutating func searched(_ text: String, _ place: CapturePlace) -> String {
    guard let other = replacements?.replacing(in: text) else { return text }
    count(place)
    return other
  }

  // MARK: Data, numbers, dates

  /// Bytes: text, a document, or neither.
  mutating func data(_ bytes: [UInt8], _ place: CapturePlace, depth: Int = 0) throws -> [UInt8] {
    if depth < Self.depthLimit, PropertyListDocument.isBinary(bytes),
      let result = try propertyList(bytes, place, depth)
    {
      return result
    }
    if !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) {
      return Array(try self.text(text, place, depth: depth).utf8)
    }
    let decision = CaptureRules.decision(bytes, place)
    guard let replacements else { return try collected(bytes, decision, place) }
    if replacements.isOriginal(bytes) || decision != .keep {
      count(place, isSecret: decision == .replace(isSecret: true), isChosen: place.isChosen)
      return try replacements.replacement(of: bytes)
    }
    if let text = BinaryText(bytes) { return text.encoded(try self.text(text.text, place, depth: depth)) }
    var bytes = bytes
    // A format that is compressed or has checksums cannot be changed in place.
    if OpaqueFormat.of(bytes) == nil, let other = replacements.replacing(identifiersIn: bytes) {
      count(place)
      bytes = other
    }
    let found = replacements.found(in: bytes).first?.origin
    if case .refuse(let why) = CaptureRules.decision(bytes, finding: found, place) {
      refuse(shown("\(place.label): \(why)"))
    }
    return bytes
  }

  private mutating func collected(
    _ bytes: [UInt8], _ decision: CaptureDecision, _ place: CapturePlace
  ) throws -> [UInt8] {
    if let text = BinaryText(bytes) { _ = try self.text(text.text, place) }
    if case .replace(let isSecret) = decision {
      originals.add(bytes, isSecret: isSecret, source: place.label)
    }
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

  /// A number without a fraction, as it is written.
  mutating func number(_ digits: String, _ place: CapturePlace) throws -> String {
    if case .replace(let isSecret) = CaptureRules.decision(number: digits, place) {
      return try replaced(digits, isSecret, place)
    }
    guard let replacements, digits.utf8.count >= PatternIndex.least, replacements.isOriginal(digits) else {
      return digits
    }
    count(place)
    return try replacements.replacement(of: digits)
  }

  private mutating func date(_ date: Date, _ place: CapturePlace) throws -> Date {
    guard place.isChosen, let replacements else { return date }
    count(place, isChosen: true)
    return try replacements.replacement(of: date)
  }

  // MARK: Names

  /// A name that the app or a person may have given, such as a key's or a file's: originals in it are replaced, and a
  /// word that may also be the app's own stops the capture.
  ///
  /// - Parameter what: what it is the name of.
  mutating func name(_ name: String, _ what: String, _ place: CapturePlace, isSecret: Bool? = nil) -> String {
    guard let replacements else {
      if isSecret ?? SecretPattern.isSecret(text: name) {
        originals.add(name, isSecret: true, source: "a name in \(place.label)")
      }
      return name
    }
    if keptNames.contains(name) { return name }
    let found = replacements.found(in: Array(name.utf8)).map(\.origin)
    if found.isEmpty { return name }
    // A secret is never the app's own word.
    if let origin = found.first(where: { $0.isPlainWord && !$0.isSecret }) {
      refuse(name, what, origin)
      return name
    }
    count(place)
    return replacements.replacing(in: name) ?? name
  }

  /// A name that must stay, such as a table's.
  mutating func fixed(_ name: String, _ what: String) {
    if keptNames.contains(name) { return }
    if let origin = replacements?.found(in: Array(name.utf8)).first?.origin { refuse(name, what, origin) }
  }

  private mutating func refuse(_ name: String, _ what: String, _ origin: Replacements.Origin) {
    // A name with a secret in it is not shown.
    let shownName = origin.isSecret ? "" : " `\(name)`"
    refuse(
      "\(shown(what))\(shownName) contains a value that is to be replaced, of \(shown(origin.source)); "
        + "if it is the app's own word, keep \(origin.isSecret ? "its name" : name), else leave its file out"
    )
  }

  mutating func refuse(_ problem: String) { if !problems.contains(problem) { problems.append(problem) } }

  /// A text for people, who must not find in it what was replaced.
  func shown(_ text: String) -> String { replacements?.replacing(in: text) ?? text }

  // MARK: Counting

  private mutating func count(_ place: CapturePlace, isSecret: Bool = false, isChosen: Bool = false) {
    var entry = counts[place.label] ?? CaptureReport.Replaced(place: place.label)
    if isSecret { entry.secrets += 1 } else if isChosen { entry.chosen += 1 } else { entry.others += 1 }
    counts[place.label] = entry
  }

  /// Takes an identifier of the device or of a container, which is then looked for in every form.
  mutating func add(identifier: String, _ place: CapturePlace) {
    if replacements == nil { originals.add(identifier: identifier, source: place.label) }
  }
}

// MARK: - Documents

extension CapturedValues {
  /// The place of what a key holds.
  private func inner(_ place: CapturePlace, _ key: String, _ name: SecretName, isSecret: Bool) -> CapturePlace
  {
    var inner = place
    (inner.name, inner.isChosen) = (name, place.isChosen || keys.contains(key))
    inner.isIdentifier = DeviceIdentifiers.isKey(key)
    if place.showsKeys {
      inner.label += isSecret ? ": a key" : ": \(key)"
      inner.showsKeys = false
    }
    return inner
  }

  mutating func value(_ value: PropertyListValue, _ place: CapturePlace, depth: Int = 0) throws
    -> PropertyListValue
  {
    switch value {
    case .string(let text): return .string(try self.text(text, place, depth: depth))
    case .data(let bytes): return .data(try data(bytes, place, depth: depth))
    case .integer(let number): return try Int64(self.number("\(number)", place)).map { .integer($0) } ?? value
    case .unsigned(let number):
      return try UInt64(self.number("\(number)", place)).map { .unsigned($0) } ?? value
    case .real(let number):
      guard let whole = Int64(exactly: number) else { return value }
      return try Double(self.number("\(whole)", place)).map { .real($0) } ?? value
    case .date(let date): return .date(try self.date(date, place))
    case .array(let values): return .array(try values.map { try self.value($0, place, depth: depth) })
    case .dictionary(let values): return .dictionary(try dictionary(values, place, depth: depth))
    case .single, .boolean, .unknown: return value
    }
  }

  mutating func dictionary(
    _ values: PropertyListDictionary, _ place: CapturePlace, depth: Int = 0
  ) throws -> PropertyListDictionary {
    let names = SecretFields(values, inside: place.name)
    var result: PropertyListDictionary = [:]
    for (key, value) in values.sorted() {
      let isSecret = names.isSecret(key: key)
      let newKey = name(key, "a key in \(place.label)", place, isSecret: isSecret)
      result[newKey] = try self.value(
        value, inner(place, key, names[key], isSecret: isSecret), depth: depth)
    }
    return result
  }

  /// Nil for what is not a property list, and for one that must be searched as text, too.
  private mutating func propertyList(_ bytes: [UInt8], _ place: CapturePlace, _ depth: Int) throws -> [UInt8]?
  {
    guard let document = try? PropertyListDocument(bytes: bytes) else { return nil }
    try collectFields(of: bytes, place, depth: depth)
    var changed = document
    changed.value = try value(document.value, place, depth: depth + 1)
    let encoded = try changed.encoded()
    switch document.format {
    // The old bytes may contain unreferenced objects: they are kept only where their length leaves no room for any.
    case .binary: return changed == document && encoded.count == bytes.count ? bytes : encoded
    // Comments are not values.
    case .xml: return changed == document ? nil : encoded
    }
  }

  /// Collects the fields of a keyed archive with their names beside them. They cannot be written back like that.
  mutating func collectFields(of bytes: [UInt8], _ place: CapturePlace, depth: Int = 0) throws {
    guard replacements == nil, let nested = NestedValue(.data(bytes)) else { return }
    _ = try value(nested.value, place, depth: depth + 1)
  }

  /// Nil when it is the same.
  private mutating func json(_ value: JSONValue, _ place: CapturePlace, depth: Int) throws -> JSONValue? {
    switch value {
    case .null, .boolean: return nil
    case .number(let number):
      guard let whole = number.integer else { return nil }
      let other = try self.number("\(whole)", place)
      return other == "\(whole)" ? nil : Int64(other).map { .number(JSONNumber($0)) }
    case .string(let string):
      let new = try text(string.text, place, depth: depth)
      return string.text.isExactly(new) ? nil : .string(JSONString(new))
    case .array(var array):
      var isChanged = false
      for (index, element) in array.elements.enumerated() {
        guard let new = try json(element, place, depth: depth) else { continue }
        array.replace(index, with: new)
        isChanged = true
      }
      return isChanged ? .array(array) : nil
    case .object(var object):
      let names = object.secretFields(inside: place.name)
      var (keys, isChanged): ([String], Bool) = ([], false)
      for member in object.members {
        let key = member.key.text
        let isSecret = names.isSecret(key: key)
        let inner = inner(place, key, names[key], isSecret: isSecret)
        if let new = try json(member.value, inner, depth: depth) {
          object.set(key, to: new)
          isChanged = true
        }
        keys.append(name(key, "a key in \(place.label)", place, isSecret: isSecret))
      }
      guard zip(keys, object.members).contains(where: { !$0.isExactly($1.key.text) }) else {
        return isChanged ? .object(object) : nil
      }
      return .object(JSONObject(zip(keys, object.members).map { ($0, $1.value) }))
    }
  }
}

// MARK: - Markup

extension CapturedValues {
  /// Takes XML and HTML apart, as far as it has names beside values: `<string name="k">v</string>`,
  /// `<int name="k" value="v"/>`, `<k>v</k>`, and the pair of a property list. The rest, such as comments, is searched
  /// as text.
  fileprivate mutating func markup(_ text: String, _ place: CapturePlace, depth: Int) throws -> String {
    var result = ""
    var end = text.startIndex
    // In a property list the key precedes its value.
    var key: String?
    func take(_ values: inout CapturedValues, _ range: Range<String.Index>, _ name: String) throws {
      let source = String(text[range])
      let old = Self.unescaped(source)
      let names = SecretFields([name: .string(old)], inside: place.name)
      let inner = values.inner(place, name, names[name], isSecret: true)
      let new = try values.text(old, inner, depth: depth + 1)
      result += try values.plain(String(text[end..<range.lowerBound]), place)
      result += old == new ? source : Self.escaped(new)
      end = range.upperBound
    }
    for match in text.matches(of: #/<(?<tag>[A-Za-z][\w.:\-]*)(?<attributes>[^<>]*)>(?<content>[^<>]*)/#) {
      let attributes = match.attributes.matches(
        of: #/(?<name>[\w.:\-]+)\s*=\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)')/#)
      let named = attributes.first { ["name", "key"].contains($0.name.lowercased()) }
      let called = named.flatMap { $0.double ?? $0.single }.map { Self.unescaped(String($0)) }
      let name = called ?? key ?? String(match.tag)
      for attribute in attributes where attribute.range != named?.range {
        guard let value = attribute.double ?? attribute.single else { continue }
        let isValue = attribute.name.lowercased() == "value"
        try take(&self, value.startIndex..<value.endIndex, isValue ? name : String(attribute.name))
      }
      let content = match.content
      if match.tag == "key" {
        key = Self.unescaped(String(content))
      } else if content.contains(where: { !$0.isWhitespace }) {
        try take(&self, content.startIndex..<content.endIndex, name)
        key = nil
      }
    }
    return result + (try plain(String(text[end...]), place))
  }

  private static let entities = [
    ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"),
  ]

  private static func unescaped(_ text: String) -> String {
    guard text.contains("&") else { return text }
    let numbered = text.replacing(#/&#(?:x(?<hex>[0-9A-Fa-f]{1,6})|(?<number>[0-9]{1,7}));/#) { match in
      let number = match.hex.flatMap { UInt32($0, radix: 16) } ?? match.number.flatMap { UInt32($0) }
      return number.flatMap(Unicode.Scalar.init).map(String.init) ?? String(match.0)
    }
    return entities.reduce(numbered) { $0.replacing($1.0, with: $1.1) }.replacing("&amp;", with: "&")
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .replacing("\"", with: "&quot;").replacing("'", with: "&apos;")
  }
}
