import Foundation

/// One of the ways in which an original may be encoded in a file, with its replacement encoded alike.
struct EncodedForm {
  var bytes: [UInt8], replacement: [UInt8]
  /// Whether the letters A to Z may be in either case.
  var ignoresCase = true

  init(_ text: String, _ made: String) { (bytes, replacement) = (Array(text.utf8), Array(made.utf8)) }

  private init(_ bytes: [UInt8], _ replacement: [UInt8], ignoresCase: Bool) {
    (self.bytes, self.replacement, self.ignoresCase) = (bytes, replacement, ignoresCase)
  }

  /// All forms of a text that is long enough to be looked for in any of them.
  static func all(of text: String, _ entry: Originals.Entry, _ made: String) -> [EncodedForm] {
    var forms: [EncodedForm] = []
    if entry.isIdentifier, let bytes = DeviceIdentifiers.bytes(text),
      let other = DeviceIdentifiers.bytes(made)
    {
      // Without dashes, and as the bytes that its digits are.
      let (bare, otherBare) = (text.replacing("-", with: ""), made.replacing("-", with: ""))
      forms += escaped(bare, otherBare)
      for (spelling, made) in [(bare, otherBare), (bare.uppercased(), otherBare.uppercased())] {
        forms += digits(Array(spelling.utf8), Array(made.utf8))
      }
      forms.append(EncodedForm(bytes, other, ignoresCase: false))
      forms += digits(bytes, other)
    }
    for variant in variants(of: [text]) { forms += escaped(variant, made) }
    // Who has encoded a text may have changed its capitals before.
    for variant in variants(of: entry.spellings.union([text])) {
      let spelling = Array(variant.utf8)
      forms += digits(spelling, Replacements.cased(Array(made.utf8), as: spelling))
    }
    return forms
  }

  /// Texts in small letters and capitals, and with their accents composed or apart, as file systems have them.
  private static func variants(of texts: Set<String>) -> [String] {
    let cased = texts.flatMap { [$0, $0.lowercased(), $0.uppercased()] }
    let all = cased.flatMap { text in
      text.utf8.allSatisfy { $0 < 0x80 }
        ? [text]
        : [text, text.precomposedStringWithCanonicalMapping, text.decomposedStringWithCanonicalMapping]
    }
    // Swift takes composed and decomposed for the same.
    var seen: Set<[UInt8]> = []
    return all.filter { seen.insert(Array($0.utf8)).inserted }
  }

  // MARK: Escapes

  private static func escaped(_ text: String, _ made: String) -> [EncodedForm] {
    escapes.map { EncodedForm($0(text), $0(made), ignoresCase: true) }
  }

  private static let json: [Unicode.Scalar: String] = ["\"": "\\\"", "\\": "\\\\", "\t": "\\t"]
  private static let markup: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;"]

  /// The text as it is; then quoted, escaped and encoded. A capital stays one in each.
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
    { percent($0, plain: "-._*", space: "+") },
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
    Array("%".utf8) + hexadecimal([byte]).map { $0 >= 0x61 ? $0 & ~0x20 : $0 }
  }

  private static func percent(_ text: String, plain: String, space: String? = nil) -> [UInt8] {
    text.utf8.flatMap { byte -> [UInt8] in
      if byte == 0x20, let space { return Array(space.utf8) }
      let scalar = Unicode.Scalar(byte)
      let isPlain =
        byte < 0x80
        && (scalar.properties.isAlphabetic || "0"..."9" ~= scalar || plain.unicodeScalars.contains(scalar))
      return isPlain ? [byte] : percent(byte)
    }
  }

  // MARK: Digits

  /// Encodings in which a capital is something else altogether: hexadecimal and Base64.
  static func digits(_ bytes: [UInt8]) -> [[UInt8]] { [hexadecimal(bytes)] + base64(bytes) }

  private static func digits(_ bytes: [UInt8], _ replacement: [UInt8]) -> [EncodedForm] {
    zip(digits(bytes), digits(replacement)).map { EncodedForm($0, $1, ignoresCase: false) }
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
  }

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
}
