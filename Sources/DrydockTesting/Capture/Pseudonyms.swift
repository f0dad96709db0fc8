import Cryptography
import Foundation

/// Makes up values of the same shape and length: a letter for a letter, a digit for a digit, all else as it is. Equal
/// values get equal replacements. The key is random and is not stored, so that values cannot be guessed and tried.
struct Pseudonyms {
  private let key: SecretBytes

  init() throws { key = try RandomBytes.secret(32) }

  /// A text with other letters and digits, in the same case and with the same number of bytes.
  ///
  /// - Parameter attempt: another number gives another text.
  func text(_ text: String, attempt: Int = 0) throws -> String {
    let folded = text.asciiLowercased
    let random = try random(for: Array(folded.utf8), attempt, count: text.unicodeScalars.count)
    let isHexadecimal = Self.isHexadecimal(folded)
    // The power of ten of a number stays, so that a made-up one is a number, and as large.
    let exponent = Self.isNumber(folded) ? folded.utf8.firstIndex(of: UInt8(ascii: "e")) : nil
    let length = exponent.map { folded.utf8.distance(from: folded.startIndex, to: $0) } ?? .max
    var result = String.UnicodeScalarView()
    for (index, (scalar, byte)) in zip(text.unicodeScalars, random).enumerated() {
      var letters = index < length ? Self.alphabet(of: scalar, isHexadecimal) ?? [scalar] : [scalar]
      // A number keeps its number of digits.
      let startsNumber = result.last.map { !("0"..."9" ~= $0) } ?? true
      if startsNumber, "1"..."9" ~= scalar { letters.removeFirst() }
      result.append(letters[letters.startIndex + Int(byte) % letters.count])
    }
    return String(result)
  }

  func bytes(_ bytes: [UInt8]) throws -> [UInt8] {
    Array(try random(for: bytes, 0, count: bytes.count).prefix(bytes.count))
  }

  /// The same time of day, 30 to 3029 days before.
  func date(_ date: Date) throws -> Date {
    let seconds = date.timeIntervalSinceReferenceDate
    let random = try random(for: Array("\(seconds)".utf8), 0, count: 4)
    let number = random.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    return Date(timeIntervalSinceReferenceDate: seconds - Double(number % 3000 + 30) * 86_400)
  }

  /// Whether a text is a number as files write it, not a word such as `nan`.
  static func isNumber(_ text: String) -> Bool {
    Double(text) != nil && text.utf8.allSatisfy("0123456789.+-eE".utf8.contains)
  }

  /// Whether a text has a letter or a digit.
  static func canChange(_ text: String) -> Bool {
    text.unicodeScalars.contains { alphabet(of: $0, false) != nil }
  }

  /// At least so many random bytes, determined by a value and the key.
  private func random(for value: [UInt8], _ attempt: Int, count: Int) throws -> [UInt8] {
    func bytes(_ number: Int) -> [UInt8] { withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) } }
    // A long value is hashed once.
    let seed = try key.code(of: value + bytes(attempt))
    var result: [UInt8] = []
    while result.count < count { result += try key.code(of: seed + bytes(result.count)) }
    return result
  }

  private static func isHexadecimal(_ text: String) -> Bool {
    let letters = text.unicodeScalars.filter { $0.properties.isAlphabetic || "0"..."9" ~= $0 }
    return letters.count >= 8 && letters.allSatisfy { "0"..."9" ~= $0 || "a"..."f" ~= $0 }
      && letters.contains { "0"..."9" ~= $0 } && letters.contains { "a"..."f" ~= $0 }
  }

  /// The letters that may replace a letter; nil for all that stays, such as marks that join letters.
  private static func alphabet(of scalar: Unicode.Scalar, _ isHexadecimal: Bool) -> ArraySlice<
    Unicode.Scalar
  >? {
    switch scalar {
    case "0"..."9": return digits[...]
    case "a"..."z": return small.prefix(isHexadecimal ? 6 : 26)
    case "A"..."Z": return capital.prefix(isHexadecimal ? 6 : 26)
    default:
      let properties = scalar.properties
      let isLetter =
        properties.isAlphabetic || properties.numericType != nil || properties.isEmojiPresentation
      return isLetter ? others[scalar.utf8.count]?[...] : nil
    }
  }

  private static let digits = Array("0123456789".unicodeScalars)
  private static let small = Array("abcdefghijklmnopqrstuvwxyz".unicodeScalars)
  private static let capital = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ".unicodeScalars)
  /// Letters and pictures by their number of bytes.
  private static let others: [Int: [Unicode.Scalar]] = [
    2: Array("àáâäåæçèéêëìíîïñòóôöøùúûü".unicodeScalars),
    3: Array("あいうえおかきくけこさしすせそたちつてと".unicodeScalars),
    4: Array("😀😃😄😁😆😅😊🙂🙃😉😌😍😘😋😎🤓🧐😏".unicodeScalars),
  ]
}

extension String {
  /// With the letters A to Z in lower case, so that every byte stays in its place.
  var asciiLowercased: String {
    String(decoding: utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
