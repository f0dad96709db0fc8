import DrydockErrors

/// Reads the text of a header, line by line, as strictly as the specification has it.
struct HeaderParser {
  private let bytes: UnsafeRawBufferPointer
  /// Whether the file ends with these bytes. Otherwise there may be more to come.
  private let isWhole: Bool
  private var position = 0

  /// There is no more of the header at hand.
  private struct Incomplete: Error {}

  private init(_ bytes: UnsafeRawBufferPointer, isWhole: Bool) {
    self.bytes = bytes
    self.isWhole = isWhole
  }

  /// The header that `bytes` start with; nil when it goes on behind them.
  static func parse(_ bytes: UnsafeRawBufferPointer, isWhole: Bool) throws -> AgeHeader? {
    var parser = HeaderParser(bytes, isWhole: isWhole)
    do {
      return try parser.header()
    } catch is Incomplete {
      guard bytes.count < AgeHeader.maximumLength else {
        throw DrydockError.header("it is longer than \(AgeHeader.maximumLength) bytes")
      }
      return nil
    }
  }

  private mutating func header() throws -> AgeHeader {
    try version()
    var stanzas: [Stanza] = []
    while true {
      let start = position
      let line = try nextLine("a stanza or the line with the authentication code")
      if line.starts(with: Stanza.prefix) {
        guard stanzas.count < AgeHeader.maximumStanzas else {
          throw DrydockError.header("it has more than \(AgeHeader.maximumStanzas) stanzas")
        }
        stanzas.append(try stanza(line.dropFirst(Stanza.prefix.count)))
      } else if line.starts(with: AgeHeader.endMark) {
        let mac = try authenticationCode(line)
        let authenticated = Array(bytes[..<(start + AgeHeader.endMark.count)])
        return try AgeHeader(stanzas, authenticated: authenticated, mac: mac, byteCount: position)
      } else {
        throw DrydockError.header("a line is neither a stanza nor the end of the header")
      }
    }
  }

  private mutating func version() throws {
    let expected = AgeHeader.version
    guard bytes.prefix(expected.count).elementsEqual(expected.prefix(bytes.count)) else {
      throw DrydockError.header("it does not begin with the line age-encryption.org/v1")
    }
    _ = try nextLine("the version")
  }

  /// A type and its arguments, and the body on the lines that follow.
  private mutating func stanza(_ line: Slice<UnsafeRawBufferPointer>) throws -> Stanza {
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard words.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x21...0x7E).contains($0) } }) else {
      throw DrydockError.header(
        "the arguments of a stanza are not printable words with one space between them")
    }
    let texts = words.map { String(decoding: $0, as: UTF8.self) }
    return Stanza(type: texts[0], arguments: Array(texts.dropFirst()), body: try body())
  }

  private mutating func body() throws -> [UInt8] {
    var body: [UInt8] = []
    while true {
      let line = try nextLine("the body of a stanza")
      guard line.count <= Stanza.columns else {
        throw DrydockError.header("a line of a stanza's body is longer than 64 columns")
      }
      guard let part = Base64.decode(line) else {
        throw DrydockError.header(
          "the body of a stanza is not canonical base64, or does not end with a short line")
      }
      body += part
      if line.count < Stanza.columns { return body }
    }
  }

  private func authenticationCode(_ line: Slice<UnsafeRawBufferPointer>) throws -> [UInt8] {
    let text = line.dropFirst(AgeHeader.endMark.count)
    guard text.first == UInt8(ascii: " "), let mac = Base64.decode(text.dropFirst()), mac.count == 32 else {
      throw DrydockError.header("the authentication code is not one space and 32 bytes in canonical base64")
    }
    return mac
  }

  /// The next line without its line feed. A carriage return stays in it, where every rule refuses it.
  private mutating func nextLine(_ what: String) throws -> Slice<UnsafeRawBufferPointer> {
    guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else {
      guard isWhole else { throw Incomplete() }
      throw DrydockError.header("it ends within \(what)")
    }
    guard end < AgeHeader.maximumLength else {
      throw DrydockError.header("it is longer than \(AgeHeader.maximumLength) bytes")
    }
    defer { position = end + 1 }
    return bytes[position..<end]
  }
}
