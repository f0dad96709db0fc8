import AgeEncryption
import Foundation

/// Makes up values of the same shape and length: a letter for a letter, a digit for a digit, all else as it is. The
/// same value gives the same one as long as the same value of this type makes it; its key is random and is kept
/// nowhere, so that nobody can try out what a value was.
struct Pseudonyms {
  private let key: Fingerprint

  init() throws { key = try Fingerprint() }

  /// A text with other letters and digits, in the same case and with the same number of bytes.
  ///
  /// - Parameter attempt: another number gives another text.
  func text(_ text: String, attempt: Int = 0) throws -> String {
    let folded = text.asciiLowercased
    var random = try Stream(key, Array(folded.utf8), attempt)
    let isHexadecimal = Self.isHexadecimal(folded)
    var result = String.UnicodeScalarView()
    var isNumberStart = true
    for scalar in text.unicodeScalars {
      let byte = try random.next()
      result.append(Self.other(scalar, byte, isHexadecimal: isHexadecimal, isNumberStart: isNumberStart))
      isNumberStart = !("0"..."9" ~= scalar)
    }
    return String(result)
  }

  /// As many other bytes.
  func bytes(_ bytes: [UInt8]) throws -> [UInt8] {
    var random = try Stream(key, bytes, 0)
    return try bytes.map { _ in try random.next() }
  }

  /// A number from 0 on for a value, below a limit.
  func number(for bytes: [UInt8], below limit: Int) throws -> Int {
    try key.code(of: bytes).prefix(6).reduce(0) { $0 << 8 | Int($1) } % limit
  }

  /// Whether something of a text would be another: what has neither letters nor digits tells nothing.
  static func canChange(_ text: String) -> Bool {
    text.unicodeScalars.contains {
      other($0, 1, isHexadecimal: false, isNumberStart: false)
        != other($0, 2, isHexadecimal: false, isNumberStart: false)
    }
  }

  private static func isHexadecimal(_ text: String) -> Bool {
    let letters = text.unicodeScalars.filter { $0.properties.isAlphabetic || "0"..."9" ~= $0 }
    return letters.count >= 8 && letters.allSatisfy { "0"..."9" ~= $0 || "a"..."f" ~= $0 }
      && letters.contains { "0"..."9" ~= $0 } && letters.contains { "a"..."f" ~= $0 }
  }

  private static func other(
    _ scalar: Unicode.Scalar, _ byte: UInt8, isHexadecimal: Bool, isNumberStart: Bool
  ) -> Unicode.Scalar {
    switch scalar {
    case "0"..."9":
      // A number keeps its number of digits.
      let first: UInt8 = isNumberStart && scalar != "0" ? 1 : 0
      return Unicode.Scalar(UInt8(ascii: "0") + first + byte % (10 - first))
    case "a"..."z": return Unicode.Scalar(UInt8(ascii: "a") + byte % (isHexadecimal ? 6 : 26))
    case "A"..."Z": return Unicode.Scalar(UInt8(ascii: "A") + byte % (isHexadecimal ? 6 : 26))
    case _ where scalar.isASCII: return scalar
    default: return otherLetter(scalar, byte)
    }
  }

  private static let short = Array("àáâäåæçèéêëìíîïñòóôöøùúûü".unicodeScalars)
  private static let long = Array("あいうえおかきくけこさしすせそたちつてと".unicodeScalars)
  private static let pictures = Array("😀😃😄😁😆😅😊🙂🙃😉😌😍😘😋😎🤓🧐😏".unicodeScalars)

  /// A letter of the same number of bytes: what else a script has, such as marks that join letters, stays.
  private static func otherLetter(_ scalar: Unicode.Scalar, _ byte: UInt8) -> Unicode.Scalar {
    let properties = scalar.properties
    switch scalar.utf8.count {
    case 2 where properties.isAlphabetic:
      let letter = short[Int(byte) % short.count]
      guard properties.isUppercase, let upper = letter.properties.uppercaseMapping.unicodeScalars.first else {
        return letter
      }
      return upper
    case 3 where properties.isAlphabetic || properties.numericType != nil: return long[Int(byte) % long.count]
    case 4 where properties.isEmojiPresentation: return pictures[Int(byte) % pictures.count]
    case 4 where properties.isAlphabetic:
      return Unicode.Scalar(scalar.value & ~0x3F | UInt32(byte & 0x3F)) ?? scalar
    default: return scalar
    }
  }

  /// Bytes that look random, by a value and the key.
  private struct Stream {
    private let key: Fingerprint
    private let seed: [UInt8]
    private var block: [UInt8] = []
    private var number = 0

    init(_ key: Fingerprint, _ value: [UInt8], _ attempt: Int) throws {
      self.key = key
      // The value's own code, so that a long value is hashed once.
      seed = try key.code(of: value + Self.bytes(of: attempt))
    }

    mutating func next() throws -> UInt8 {
      if block.isEmpty {
        block = try key.code(of: seed + Self.bytes(of: number))
        number += 1
      }
      return block.removeLast()
    }

    private static func bytes(of number: Int) -> [UInt8] {
      withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    }
  }
}

extension String {
  /// With the letters A to Z in lower case, so that every byte stays in its place.
  var asciiLowercased: String {
    String(decoding: utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
