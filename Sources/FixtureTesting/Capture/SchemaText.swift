import ContainerDiff

/// The SQL of a schema, taken apart into names, texts and remarks.
struct SchemaText {
  /// A piece of it.
  enum Piece {
    /// A word or a quoted name, without its quotes.
    case name(String, source: String)
    /// A text, without its quotes.
    case text(String)
    /// A remark, with what begins and ends it.
    case remark(String)
    /// All else.
    case other(String)
  }

  private(set) var pieces: [Piece] = []
  private let bytes: [UInt8]
  private var index = 0

  init(_ sql: String) {
    bytes = Array(sql.utf8)
    while index < bytes.count { pieces.append(next()) }
  }

  private mutating func next() -> Piece {
    switch bytes[index] {
    case UInt8(ascii: "'"): return .text(quoted("'").content)
    case UInt8(ascii: "\""): return name("\"")
    case UInt8(ascii: "`"): return name("`")
    case UInt8(ascii: "["):
      let end = bytes[index...].firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } ?? bytes.count
      let source = take(end - index)
      return .name(String(source.dropFirst().dropLast()), source: source)
    case UInt8(ascii: "-") where bytes[index...].starts(with: "--".utf8):
      return .remark(take((bytes[index...].firstIndex(of: 0x0A) ?? bytes.count) - index))
    case UInt8(ascii: "/") where bytes[index...].starts(with: "/*".utf8):
      var end = index + 2
      while end < bytes.count, !bytes[end...].starts(with: "*/".utf8) { end += 1 }
      return .remark(take(min(end + 2, bytes.count) - index))
    case let byte where Self.isWord(byte):
      let word = take(bytes[index...].prefix(while: Self.isWord).count)
      return .name(word, source: word)
    default: return .other(take(1))
    }
  }

  private mutating func name(_ quote: String) -> Piece {
    let start = index
    let content = quoted(quote).content
    return .name(content, source: String(decoding: bytes[start..<index], as: UTF8.self))
  }

  private mutating func quoted(_ quote: String) -> (content: String, isClosed: Bool) {
    let mark = bytes[index]
    let start = index + 1
    index = start
    while index < bytes.count {
      if bytes[index] == mark {
        guard index + 1 < bytes.count, bytes[index + 1] == mark else { break }
        index += 1
      }
      index += 1
    }
    let content = String(decoding: bytes[start..<min(index, bytes.count)], as: UTF8.self)
    let isClosed = index < bytes.count
    index = min(index + 1, bytes.count)
    return (content.replacing(quote + quote, with: quote), isClosed)
  }

  private mutating func take(_ count: Int) -> String {
    defer { index += count }
    return String(decoding: bytes[index..<(index + count)], as: UTF8.self)
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte >= 0x80 || (byte >= 0x30 && byte <= 0x39)
      || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
  }
}
