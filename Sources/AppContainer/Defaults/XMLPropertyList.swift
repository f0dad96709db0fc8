import Foundation

/// The XML format, through Foundation: its parser limits nesting, and its writer orders keys.
enum XMLPropertyList {
  static func read(_ bytes: [UInt8]) throws -> PropertyListValue {
    // Foundation would also take old-style text, where any word is a property list.
    let start = bytes.prefix(64).filter { !($0 <= 0x20 || $0 >= 0x80) }
    guard start.first == UInt8(ascii: "<") else {
      let what = bytes.isEmpty ? "the file is empty" : "it is neither binary nor XML"
      throw ContainerError(.malformed, "not a property list: \(what)")
    }
    let object: Any
    do {
      object = try PropertyListSerialization.propertyList(from: Data(bytes), options: [], format: nil)
    } catch {
      throw ContainerError(
        .malformed, "the XML property list is damaged or cut: \(reason(error))", cause: error)
    }
    return try value(object)
  }

  static func write(_ value: PropertyListValue) throws -> [UInt8] {
    do {
      let object = try object(value)
      return [UInt8](try PropertyListSerialization.data(fromPropertyList: object, format: .xml, options: 0))
    } catch {
      throw ContainerError(
        .unsupported, "the settings hold a value that an XML property list cannot hold: \(reason(error))",
        cause: error)
    }
  }

  private static func reason(_ error: any Error) -> String {
    guard let details = (error as NSError).userInfo[NSDebugDescriptionErrorKey] as? String else {
      return (error as? ContainerError)?.message ?? error.localizedDescription
    }
    let plain = details.hasSuffix(".") ? String(details.dropLast()) : details
    // In a damaged file a tag's name may be anything, a value too.
    return plain.replacing(#/unknown tag .* on line/#.dotMatchesNewlines(), with: "an unknown tag on line")
  }

  private static func value(_ object: Any) throws -> PropertyListValue {
    switch object {
    case let text as String: return .string(text)
    case let date as Date: return .date(date)
    case let data as Data: return .data([UInt8](data))
    case let values as [Any]: return .array(try values.map { try value($0) })
    case let values as [AnyHashable: Any]:
      var result: [String: PropertyListValue] = [:]
      for (key, element) in values {
        guard let name = key.base as? String else {
          throw ContainerError(.malformed, "the XML property list has a key that is not text")
        }
        result[name] = try value(element)
      }
      return .dictionary(result)
    case let number as NSNumber: return self.number(number)
    default: return try opaque(object)
    }
  }

  /// A Bool arrives as a number of its own C type, on Linux as on macOS.
  private static func number(_ number: NSNumber) -> PropertyListValue {
    switch String(cString: number.objCType) {
    case "c", "B": .boolean(number.boolValue)
    case "d", "f": .real(number.doubleValue)
    case "Q": Int64(exactly: number.uint64Value).map { .integer($0) } ?? .unsigned(number.uint64Value)
    default: .integer(number.int64Value)
    }
  }

  /// What Foundation has no public type for (a keyed archiver's reference) becomes its bytes in the binary form.
  private static func opaque(_ object: Any) throws -> PropertyListValue {
    let data = try PropertyListSerialization.data(fromPropertyList: [object], format: .binary, options: 0)
    guard case .array(let values) = try BinaryPropertyListReader.read([UInt8](data)), let first = values.first
    else { throw ContainerError(.malformed, "the XML property list has a value of an unknown kind") }
    return first
  }

  private static func object(_ value: PropertyListValue) throws -> Any {
    switch value {
    case .string(let text): return text
    case .boolean(let value): return NSNumber(value: value)
    case .integer(let value): return NSNumber(value: value)
    case .unsigned(let value): return NSNumber(value: value)
    case .real(let value): return NSNumber(value: value)
    case .single(let value): return NSNumber(value: Double(value))
    case .date(let date): return date
    case .data(let bytes): return Data(bytes)
    case .array(let values): return try values.map { try object($0) }
    case .dictionary(let values): return try values.mapValues { try object($0) }
    case .unknown(let opaque):
      guard opaque.archiveReference != nil else {
        throw ContainerError(.unsupported, "a value of an unknown kind")
      }
      let bytes = BinaryPropertyListWriter.write(.array([value]))
      let decoded = try PropertyListSerialization.propertyList(from: Data(bytes), options: [], format: nil)
      guard let first = (decoded as? [Any])?.first else {
        throw ContainerError(.unsupported, "a value of an unknown kind")
      }
      return first
    }
  }
}
