import DrydockErrors
import Foundation

/// What reader and writer of the XML format share. Why not Foundation's: of two keys that Unicode takes for equal it
/// keeps one, and it has no negative zero.
package enum XMLPropertyList {
  /// The key under which the format has a keyed archiver's reference.
  static let reference = "CF$UID"

  package static func read(_ bytes: [UInt8]) throws -> PropertyListValue {
    // A name without brackets may be a property list of the old text format.
    let start = bytes.prefix(64).filter { !($0 <= 0x20 || $0 >= 0x80) }
    guard start.first == UInt8(ascii: "<") else {
      let what = bytes.isEmpty ? "the file is empty" : "it is neither binary nor XML"
      throw DrydockError(.malformed, "not a property list: \(what)")
    }
    return try XMLPropertyListReader.read(try utf8(bytes))
  }

  static func damaged(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the XML property list is damaged or cut: \(what)")
  }

  /// The text in UTF-8, which most are in.
  private static func utf8(_ bytes: [UInt8]) throws -> [UInt8] {
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return try checked(Array(bytes.dropFirst(3))) }
    if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) || bytes.prefix(2).contains(0) {
      guard let text = String(data: Data(bytes), encoding: .utf16), !text.utf8.contains(0) else {
        throw damaged("it is not valid UTF-16")
      }
      return Array(text.drop { $0 == "\u{FEFF}" }.utf8)
    }
    switch try encoding(bytes) {
    case "utf-8", nil: return try checked(bytes)
    case "us-ascii", "ascii": return try checked(bytes)
    case "iso-8859-1", "latin1": return bytes.flatMap { Array(String(UnicodeScalar($0)).utf8) }
    default: throw damaged("it is written in an encoding that is not UTF-8, UTF-16 or ISO-8859-1")
    }
  }

  private static func checked(_ bytes: [UInt8]) throws -> [UInt8] {
    guard String(validating: bytes, as: UTF8.self) != nil else { throw damaged("it is not valid UTF-8") }
    return bytes
  }

  /// The encoding that the first line says, in lower case.
  private static func encoding(_ bytes: [UInt8]) throws -> String? {
    let start = String(decoding: bytes.prefix(200), as: UTF8.self)
    guard let end = start.range(of: "?>"), start.hasPrefix("<?xml"),
      let name = start[..<end.lowerBound].firstMatch(of: #/encoding\s*=\s*["']([^"']*)["']/#)
    else { return nil }
    return name.1.lowercased()
  }
}
