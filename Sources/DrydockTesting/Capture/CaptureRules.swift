import AppContainer
import Formats
import Foundation

/// The place of a value, and what is known about it there.
struct CapturePlace {
  /// What its name says about it.
  var name = SecretName.plain
  /// Whether it was chosen to be replaced.
  var isChosen = false
  /// Whether its name says that it is an identifier of the device or of a container.
  var isIdentifier = false
  /// Whether data are kept although they cannot be searched.
  var isKept = false
  /// Whether keys in it are named beside it: settings.
  var showsKeys = false
  /// The place for people.
  var label: String
}

/// What becomes of a value of a captured container.
enum CaptureDecision: Equatable {
  /// It is or may be personal or secret: a made-up value of the same shape takes its place, here and everywhere else.
  case replace(isSecret: Bool)
  /// It is of a harmless kind, or kept by the user. Replaced values in it are replaced nevertheless.
  case keep
  /// It can neither be searched nor replaced: no fixture is written.
  case refuse(String)
}

/// Decides about each value.
enum CaptureRules {
  /// A text that is not a document.
  static func decision(_ text: String, _ place: CapturePlace) -> CaptureDecision {
    decision(leaf: .string(text), place)
  }

  /// A number without a fraction.
  static func decision(number digits: String, _ place: CapturePlace) -> CaptureDecision {
    let isSecret =
      Int64(digits).map { SecretPattern.isSecret(leaf: .integer($0), name: place.name, looksInside: false) }
      ?? (place.name == .secret)
    return isSecret || place.isChosen ? .replace(isSecret: isSecret) : .keep
  }

  /// Bytes that are neither text nor a document.
  static func decision(_ bytes: [UInt8], _ place: CapturePlace) -> CaptureDecision {
    decision(leaf: .data(bytes), place)
  }

  private static func decision(leaf: PropertyListValue, _ place: CapturePlace) -> CaptureDecision {
    let isSecret = SecretPattern.isSecret(leaf: leaf, name: place.name, looksInside: false)
    return isSecret || place.isChosen ? .replace(isSecret: isSecret) : .keep
  }

  /// Bytes in which nothing was replaced.
  ///
  /// - Parameter found: a replaced value that is in them.
  static func decision(
    _ bytes: [UInt8], finding found: Replacements.Origin?, _ place: CapturePlace
  ) -> CaptureDecision {
    if let found {
      return .refuse(
        "binary data with \(found.isSecret ? "a secret" : "a value") of \(found.source) in it; "
          + "replace the value or the whole file, or leave it out")
    }
    if place.isKept { return .keep }
    let advice =
      "replace the value or the whole file, leave it out, or keep it as it is"
    if let format = OpaqueFormat.of(bytes) {
      return .refuse("data in \(format), which cannot be searched; \(advice)")
    }
    let isSuspicious = BinaryText.runs(in: bytes).contains(where: SecretPattern.isSecret(text:))
    return isSuspicious ? .refuse("binary data that seem to contain a secret; \(advice)") : .keep
  }
}

/// Text that is not in UTF-8.
struct BinaryText {
  let text: String
  private let encoding: TextEncoding

  /// Nil for what does not begin as text in UTF-16 does, or is not well formed.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 2 else { return nil }
    switch (bytes[0], bytes[1]) {
    case (0xFE, 0xFF): encoding = .utf16be
    case (0xFF, 0xFE): encoding = .utf16le
    default: return nil
    }
    guard let text = encoding.text(Array(bytes[2...])) else { return nil }
    self.text = text
  }

  func encoded(_ text: String) -> [UInt8] {
    (encoding == .utf16be ? [0xFE, 0xFF] : [0xFF, 0xFE]) + encoding.bytes(text)
  }

  /// What a person could read in binary data: eight letters and more, of one byte or of two.
  static func runs(in bytes: [UInt8]) -> [String] {
    var runs: [String] = []
    for (start, step) in [(0, 1), (0, 2), (1, 2)] {
      var run: [UInt8] = []
      func end() {
        if run.count >= 8 { runs.append(String(decoding: run, as: UTF8.self)) }
        run = []
      }
      for index in stride(from: start, to: bytes.count, by: step) {
        let isWide = step == 2 && index + 1 < bytes.count && bytes[index + 1] != 0
        if (0x20..<0x7F).contains(bytes[index]), !isWide { run.append(bytes[index]) } else { end() }
      }
      end()
    }
    return runs
  }
}

/// Formats that hide what is in them.
enum OpaqueFormat {
  private static let beginnings: [(String, [UInt8])] = [
    ("gzip", [0x1F, 0x8B, 0x08]), ("zip", [0x50, 0x4B, 0x03, 0x04]), ("zstd", [0x28, 0xB5, 0x2F, 0xFD]),
    ("xz", [0xFD, 0x37, 0x7A, 0x58, 0x5A]), ("bzip2", Array("BZh".utf8)), ("7z", [0x37, 0x7A, 0xBC, 0xAF]),
    ("rar", Array("Rar!".utf8)), ("lz4", [0x04, 0x22, 0x4D, 0x18]), ("PDF", Array("%PDF-".utf8)),
    ("age", Array("age-encryption.org/".utf8)), ("Apple's archive format", Array("AA01".utf8)),
    ("an SQLite database", Array("SQLite format 3".utf8)), ("an SQLite log", [0x37, 0x7F, 0x06]),
    ("LZFSE", Array("bvx".utf8)),
  ]

  /// The name of the format that data begin as; nil for all that can be looked into.
  static func of(_ bytes: [UInt8]) -> String? {
    if let found = beginnings.first(where: { bytes.starts(with: $0.1) }) { return found.0 }
    // A stream of zlib's: its first two bytes are a number that 31 divides.
    if bytes.count > 10, bytes[0] == 0x78, (Int(bytes[0]) << 8 | Int(bytes[1])) % 31 == 0 { return "zlib" }
    return nil
  }
}
