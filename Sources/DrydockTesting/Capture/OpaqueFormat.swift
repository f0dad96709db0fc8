/// Formats that hide their content.
enum OpaqueFormat {
  private static let beginnings: [(String, [UInt8])] = [
    ("gzip", [0x1F, 0x8B, 0x08]), ("zip", [0x50, 0x4B, 0x03, 0x04]), ("zstd", [0x28, 0xB5, 0x2F, 0xFD]),
    ("xz", [0xFD, 0x37, 0x7A, 0x58, 0x5A]), ("bzip2", Array("BZh".utf8)), ("7z", [0x37, 0x7A, 0xBC, 0xAF]),
    ("rar", Array("Rar!".utf8)), ("lz4", [0x04, 0x22, 0x4D, 0x18]), ("PDF", Array("%PDF-".utf8)),
    ("age", Array("age-encryption.org/".utf8)), ("Apple's archive format", Array("AA01".utf8)),
    ("an SQLite database", Array("SQLite format 3".utf8)), ("an SQLite log", [0x37, 0x7F, 0x06]),
    ("LZFSE", Array("bvx".utf8)), ("UTF-16", [0xFF, 0xFE]), ("UTF-16", [0xFE, 0xFF]),
  ]

  /// The format that data begins as; nil for what can be searched.
  static func name(of bytes: [UInt8]) -> String? {
    if let found = beginnings.first(where: { bytes.starts(with: $0.1) }) { return found.0 }
    // A zlib stream: its first two bytes are a number that 31 divides.
    let isZlib = bytes.count > 10 && bytes[0] == 0x78 && (Int(bytes[0]) << 8 | Int(bytes[1])) % 31 == 0
    return isZlib ? "zlib" : nil
  }

  /// The readable texts in binary data: eight characters and more, of one byte or of two.
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
