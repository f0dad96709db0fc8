import AppContainer

/// Text that is not in UTF-8.
struct BinaryText {
  let text: String
  private let isBigEndian: Bool

  /// Nil for what does not begin as text in UTF-16 does, or is not well formed.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 2, bytes.count % 2 == 0 else { return nil }
    isBigEndian = bytes[0] == 0xFE && bytes[1] == 0xFF
    guard isBigEndian || bytes[0] == 0xFF && bytes[1] == 0xFE else { return nil }
    let pairs = stride(from: 2, to: bytes.count, by: 2).map { (UInt16(bytes[$0]), UInt16(bytes[$0 + 1])) }
    let units: [UInt16] = isBigEndian ? pairs.map { $0 << 8 | $1 } : pairs.map { $1 << 8 | $0 }
    guard let text = String(validating: units, as: UTF16.self) else { return nil }
    self.text = text
  }

  /// Another text in the same encoding.
  func encoded(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = isBigEndian ? [0xFE, 0xFF] : [0xFF, 0xFE]
    for unit in text.utf16 {
      let pair = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
      bytes += isBigEndian ? pair : pair.reversed()
    }
    return bytes
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
