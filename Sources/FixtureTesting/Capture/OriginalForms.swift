import Foundation

/// The ways in which a text may stand in a file.
enum OriginalForms {
  /// How a text is written.
  struct Form: Sendable {
    var encode: @Sendable (String) -> [UInt8]
  }

  /// The text as it is; then quoted, escaped and encoded. A capital stays one in each.
  static let all: [Form] = [
    Form { Array($0.utf8) },
    Form { Array($0.replacing("'", with: "''").utf8) },
    Form { escaped($0, { ["\"": "\\\"", "\\": "\\\\", "\t": "\\t"][$0] }) },
    Form { escaped($0, { ["\"": "\\\"", "\\": "\\\\", "\t": "\\t", "/": "\\/"][$0] }) },
    Form { escaped($0, { unicode($0) ?? ["\"": "\\\"", "\\": "\\\\", "\t": "\\t"][$0] }) },
    Form { escaped($0, { ["&": "&amp;", "<": "&lt;", ">": "&gt;"][$0] }) },
    Form { escaped($0, { ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&apos;"][$0] }) },
    Form { escaped($0, { ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"][$0] }) },
    Form { percent($0, plain: "-._~") },
    Form { percent($0, plain: "") },
    Form { $0.utf8.flatMap(percent) },
    Form { $0.utf16.flatMap(unicode) },
    Form { percent($0, plain: "-._~@:/!$&'()*+,;=?") },
    Form { percent($0, plain: "-._*", space: "+") },
    Form { Array($0.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }) },
    Form { Array($0.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }) },
  ]

  /// Base64 of the text inside of something longer, for each place in a group of three bytes; in both alphabets.
  private static func base64(_ bytes: [UInt8]) -> [[UInt8]] {
    (0..<3).flatMap { offset -> [[UInt8]] in
      let text = Array(Data([UInt8](repeating: 0, count: offset) + bytes).base64EncodedString().utf8)
      // Only digits of which the text alone decides all six bits.
      let start = (offset * 8 + 5) / 6
      let end = (offset + bytes.count) * 8 / 6
      guard start < end else { return [] }
      let digits = Array(text[start..<end])
      let url = digits.map {
        $0 == UInt8(ascii: "+") ? UInt8(ascii: "-") : $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0
      }
      return [digits, url]
    }
  }

  /// Encodings in which a capital is something else altogether.
  static func encoded(_ bytes: [UInt8]) -> [[UInt8]] { [hexadecimal(bytes)] + base64(bytes) }

  private static let capitals = Array("0123456789ABCDEF".utf8)

  private static func percent(_ byte: UInt8) -> [UInt8] {
    [UInt8(ascii: "%"), capitals[Int(byte >> 4)], capitals[Int(byte & 15)]]
  }

  private static func unicode(_ unit: UInt16) -> [UInt8] {
    Array("\\u".utf8) + hexadecimal([UInt8(unit >> 8), UInt8(unit & 0xFF)])
  }

  /// Two digits for each byte.
  private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
  }

  private static func escaped(_ text: String, _ escape: (Unicode.Scalar) -> String?) -> [UInt8] {
    var result: [UInt8] = []
    for scalar in text.unicodeScalars {
      if let escaped = escape(scalar) {
        result += Array(escaped.utf8)
      } else {
        result += Array(UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    return result
  }

  /// As JSON and many languages escape what is not ASCII.
  private static func unicode(_ scalar: Unicode.Scalar) -> String? {
    guard !scalar.isASCII else { return nil }
    return String(decoding: String(scalar).utf16.flatMap(unicode), as: UTF8.self)
  }

  private static func percent(_ text: String, plain: String, space: String? = nil) -> [UInt8] {
    var result = ""
    for byte in text.utf8 {
      let scalar = Unicode.Scalar(byte)
      if scalar == " ", let space {
        result += space
      } else if byte < 0x80,
        scalar.properties.isAlphabetic || "0"..."9" ~= scalar || plain.unicodeScalars.contains(scalar)
      {
        result.unicodeScalars.append(scalar)
      } else {
        result += String(decoding: percent(byte), as: UTF8.self)
      }
    }
    return Array(result.utf8)
  }
}
