import DrydockErrors
import Foundation

/// The encodings in which a file may contain an original, each with the replacement in the same encoding. Escapes are not
/// among them: they are resolved before originals are searched for.
enum EncodedForm {
  /// All forms of a text that is long enough to be searched for in any of them.
  static func all(of text: String, _ original: Original, _ made: String) -> [PatternIndex.Pattern] {
    var forms = variants(of: [text]).flatMap { variant in
      [DatabaseEncoding.utf8, .utf16le, .utf16be].map { encoding in
        PatternIndex.Pattern(bytes: encoding.bytes(variant), replacement: encoding.bytes(made))
      }
    }
    // An encoded text may have changed its case before it was encoded.
    for variant in variants(of: original.spellings.union([text])) {
      let spelling = Array(variant.utf8)
      let replacement = Replacements.cased(Array(made.utf8), as: spelling)
      forms += binary(spelling, replacement)
      let madeSpelling = String(decoding: replacement, as: UTF8.self)
      for encoding in [DatabaseEncoding.utf16le, .utf16be] {
        forms += base64(encoding.bytes(variant), encoding.bytes(madeSpelling))
      }
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
    [
      PatternIndex.Pattern(bytes: bytes, replacement: replacement, ignoresCase: false),
      PatternIndex.Pattern(bytes: hexadecimal(bytes), replacement: hexadecimal(replacement)),
    ] + base64(bytes, replacement)
  }

  private static func base64(_ bytes: [UInt8], _ replacement: [UInt8]) -> [PatternIndex.Pattern] {
    zip(base64(bytes), base64(replacement)).map {
      PatternIndex.Pattern(bytes: $0, replacement: $1, ignoresCase: false)
    }
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] { Array(bytes.hex.utf8) }

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
