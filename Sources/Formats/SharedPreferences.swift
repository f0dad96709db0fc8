import DrydockErrors

/// The XML of Android's SharedPreferences: a `<map>` of named values.
package enum SharedPreferences {
  /// The reserved names of EncryptedSharedPreferences, whose values are keys that the device's keystore encrypts.
  private static let keysets = ["key", "value"].map {
    "__androidx_security_crypto_encrypted_prefs_\($0)_keyset__"
  }

  /// Whether the first element is a `<map>`.
  static func isBegun(by bytes: [UInt8]) -> Bool {
    var reader = SharedPreferencesReader(Array(bytes.prefix(4096)))
    return (try? reader.firstElement())?.name == "map"
  }

  /// The settings, and why the file cannot be rewritten without loss.
  ///
  /// - Throws: `DrydockError`: `malformed`, or `unsupported` for EncryptedSharedPreferences.
  static func read(_ bytes: [UInt8]) throws -> (PropertyListDictionary, obstacle: String?) {
    guard String(validating: bytes, as: UTF8.self) != nil else { throw damaged("not valid UTF-8") }
    var reader = SharedPreferencesReader(bytes)
    let settings = try reader.read()
    guard !keysets.contains(where: { settings[$0] != nil }) else {
      throw DrydockError(
        .unsupported,
        "EncryptedSharedPreferences: only the app on this device can read them, with a key in its keystore")
    }
    return (settings, reader.obstacle)
  }

  static func damaged(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the SharedPreferences file is corrupt: \(what)")
  }

  /// The name that an element of unknown type contains; nil for other values.
  static func name(of opaque: PropertyListValue.Opaque) -> String? {
    guard opaque.marker == PropertyListValue.Opaque.element else { return nil }
    var reader = SharedPreferencesReader(opaque.payload)
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
