import AppStores
import Formats
import Foundation

/// The place of a value, with what its name shows about it.
struct CapturePlace {
  /// Whether its name is that of a secret.
  var name = SecretName.plain
  /// Whether it was chosen to be replaced.
  var isChosen = false
  /// Whether its name is that of an identifier of the device or of a container.
  var isIdentifier = false
  /// Whether data is kept although it cannot be searched.
  var isKept = false
  /// Whether the label of a value inside shows its key: settings.
  var showsKeys = false
  /// The place for people.
  var label: String
}

extension CapturePlace {
  /// Whether a value at this place is a secret by its name or its form.
  fileprivate func isSecret(_ leaf: PropertyListValue) -> Bool {
    SecretPattern.isSecret(leaf: leaf, name: name, looksInside: false)
  }
}

/// The values of a captured container, each of which is replaced, kept or refused. They are visited twice: first to
/// collect the originals, then to write the fixture without them.
struct CapturedValues {
  /// What must be replaced.
  private(set) var originals = Originals()
  private(set) var counts: [String: CaptureReport.Replaced] = [:]
  /// What keeps the fixture from being written.
  private(set) var problems: [String] = []
  /// Whether this is the first visit: nothing is replaced yet.
  let isCollecting: Bool
  private let replacements: Replacements
  private let redactor = Redactor()
  /// Keys whose values are chosen, and those of them that were found.
  private let keys: Set<String>
  private(set) var foundKeys: Set<String> = []
  /// Names that stay although they contain a replaced value.
  private let keptNames: [String]

  /// - Parameter replacements: of what the first visit collected; nil for the first visit.
  init(_ options: CaptureOptions, _ replacements: Replacements?) throws {
    (keys, keptNames, isCollecting) = (options.keys, options.kept, replacements == nil)
    self.replacements = try replacements ?? Replacements(Originals(), keeping: [])
  }

  // MARK: Text

  /// How often a document is searched for in the text or data of a document.
  private static let depthLimit = 8

  /// A text, or the documents in it.
  mutating func text(_ text: String, _ place: CapturePlace, depth: Int = 0) throws -> String {
    guard let first = text.utf8.first(where: { $0 > 0x20 }), depth < Self.depthLimit else {
      return try plain(text, place)
    }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
      var document = try? JSONDocument(bytes: Array(text.utf8))
    {
      document.value = try json(document.value, place, depth: depth + 1)
      return document.text
    }
    guard first == UInt8(ascii: "<") else { return try plain(text, place) }
    let list = try propertyList(Array(text.utf8), place, depth)
    return try list.map { String(decoding: $0, as: UTF8.self) } ?? markup(text, place, depth: depth)
  }

  /// A text that is not a document.
  mutating func plain(_ text: String, _ place: CapturePlace) throws -> String {
    for identifier in DeviceIdentifiers.inPaths(text) { add(identifier: identifier, place) }
    let isSecret = place.isSecret(.string(text))
    if isSecret || place.isChosen { return try replaced(text, isSecret, place) }
    if place.isIdentifier, DeviceIdentifiers.isIdentifier(text) {
      add(identifier: text, place)
      if replacements.isOriginal(text) { return try replaced(text, false, place) }
    }
    let spans = SecretSpans(text, choosing: keys).spans
    if !spans.isEmpty { foundKeys.formUnion(keys.filter(text.contains)) }
    guard isCollecting else { return try replaced(spans, in: text, place) }
    for span in spans {
      originals.add(String(text[span.range]), isSecret: span.isSecret, source: place.label)
    }
    return text
  }

  /// A text with the known values in it replaced, and what these leave of what looks like a secret or was chosen. Known
  /// values come first: one that only begins in a span would stay in part.
  private mutating func replaced(
    _ spans: [SecretSpans.Span], in text: String, _ place: CapturePlace
  ) throws -> String {
    let bytes = Array(text.utf8)
    let offset = { text.utf8.distance(from: text.startIndex, to: $0) }
    var parts = spans.map { offset($0.range.lowerBound)..<offset($0.range.upperBound) }[...]
    var (result, end): ([UInt8], Int) = ([], 0)
    let known = replacements.matches(in: bytes, includesShort: true)
    for (range, made) in known.map({ ($0.range, $0.made) }) + [(bytes.count..<bytes.count, [])] {
      while let part = parts.first, part.lowerBound < range.lowerBound {
        let rest = part.clamped(to: end..<range.lowerBound)
        if !rest.isEmpty {
          let made = try replacements.replacement(of: String(decoding: bytes[rest], as: UTF8.self))
          result += bytes[end..<rest.lowerBound] + Array(made.utf8)
          end = rest.upperBound
        }
        if part.upperBound > range.lowerBound { break }
        parts.removeFirst()
      }
      result += bytes[end..<range.lowerBound] + made
      end = range.upperBound
    }
    for span in spans { count(place, isSecret: span.isSecret, isChosen: !span.isSecret) }
    if spans.isEmpty, !known.isEmpty { count(place) }
    // Text in which UTF-16 was replaced may be invalid UTF-8; the final scan of all bytes finds it.
    return String(validating: result, as: UTF8.self) ?? text
  }

  /// The replacement of a whole text.
  private mutating func replaced(_ text: String, _ isSecret: Bool, _ place: CapturePlace) throws -> String {
    originals.add(text, isSecret: isSecret, source: place.label)
    let made = try replacements.replacement(of: text)
    if made != text { count(place, isSecret: isSecret, isChosen: !isSecret) }
    return made
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
    if place.isIdentifier, let identifier = DeviceIdentifiers.uuid(bytes: bytes) {
      add(identifier: identifier, place)
    }
    if isCollecting {
      // Bookmarks and their like hold paths.
      for identifier in OpaqueFormat.runs(in: bytes).flatMap(DeviceIdentifiers.inPaths) {
        add(identifier: identifier, place)
      }
    }
    let isSecret = place.isSecret(.data(bytes))
    if isSecret || place.isChosen {
      originals.add(bytes, isSecret: isSecret, source: place.label)
      count(place, isSecret: isSecret, isChosen: place.isChosen)
      return try replacements.replacement(of: bytes)
    }
    if replacements.isOriginal(bytes) {
      count(place)
      return try replacements.replacement(of: bytes)
    }
    return isCollecting ? bytes : remaining(bytes, place)
  }

  /// Bytes that stay, with the identifiers in them replaced.
  private mutating func remaining(_ bytes: [UInt8], _ place: CapturePlace) -> [UInt8] {
    var bytes = bytes
    // A format that is compressed or has checksums cannot be changed in place.
    if OpaqueFormat.name(of: bytes) == nil, let other = replacements.replacing(identifiersIn: bytes) {
      count(place)
      bytes = other
    }
    if let problem = problem(of: bytes, place) { refuse("\(place.label): \(problem)") }
    return bytes
  }

  /// Why bytes that are neither text nor a document can be neither searched nor replaced, so that no fixture is written.
  private func problem(of bytes: [UInt8], _ place: CapturePlace) -> String? {
    let advice = "replace the value or the whole file"
    if let found = replacements.found(in: bytes).first?.original {
      return "binary data with \(found.kind) of \(found.source) in it; \(advice), or leave it out"
    }
    if place.isKept { return nil }
    if let format = OpaqueFormat.name(of: bytes) {
      return "data in \(format), which cannot be searched; \(advice), leave it out, or keep it as it is"
    }
    guard OpaqueFormat.runs(in: bytes).contains(where: SecretPattern.isSecret(text:)) else { return nil }
    return
      "binary data in which something looks like a secret; \(advice), leave it out, or keep it as it is"
  }

  /// A number; a whole one is written without a fraction.
  mutating func number<Number: LosslessStringConvertible>(_ number: Number, _ place: CapturePlace) throws
    -> Number
  {
    let text = "\(number)"
    let whole = Int64(text) == nil ? Double(text).flatMap { Int64(exactly: $0) }.map { "\($0)" } : nil
    let made = try self.number(digits: whole ?? text, place)
    // A type may have no number of as many digits.
    return Number(made) ?? Number(String(made.dropLast())) ?? number
  }

  /// A number as it is written. Infinity and NaN do not identify anyone.
  private mutating func number(digits: String, _ place: CapturePlace) throws -> String {
    guard Pseudonyms.isNumber(digits) else { return digits }
    let integer = Int64(digits).map { PropertyListValue.integer($0) } ?? UInt64(digits).map { .unsigned($0) }
    let isSecret = place.isSecret(integer ?? .real(Double(digits) ?? 0))
    if isSecret || place.isChosen { return try replaced(digits, isSecret, place) }
    guard digits.utf8.count >= PatternIndex.least, replacements.isOriginal(digits) else { return digits }
    count(place)
    return try replacements.replacement(of: digits)
  }

  /// A chosen Boolean becomes the other one.
  mutating func boolean(_ value: Bool, _ place: CapturePlace) -> Bool {
    guard place.isChosen else { return value }
    count(place, isChosen: true)
    return isCollecting ? value : !value
  }

  private mutating func date(_ date: Date, _ place: CapturePlace) throws -> Date {
    guard place.isChosen else { return date }
    count(place, isChosen: true)
    return try replacements.replacement(of: date)
  }

  /// Adds an identifier of the device or of a container; a UUID counts with its dashes.
  mutating func add(identifier: String, _ place: CapturePlace) {
    let text = DeviceIdentifiers.uuid(identifier) ?? identifier
    originals.add(text, isSecret: false, isIdentifier: true, source: place.label)
  }

  // MARK: Names

  /// A name that the app or a person gave: originals in it are replaced. A name that may not change, or that contains a
  /// word which may also be the app's, stops the capture.
  ///
  /// - Parameters:
  ///   - what: what it is the name of.
  ///   - isSecret: whether the name itself is a secret.
  ///   - canChange: false for the names in a schema.
  mutating func name(
    _ name: String, _ what: String, _ place: CapturePlace, isSecret: Bool, canChange: Bool = true
  ) -> String {
    if isSecret { originals.add(name, isSecret: true, source: "a name in \(place.label)") }
    let found = keptNames.contains(name) ? [] : replacements.found(in: Array(name.utf8)).map(\.original)
    guard let first = found.first else { return name }
    // A secret is never the app's own word.
    guard let original = canChange ? found.first(where: { $0.isPlainWord && !$0.isSecret }) : first else {
      count(place)
      return replacements.replacing(in: name) ?? name
    }
    // A name with a secret in it is not shown.
    refuse(
      "\(shown(what))\(original.isSecret ? "" : " `\(name)`") contains a value that is to be replaced, of "
        + "\(shown(original.source)); if it is the app's own word, keep "
        + "\(original.isSecret ? "its name" : name), else leave its file out", isShown: true)
    return name
  }

  /// - Parameter isShown: whether the text may contain what was replaced.
  mutating func refuse(_ problem: String, isShown: Bool = false) {
    let problem = isShown ? problem : shown(problem)
    if !problems.contains(problem) { problems.append(problem) }
  }

  /// A text for people, without what was replaced.
  func shown(_ text: String) -> String {
    redactor.shown(message: replacements.replacing(in: text) ?? text)
  }

  private mutating func count(_ place: CapturePlace, isSecret: Bool = false, isChosen: Bool = false) {
    if isCollecting { return }
    let label = shown(place.label)
    var entry = counts[label] ?? CaptureReport.Replaced(place: label)
    if isSecret { entry.secrets += 1 } else if isChosen { entry.chosen += 1 } else { entry.others += 1 }
    counts[label] = entry
  }
}

// MARK: - Documents

extension CapturedValues {
  /// Whether the values of a key are chosen.
  mutating func isChosen(_ key: String) -> Bool {
    guard keys.contains(key) else { return false }
    foundKeys.insert(key)
    return true
  }

  /// The place of the value of a key.
  private mutating func inner(_ place: CapturePlace, _ key: String, _ name: SecretName, isSecret: Bool)
    -> CapturePlace
  {
    var inner = place
    (inner.name, inner.isChosen) = (name, isChosen(key) || place.isChosen)
    inner.isIdentifier = DeviceIdentifiers.isKey(key)
    if place.showsKeys {
      inner.label += isSecret ? ": a key" : ": \(key)"
      inner.showsKeys = false
    }
    return inner
  }

  private mutating func value(
    _ value: PropertyListValue, _ place: CapturePlace, depth: Int = 0
  ) throws -> PropertyListValue {
    switch value {
    case .string(let text): return .string(try self.text(text, place, depth: depth))
    case .data(let bytes): return .data(try data(bytes, place, depth: depth))
    case .integer(let number): return .integer(try self.number(number, place))
    case .unsigned(let number): return .unsigned(try self.number(number, place))
    case .int(let number): return .int(try self.number(number, place))
    case .long(let number): return .long(try self.number(number, place))
    case .real(let number): return .real(try self.number(number, place))
    case .single(let number): return .single(try self.number(number, place))
    case .boolean(let isOn): return .boolean(boolean(isOn, place))
    case .set(let values):
      return .set(StringSet(try values.strings.map { try text($0, place, depth: depth) }))
    case .date(let date): return .date(try self.date(date, place))
    case .array(let values): return .array(try values.map { try self.value($0, place, depth: depth) })
    case .dictionary(let values): return .dictionary(try dictionary(values, place, depth: depth))
    case .unknown: return value
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

  /// Nil if it is not a property list, or one that must be searched as text, too.
  private mutating func propertyList(_ bytes: [UInt8], _ place: CapturePlace, _ depth: Int) throws -> [UInt8]?
  {
    guard let document = try? PropertyListDocument(bytes: bytes), document.format != .openStep else {
      return nil
    }
    try collectFields(of: bytes, place, depth: depth)
    var changed = document
    changed.value = try value(document.value, place, depth: depth + 1)
    let encoded = try changed.encoded()
    switch document.format {
    // The old bytes may contain unreferenced objects: they are kept only where their length leaves no room for any.
    case .binary: return changed == document && encoded.count == bytes.count ? bytes : encoded
    // Comments are not values.
    case .xml, .openStep: return changed == document ? nil : encoded
    }
  }

  /// Collects the fields of a keyed archive with their names beside them. They cannot be written back like that.
  mutating func collectFields(of bytes: [UInt8], _ place: CapturePlace, depth: Int = 0) throws {
    guard isCollecting, let document = PropertyListValue.data(bytes).document else { return }
    _ = try value(document, place, depth: depth + 1)
  }

  private mutating func json(_ value: JSONValue, _ place: CapturePlace, depth: Int) throws -> JSONValue {
    switch value {
    case .null: return value
    case .boolean(let isOn): return .boolean(boolean(isOn, place))
    case .number(let number):
      guard let whole = number.integer else {
        return .number(JSONNumber(checked: try self.number(digits: number.text, place)))
      }
      let other = try self.number(whole, place)
      return other == whole ? value : .number(JSONNumber(other))
    case .string(let string):
      let new = try text(string.text, place, depth: depth)
      return string.text.isExactly(new) ? value : .string(JSONString(new))
    case .array(var array):
      for (index, element) in array.elements.enumerated() {
        array.replace(index, with: try json(element, place, depth: depth))
      }
      return .array(array)
    case .object(var object):
      let names = object.secretFields(inside: place.name)
      for (index, member) in object.members.enumerated() {
        let key = member.key.text
        let isSecret = names.isSecret(key: key)
        let inner = inner(place, key, names[key], isSecret: isSecret)
        let newKey = name(key, "a key in \(place.label)", place, isSecret: isSecret)
        let new = try json(member.value, inner, depth: depth)
        if !newKey.isExactly(key) { object.remove(key) }
        object.set(newKey, to: new, at: index)
      }
      return .object(object)
    }
  }

  /// XML and HTML: values that have names beside them; the rest, such as comments, is searched as text.
  private mutating func markup(_ text: String, _ place: CapturePlace, depth: Int) throws -> String {
    var (result, end) = ("", text.startIndex)
    for (name, range) in Markup.values(in: text) {
      let old = Markup.unescaped(text[range])
      let names = SecretFields([name: .string(old)], inside: place.name)
      let new = try self.text(old, inner(place, name, names[name], isSecret: true), depth: depth + 1)
      result += try plain(String(text[end..<range.lowerBound]), place)
      result += old == new ? String(text[range]) : Markup.escaped(new)
      end = range.upperBound
    }
    return try result + plain(String(text[end...]), place)
  }
}
