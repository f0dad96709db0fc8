import DrydockErrors

/// The XML of Android's SharedPreferences, a `<map>` of named values, read as Android does. Elements that Android's XML
/// utilities know but no app can store as a preference (`null`, `double`, `list` …), and unknown ones, are preserved as
/// they are. Document types and their entities are errors.
struct SharedPreferences: XMLScanner {
  let bytes: [UInt8]
  var index = 0
  /// Why the file cannot be rewritten without loss.
  private(set) var obstacle: String?

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
  }

  /// The element that the file begins with.
  mutating func firstElement() throws -> XMLTag {
    if isAt("<?xml") { try checkDeclaration() }
    if try skipBetween() { obstacle = "comments" }
    guard !isAt("<!") else { throw damaged("document types are not read") }
    return try tag()
  }

  mutating func read() throws -> PropertyListDictionary {
    if bytes.isEmpty { throw Self.corrupt("it is empty") }
    if bytes.starts(with: Array("ABX\0".utf8)) {
      throw DrydockError(.malformed, "Android's binary XML, which apps do not use for SharedPreferences")
    }
    let map = try firstElement()
    guard map.name == "map", !map.isEnd else { throw damaged("no <map>") }
    if !map.attributes.isEmpty { obstacle = "attributes that SharedPreferences do not have" }
    var settings = PropertyListDictionary()
    while !map.isEmpty {
      if try skipBetween() { obstacle = "comments" }
      let start = index
      let next = try tag()
      if next.isEnd {
        guard next.name == "map" else { throw damaged("an end without a start") }
        break
      }
      guard let key = next["name"] else { throw damaged("a value without a name") }
      settings[key] = try value(next, from: start)
    }
    if try skipBetween() { obstacle = "comments" }
    guard index == bytes.count else { throw damaged("more than one <map>") }
    return settings
  }

  // MARK: Values

  private mutating func value(_ element: XMLTag, from start: Int) throws -> PropertyListValue {
    var known = 2
    defer {
      if element.attributes.count > known { obstacle = "attributes that SharedPreferences do not have" }
    }
    switch element.name {
    case "string":
      known = 1
      return .string(try text(in: element))
    case "int": return .int(try number(element) { Int32($0) })
    case "long": return .long(try number(element) { Int64($0) })
    case "float": return .single(try number(element, Self.float))
    case "boolean":
      return .boolean(try number(element) { ["true": true, "false": false][$0.lowercased()] })
    case "set":
      known = 1
      if let strings = try strings(in: element) { return .set(StringSet(strings)) }
      return try preserved(from: start)
    default:
      known = .max
      return try preserved(from: start)
    }
  }

  private mutating func number<Value>(_ element: XMLTag, _ read: (String) -> Value?) throws -> Value {
    guard let value = element["value"].flatMap(read) else { throw damaged("not a value of its type") }
    if !element.isEmpty {
      if try skipBetween() { obstacle = "comments" }
      try end(element.name)
    }
    return value
  }

  /// A number of Java's; its suffix for the type and hexadecimal ones are not written by Android.
  private static func float(_ text: String) -> Float? {
    switch text {
    case "NaN": .nan
    case "Infinity", "+Infinity": .infinity
    case "-Infinity": -.infinity
    default: text.utf8.allSatisfy("0123456789+-.eE".utf8.contains) ? Float(text) : nil
    }
  }

  /// The strings of a set; nil for one with other values.
  private mutating func strings(in set: XMLTag) throws -> [String]? {
    var strings: [String] = []
    while !set.isEmpty {
      if try skipBetween() { obstacle = "comments" }
      let next = try tag()
      if next.isEnd {
        guard next.name == "set" else { throw damaged("an element does not end where it should") }
        break
      }
      guard next.name == "string" else { return nil }
      if !next.attributes.isEmpty { obstacle = "attributes that SharedPreferences do not have" }
      strings.append(try text(in: next))
    }
    return strings
  }

  /// The whole element that starts at a place, as bytes.
  private mutating func preserved(from start: Int) throws -> PropertyListValue {
    index = start
    var open: [String] = []
    repeat {
      let next = try tag()
      if next.isEnd {
        guard open.popLast() == next.name else { throw damaged("an element does not end where it should") }
      } else if !next.isEmpty {
        open.append(next.name)
        guard open.count <= PropertyListValue.depthLimit else { throw damaged("nested too deeply") }
      }
      if open.isEmpty { break }
      // White space and comments are preserved as well.
      while index < bytes.count, bytes[index] != UInt8(ascii: "<") || isAt("<!") || isAt("<?") {
        if isAt("<!--") {
          try skip(past: "-->", from: 4)
        } else if isAt("<![CDATA[") {
          try skip(past: "]]>", from: 9)
        } else if isAt("<?") {
          try skip(past: "?>", from: 2)
        } else if bytes[index] == UInt8(ascii: "<") {
          throw damaged("an invalid declaration")
        } else {
          index += 1
        }
      }
    } while true
    return .unknown(
      PropertyListValue.Opaque(
        marker: PropertyListValue.Opaque.element, payload: Array(bytes[start..<index])))
  }

  // MARK: XML

  static let isFullXML = true

  private mutating func text(in element: XMLTag) throws -> String {
    if element.isEmpty { return "" }
    let (text, hasComment) = try text(in: element.name)
    if hasComment { obstacle = "comments" }
    return text
  }

  /// The first line, whose encoding must be UTF-8.
  private mutating func checkDeclaration() throws {
    let encoding = Self.encoding(declaredIn: bytes[index...])
    try skip(past: "?>", from: 5)
    guard encoding == nil || encoding == "utf-8" else { throw damaged("the encoding is not UTF-8") }
  }

  static func corrupt(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the SharedPreferences file is corrupt: \(what)")
  }
}

extension SharedPreferences {
  /// The reserved names of EncryptedSharedPreferences, whose values are keys that the device's keystore encrypts.
  private static let keysets = ["key", "value"].map {
    "__androidx_security_crypto_encrypted_prefs_\($0)_keyset__"
  }

  /// Whether the first element is a `<map>`.
  static func isBegun(by bytes: [UInt8]) -> Bool {
    var reader = SharedPreferences(Array(bytes.prefix(4096)))
    return (try? reader.firstElement())?.name == "map"
  }

  /// The settings, and why the file cannot be rewritten without loss.
  ///
  /// - Throws: `DrydockError`: `malformed`, or `unsupported` for EncryptedSharedPreferences.
  static func read(_ bytes: [UInt8]) throws -> (PropertyListDictionary, obstacle: String?) {
    guard String(validating: bytes, as: UTF8.self) != nil else { throw corrupt("not valid UTF-8") }
    var reader = SharedPreferences(bytes)
    let settings = try reader.read()
    guard !keysets.contains(where: { settings[$0] != nil }) else {
      throw DrydockError(
        .unsupported,
        "EncryptedSharedPreferences: only the app on this device can read them, with a key in its keystore")
    }
    return (settings, reader.obstacle)
  }

  /// The name that an element of unknown type contains; nil for other values.
  static func name(of opaque: PropertyListValue.Opaque) -> String? {
    guard opaque.marker == PropertyListValue.Opaque.element else { return nil }
    var reader = SharedPreferences(opaque.payload)
    return (try? reader.firstElement())?["name"]
  }

  /// The file as Android writes it. Android's order is not defined; here it is that of the keys.
  static func write(_ settings: PropertyListDictionary) -> [UInt8] {
    var text = Array("<?xml version='1.0' encoding='utf-8' standalone='yes' ?>\n".utf8)
    if settings.isEmpty { return text + Array("<map />\n".utf8) }
    text += "<map>\n".utf8
    for (key, value) in settings.sorted() {
      text += "    ".utf8
      switch value {
      case .string(let value): text.append("string", named: key, content: value)
      case .int(let value): text.append("int", named: key, value: "\(value)")
      case .long(let value): text.append("long", named: key, value: "\(value)")
      case .single(let value): text.append("float", named: key, value: javaText(value))
      case .boolean(let value): text.append("boolean", named: key, value: "\(value)")
      case .set(let values): text.append(values, named: key)
      case .unknown(let opaque):
        text += opaque.payload
        text += "\n".utf8
      // `SettingsFile` has converted or refused these.
      case .integer, .unsigned, .real, .date, .data, .array, .dictionary: break
      }
    }
    return text + Array("</map>\n".utf8)
  }

  /// A number as Java's `Float.toString` writes it: `1.5`, `1.0E10`, `NaN`.
  static func javaText(_ number: Float) -> String {
    if number.isNaN { return "NaN" }
    let sign = number.sign == .minus ? "-" : ""
    if number.isInfinite { return sign + "Infinity" }
    if number == 0 { return sign + "0.0" }
    // The shortest digits, and the exponent of the first one.
    let parts = "\(number.magnitude)".split(separator: "e")
    let point = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    let whole = point[0]
    let fraction = point.count > 1 && point[1] != "0" ? point[1] : ""
    let all = whole + fraction
    let digits = String(all.drop { $0 == "0" })
    var exponent = (parts.count > 1 ? Int(parts[1]) ?? 0 : 0) + whole.count - 1
    exponent -= all.count - digits.count
    let significant = String(digits.reversed().drop { $0 == "0" }.reversed())
    func tail(_ text: some StringProtocol) -> String { text.isEmpty ? "0" : String(text) }
    switch exponent {
    case 0..<7:
      let padded = significant + String(repeating: "0", count: max(0, exponent + 1 - significant.count))
      return sign + padded.prefix(exponent + 1) + "." + tail(padded.dropFirst(exponent + 1))
    case -3..<0:
      return sign + "0." + String(repeating: "0", count: -exponent - 1) + significant
    default: return sign + significant.prefix(1) + "." + tail(significant.dropFirst()) + "E\(exponent)"
    }
  }
}

extension [UInt8] {
  /// Text in a file, with the characters that Android's serializer escapes.
  private mutating func append(escaped text: String) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"): self += "&amp;".utf8
      case UInt8(ascii: "<"): self += "&lt;".utf8
      case UInt8(ascii: ">"): self += "&gt;".utf8
      case UInt8(ascii: "\""): self += "&quot;".utf8
      case 0..<0x20: self += "&#\(byte);".utf8
      default: append(byte)
      }
    }
  }

  private mutating func append(start element: String, named key: String) {
    self += "<\(element) name=\"".utf8
    append(escaped: key)
    append(UInt8(ascii: "\""))
  }

  fileprivate mutating func append(_ element: String, named key: String, value: String) {
    append(start: element, named: key)
    self += " value=\"\(value)\" />\n".utf8
  }

  fileprivate mutating func append(_ element: String, named key: String, content: String) {
    append(start: element, named: key)
    append(UInt8(ascii: ">"))
    append(escaped: content)
    self += "</\(element)>\n".utf8
  }

  fileprivate mutating func append(_ set: StringSet, named key: String) {
    append(start: "set", named: key)
    let strings = set.strings
    if strings.isEmpty {
      self += " />\n".utf8
      return
    }
    self += ">\n".utf8
    for text in strings {
      self += "        <string>".utf8
      append(escaped: text)
      self += "</string>\n".utf8
    }
    self += "    </set>\n".utf8
  }
}
