import Foundation

/// Foundation's classes whose fields are known: what an archive may hold without being asked about.
enum ArchivedClass: Sendable {
  case dictionary, list, text, data, date, url, uuid, null, decimal
  /// Known by one field that is text.
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

  /// What an instance holds.
  func read(
    _ fields: PropertyListDictionary, from reader: inout Unarchiver, depth: Int
  ) throws -> Unarchiver.Part {
    switch self {
    case .dictionary: return try Self.dictionary(fields, &reader, depth)
    case .list:
      return try reader.list(try Self.elements(fields, "NS.objects", "NS.object.", &reader), depth: depth)
    case .null: return Unarchiver.Part(.null)
    default:
      let value = try simple(fields, &reader, depth)
      return try reader.part(value, depth: depth)
    }
  }

  private func simple(
    _ fields: PropertyListDictionary, _ reader: inout Unarchiver, _ depth: Int
  ) throws -> PropertyListValue {
    func field(_ name: String) throws -> PropertyListValue {
      guard let field = fields[name] else { throw reader.failure(.malformed, "has no field `\(name)`") }
      // It cannot hold another object that holds this one: that would be a cycle, which is found.
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
        throw reader.failure(.malformed, "is text that is not UTF-8")
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
        throw reader.failure(.malformed, "is a URL that cannot be put together")
      }
      return .string(url.absoluteString)
    case .uuid:
      let bytes = try bytes("NS.uuidbytes")
      guard bytes.count == 16 else { throw reader.failure(.malformed, "is a UUID that has not 16 bytes") }
      return .string(bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString })
    case .decimal:
      guard let number = ArchivedDecimal(fields) else {
        throw reader.failure(.malformed, "is a decimal number with fields that make no sense")
      }
      guard let value = number.value(reader.options.decimals) else {
        throw reader.failure(
          .unsupported,
          number.isNumber
            ? "is a decimal number with more digits than a real holds: say `decimals: text`"
            : "is a decimal number that is none (NaN)")
      }
      return value
    case .named(let name): return .string(try text(name))
    case .dictionary, .list, .null: return .null
    }
  }

  // MARK: Collections

  /// The elements of a collection: a list of references, or, as older systems wrote it, a field for each.
  private static func elements(
    _ fields: PropertyListDictionary, _ list: String, _ prefix: String, _ reader: inout Unarchiver
  ) throws -> [PropertyListValue] {
    switch fields[list] {
    case .array(let values): return values
    case nil:
      var values: [PropertyListValue] = []
      while let value = fields[prefix + String(values.count)] { values.append(value) }
      return values
    default: throw reader.failure(.malformed, "has a field `\(list)` that is no list")
    }
  }

  private static func dictionary(
    _ fields: PropertyListDictionary, _ reader: inout Unarchiver, _ depth: Int
  ) throws -> Unarchiver.Part {
    let names = try elements(fields, "NS.keys", "NS.key.", &reader)
    let values = try elements(fields, "NS.objects", "NS.object.", &reader)
    guard names.count == values.count else {
      throw reader.failure(.malformed, "has \(names.count) keys and \(values.count) values")
    }
    var whole = Unarchiver.Part(.null)
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
            ? "has a key that cannot be text (\(key.typeName)): say `dictionary-keys: pairs`"
            : "has a key that is not text (\(key.typeName)): say `dictionary-keys: text` or `pairs`")
      }
      guard result.updateValue(try reader.add(value, to: &whole, depth: depth), forKey: name) == nil else {
        throw reader.failure(.unsupported, "has two keys that are the same as text")
      }
    }
    whole.value = .dictionary(result)
    return try reader.checked(whole, depth)
  }
}

extension PropertyListValue {
  /// A number of seconds.
  fileprivate var seconds: Double? {
    switch self {
    case .real(let seconds): seconds
    case .single(let seconds): Double(seconds)
    case .integer(let seconds): Double(seconds)
    default: nil
    }
  }

  /// What a simple value is as a key.
  fileprivate var keyText: String? {
    switch self {
    case .string(let text): text
    case .boolean, .integer, .unsigned, .real, .single, .date: description
    case .data, .array, .dictionary, .unknown: nil
    }
  }
}
