import DrydockErrors
import Foundation

/// Foundation's classes whose fields are known.
enum KeyedArchiveClass: Sendable {
  case dictionary, list, text, data, date, url, uuid, null, decimal
  /// A class with one text field.
  case named(String)

  init?(name: String) {
    switch name {
    case "NSDictionary", "NSMutableDictionary": self = .dictionary
    case "NSArray", "NSMutableArray", "NSSet", "NSMutableSet", "NSOrderedSet", "NSMutableOrderedSet":
      self = .list
    case "NSString", "NSMutableString": self = .text
    case "NSData", "NSMutableData": self = .data
    case "NSDate", "NSCalendarDate": self = .date
    case "NSURL": self = .url
    case "NSUUID": self = .uuid
    case "NSNull": self = .null
    case "NSDecimalNumber", "NSDecimalNumberPlaceholder": self = .decimal
    case "NSTimeZone": self = .named("NS.name")
    case "NSLocale": self = .named("NS.identifier")
    default: return nil
    }
  }

  /// Reads an instance.
  func read(
    _ fields: PropertyListDictionary, from reader: inout KeyedArchiveReader, depth: Int
  ) throws -> MeasuredValue {
    switch self {
    case .dictionary: return try Self.dictionary(fields, &reader, depth)
    case .list:
      return try reader.list(try Self.elements(fields, "NS.objects", "NS.object.", &reader), depth: depth)
    case .null: return KeyedArchiveReader.measured(.null)
    default:
      let value = try simple(fields, &reader, depth)
      return try reader.part(value, depth: depth)
    }
  }

  private func simple(
    _ fields: PropertyListDictionary, _ reader: inout KeyedArchiveReader, _ depth: Int
  ) throws -> PropertyListValue {
    func field(_ name: String) throws -> PropertyListValue {
      guard let field = fields[name] else { throw reader.failure(.malformed, "has no field `\(name)`") }
      return try reader.part(field, depth: depth + 1).value
    }
    func text(_ name: String) throws -> String {
      if case .string(let text) = try field(name) { return text }
      throw reader.failure(.malformed, "has a field `\(name)` that is not text")
    }
    func bytes(_ name: String) throws -> [UInt8] {
      if case .data(let bytes) = try field(name) { return bytes }
      throw reader.failure(.malformed, "has a field `\(name)` that is not data")
    }
    switch self {
    case .text:
      if fields["NS.bytes"] == nil { return .string(try text("NS.string")) }
      guard let text = String(validating: try bytes("NS.bytes"), as: UTF8.self) else {
        throw reader.failure(.malformed, "is text that is not valid UTF-8")
      }
      return .string(text)
    case .data: return .data(try bytes(fields["NS.bytes"] == nil ? "NS.data" : "NS.bytes"))
    case .date:
      guard let seconds = try field("NS.time").seconds, seconds.isFinite else {
        throw reader.failure(.malformed, "is a date without a time")
      }
      return .date(Date(timeIntervalSinceReferenceDate: seconds))
    case .url:
      let base = fields["NS.base"] == nil ? .null : try field("NS.base")
      let relative = try text("NS.relative")
      guard case .string(let base) = base else { return .string(relative) }
      guard let url = URL(string: relative, relativeTo: URL(string: base)) else {
        throw reader.failure(.malformed, "is an invalid URL")
      }
      return .string(url.absoluteString)
    case .uuid:
      let bytes = try bytes("NS.uuidbytes")
      guard bytes.count == 16 else {
        throw reader.failure(.malformed, "is a UUID that does not have 16 bytes")
      }
      return .string(bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString })
    case .decimal:
      guard let number = KeyedArchiveDecimal(fields) else {
        throw reader.failure(.malformed, "is a decimal number with invalid fields")
      }
      guard let value = number.value(reader.options.decimals) else {
        throw reader.failure(
          .unsupported,
          number.isNumber
            ? "is a decimal number with more digits than a real has: use `decimals: text`"
            : "is a decimal number without a value (NaN)")
      }
      return value
    case .named(let name): return .string(try text(name))
    case .dictionary, .list, .null: return .null
    }
  }

  // MARK: Collections

  /// The elements of a collection: a list of references, or, from older systems, a field for each.
  private static func elements(
    _ fields: PropertyListDictionary, _ list: String, _ prefix: String, _ reader: inout KeyedArchiveReader
  ) throws -> [PropertyListValue] {
    switch fields[list] {
    case .array(let values): return values
    case nil:
      var values: [PropertyListValue] = []
      while let value = fields[prefix + String(values.count)] { values.append(value) }
      return values
    default: throw reader.failure(.malformed, "has a field `\(list)` that is not a list")
    }
  }

  private static func dictionary(
    _ fields: PropertyListDictionary, _ reader: inout KeyedArchiveReader, _ depth: Int
  ) throws -> MeasuredValue {
    let names = try elements(fields, "NS.keys", "NS.key.", &reader)
    let values = try elements(fields, "NS.objects", "NS.object.", &reader)
    guard names.count == values.count else {
      throw reader.failure(.malformed, "has \(names.count) keys and \(values.count) values")
    }
    var whole = KeyedArchiveReader.measured(.null)
    let keys = try names.map { try reader.add($0, to: &whole, depth: depth) }
    let isPlain = keys.allSatisfy { if case .string = $0 { true } else { false } }
    if !isPlain, reader.options.keys == .pairs {
      var pairs: [PropertyListValue] = []
      for (key, value) in zip(keys, values) {
        pairs += [key, try reader.add(value, to: &whole, depth: depth)]
      }
      whole.value = .array(pairs)
      return try reader.checked(whole, depth)
    }
    var result: PropertyListDictionary = [:]
    for (key, value) in zip(keys, values) {
      guard let name = key.keyText, isPlain || reader.options.keys == .text else {
        throw reader.failure(
          .unsupported,
          reader.options.keys == .text
            ? "has a key that cannot be text (\(key.typeName)): use `dictionary-keys: pairs`"
            : "has a key that is not text (\(key.typeName)): use `dictionary-keys: text` or `pairs`")
      }
      guard result.updateValue(try reader.add(value, to: &whole, depth: depth), forKey: name) == nil else {
        throw reader.failure(.unsupported, "has two keys that are equal as text")
      }
    }
    whole.value = .dictionary(result)
    return try reader.checked(whole, depth)
  }
}

extension PropertyListValue {
  fileprivate var seconds: Double? {
    switch self {
    case .real(let seconds): seconds
    case .single(let seconds): Double(seconds)
    case .integer(let seconds): Double(seconds)
    default: nil
    }
  }

  /// A simple value as a key.
  fileprivate var keyText: String? {
    switch self {
    case .string(let text): text
    case .boolean, .integer, .unsigned, .real, .single, .int, .long, .date: description
    case .data, .array, .set, .dictionary, .unknown: nil
    }
  }
}

/// A decimal number in a keyed archive: up to 38 digits and an exponent of ten.
struct KeyedArchiveDecimal {
  private let isNegative: Bool
  private let mantissa: UInt128
  private let exponent: Int
  /// False for NaN.
  let isNumber: Bool

  /// Nil when the fields are invalid.
  init?(_ fields: PropertyListDictionary) {
    guard case .integer(let length)? = fields["NS.length"], (0...8).contains(length),
      case .integer(let exponent)? = fields["NS.exponent"], (-128...127).contains(exponent),
      case .boolean(let isNegative)? = fields["NS.negative"],
      case .data(let bytes)? = fields["NS.mantissa"], bytes.count >= Int(length) * 2
    else { return nil }
    // 16-bit digits, the lowest first, in the byte order of the machine: 1 for little-endian.
    let isLittle = fields["NS.mantissa.bo"] == .integer(1)
    var mantissa: UInt128 = 0
    for index in (0..<Int(length)).reversed() {
      let pair = (UInt128(bytes[index * 2]), UInt128(bytes[index * 2 + 1]))
      mantissa = mantissa << 16 | (isLittle ? pair.1 << 8 | pair.0 : pair.0 << 8 | pair.1)
    }
    (self.isNegative, self.mantissa, self.exponent) = (isNegative, mantissa, Int(exponent))
    isNumber = length > 0 || !isNegative
  }

  /// The number in a form; nil when the form cannot represent it.
  func value(_ form: KeyedArchiveOptions.Decimals) -> PropertyListValue? {
    guard isNumber else { return nil }
    if form == .text { return .string(text) }
    if let integer = Int64(text) { return .integer(integer) }
    guard let real = Double(text), JSONNumber(real)?.matches(JSONNumber(checked: text)) == true else {
      return nil
    }
    return .real(real)
  }

  /// All digits, without an exponent and without redundant zeros.
  private var text: String {
    var digits = String(mantissa)
    if mantissa == 0 { return "0" }
    let sign = isNegative ? "-" : ""
    if exponent >= 0 { return sign + digits + String(repeating: "0", count: exponent) }
    let missing = 1 - exponent - digits.utf8.count
    if missing > 0 { digits = String(repeating: "0", count: missing) + digits }
    var (whole, fraction) = (String(digits.dropLast(-exponent)), String(digits.suffix(-exponent)))
    while fraction.hasSuffix("0") { fraction.removeLast() }
    if fraction.isEmpty { return sign + whole }
    whole += "."
    return sign + whole + fraction
  }
}

/// The form of a keyed archive's dates in JSON, with the strategy of Swift's `JSONDecoder` that reads it.
package enum KeyedArchiveDates: String, CaseIterable, Sendable {
  /// ISO 8601 in UTC, with a fraction of the second if any.
  case iso8601
  /// ISO 8601 without fractions, which are truncated (`.iso8601`).
  case iso8601Seconds = "iso8601-seconds"
  /// Seconds since 1970 (`.secondsSince1970`).
  case since1970 = "seconds-since-1970"
  /// Milliseconds since 1970 (`.millisecondsSince1970`).
  case milliseconds = "milliseconds-since-1970"
  /// Seconds since 2001 (`.deferredToDate`, the default).
  case since2001 = "seconds-since-2001"

  /// A date in this form; nil outside the years 1 to 9999 of ISO 8601.
  func value(_ date: Date) -> JSONValue? {
    let seconds = date.timeIntervalSinceReferenceDate
    switch self {
    case .iso8601:
      let text = YAMLDate.text(date)
      return YAMLDate.parse(text) == nil ? nil : .string(JSONString(text))
    case .iso8601Seconds: return YAMLDate.wholeText(date).map { .string(JSONString($0)) }
    case .since1970: return JSONNumber(date.timeIntervalSince1970).map { .number($0) }
    case .milliseconds: return JSONNumber(date.timeIntervalSince1970 * 1000).map { .number($0) }
    case .since2001: return JSONNumber(seconds).map { .number($0) }
    }
  }
}

extension JSONValue {
  /// The content of a keyed archive as JSON: keys in order, data in base64.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for NaN, infinity, and dates that the form cannot represent.
  package init(keyedArchive value: PropertyListValue, dates: KeyedArchiveDates) throws {
    let json = try JSONValue(value) { part in
      switch part {
      case .date(let date):
        guard let value = dates.value(date) else {
          throw Self.unsupported("a date outside the years 1 to 9999: use `dates: seconds-since-2001`")
        }
        return value
      case .data(let bytes): return .string(JSONString(Data(bytes).base64EncodedString()))
      default: return part.isNull ? .null : nil
      }
    }
    guard let json else { throw Self.unsupported("NaN or infinity") }
    self = json
  }

  private static func unsupported(_ what: String) -> DrydockError {
    DrydockError(.unsupported, "JSON cannot represent a value of the keyed archive: \(what)")
  }
}
