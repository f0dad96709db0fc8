import Foundation

/// The encodings in which a file may contain an original, each with the replacement in the same encoding.
enum EncodedForm {
  /// All forms of a text that is long enough to be searched for in any of them.
  static func all(of text: String, _ original: Original, _ made: String) -> [PatternIndex.Pattern] {
    var forms: [PatternIndex.Pattern] = []
    for variant in variants(of: [text]) {
      forms += escapes.map { .init(bytes: $0(variant), replacement: $0(made)) }
    }
    // An encoded text may have changed its case before it was encoded.
    for variant in variants(of: original.spellings.union([text])) {
      let spelling = Array(variant.utf8)
      forms += binary(spelling, Replacements.cased(Array(made.utf8), as: spelling))
    }
    guard original.isIdentifier, let uuid = DeviceIdentifiers.bytes(text),
      let madeUUID = DeviceIdentifiers.bytes(made)
    else { return forms }
    let plain = Original(isSecret: false, source: original.source)
    return forms + binary(uuid, madeUUID)
      + all(of: text.replacing("-", with: ""), plain, made.replacing("-", with: ""))
  }

  /// Bytes in forms in which the case of letters has a meaning: as they are, hexadecimal, and Base64.
  static func binary(_ bytes: [UInt8], _ replacement: [UInt8]) -> [PatternIndex.Pattern] {
    func forms(_ bytes: [UInt8]) -> [[UInt8]] { [bytes, hexadecimal(bytes)] + base64(bytes) }
    return zip(forms(bytes), forms(replacement)).map {
      .init(bytes: $0, replacement: $1, ignoresCase: false)
    }
  }

  /// Texts in lower and upper case, with their accents composed and decomposed, as file systems have them.
  private static func variants(of texts: Set<String>) -> [String] {
    let cased = texts.flatMap { [$0, $0.lowercased(), $0.uppercased()] }
    let all = cased.flatMap {
      [$0, $0.precomposedStringWithCanonicalMapping, $0.decomposedStringWithCanonicalMapping]
    }
    // To Swift composed and decomposed texts are equal.
    var seen: Set<[UInt8]> = []
    return all.filter { seen.insert(Array($0.utf8)).inserted }
  }

  // MARK: Escapes

  private static let json: [Unicode.Scalar: String] = ["\"": "\\\"", "\\": "\\\\", "\t": "\\t"]
  private static let markup: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;"]

  /// The text as it is; then quoted, escaped and encoded.
  private static let escapes: [@Sendable (String) -> [UInt8]] = [
    { Array($0.utf8) },
    { Array($0.replacing("'", with: "''").utf8) },
    { escaped($0) { json[$0] } },
    { escaped($0) { $0 == "/" ? "\\/" : json[$0] } },
    {
      escaped($0) {
        $0.isASCII ? json[$0] : String(decoding: String($0).utf16.flatMap(unicode), as: UTF8.self)
      }
    },
    { escaped($0) { markup[$0] } },
    { escaped($0) { markup[$0] ?? ["\"": "&quot;", "'": "&apos;"][$0] } },
    { escaped($0) { markup[$0] ?? ["\"": "&quot;", "'": "&#39;"][$0] } },
    { percent($0, plain: "-._~") },
    { percent($0, plain: "") },
    { percent($0, plain: "-._~@:/!$&'()*+,;=?") },
    { Array(String(decoding: percent($0, plain: "-._*"), as: UTF8.self).replacing("%20", with: "+").utf8) },
    { $0.utf8.flatMap(percent) },
    { $0.utf16.flatMap(unicode) },
    { TextEncoding.utf16le.bytes($0) },
    { TextEncoding.utf16be.bytes($0) },
  ]

  private static func escaped(_ text: String, _ escape: (Unicode.Scalar) -> String?) -> [UInt8] {
    text.unicodeScalars.flatMap { Array((escape($0) ?? String($0)).utf8) }
  }

  private static func unicode(_ unit: UInt16) -> [UInt8] {
    Array("\\u".utf8) + hexadecimal([UInt8(unit >> 8), UInt8(unit & 0xFF)])
  }

  private static func percent(_ byte: UInt8) -> [UInt8] {
    Array("%".utf8) + hexadecimal([byte], "0123456789ABCDEF")
  }

  private static func percent(_ text: String, plain: String) -> [UInt8] {
    text.utf8.flatMap { byte in
      let isPlain =
        PatternIndex.isLetter(byte) && byte < 0x80 && byte != UInt8(ascii: "_") || plain.utf8.contains(byte)
      return isPlain ? [byte] : percent(byte)
    }
  }

  private static func hexadecimal(_ bytes: [UInt8], _ digits: StaticString = "0123456789abcdef") -> [UInt8] {
    let digits = UnsafeBufferPointer(start: digits.utf8Start, count: 16)
    return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
  }

  /// Base64 of bytes inside of something longer, for each place in a group of three bytes; in both alphabets.
  private static func base64(_ bytes: [UInt8]) -> [[UInt8]] {
    (0..<3).flatMap { offset -> [[UInt8]] in
      let text = Data([UInt8](repeating: 0, count: offset) + bytes).base64EncodedString()
      // Only digits all of whose bits belong to the bytes.
      let (start, end) = ((offset * 8 + 5) / 6, (offset + bytes.count) * 8 / 6)
      guard start < end else { return [] }
      let digits = text.prefix(end).dropFirst(start)
      let url = digits.replacing("+", with: "-").replacing("/", with: "_")
      return [Array(digits.utf8), Array(url.utf8)]
    }
  }
}
