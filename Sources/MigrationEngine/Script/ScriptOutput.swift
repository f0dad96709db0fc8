/// What a program writes to one stream, of which only the beginning and the end are kept.
struct ScriptOutput: Sendable {
  static let headSize = 16 << 10
  static let tailSize = 48 << 10

  private var head: [UInt8] = []
  private var tail: [UInt8] = []
  private var total = 0

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    total += bytes.count
    let first = bytes.prefix(Self.headSize - head.count)
    head.append(contentsOf: first)
    tail.append(contentsOf: bytes.dropFirst(first.count).suffix(2 * Self.tailSize))
    // It is cut now and then, not with each write.
    if tail.count > 2 * Self.tailSize { tail.removeFirst(tail.count - Self.tailSize) }
  }

  /// The text, without the line feeds at its end; what was left out is told in its place.
  var text: String {
    let end = tail.suffix(Self.tailSize)
    let leftOut = total - head.count - end.count
    var text = String(decoding: head, as: UTF8.self)
    if leftOut > 0 { text += "\n[… \(leftOut) bytes are left out …]\n" }
    text += String(decoding: end, as: UTF8.self)
    while text.last?.isNewline == true { text.removeLast() }
    return text
  }

  /// The last lines of a text.
  static func lastLines(_ text: String, _ count: Int) -> String {
    text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).suffix(count).joined(
      separator: "\n")
  }

  /// A text below a message: each line moved in.
  static func indented(_ text: String) -> String {
    text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { "  " + $0 }
      .joined(separator: "\n")
  }
}
