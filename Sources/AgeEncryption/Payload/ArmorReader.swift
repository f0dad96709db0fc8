import DrydockErrors

/// Takes the ASCII armor off an age file: base64 in lines of 64 columns between two marks, as strict as RFC 7468 has
/// it, with LF or CRLF and blank space around.
final class ArmorReader {
  private static let columns = 64
  private static let bytesPerLine = 48
  /// The most blank space before and after, as the age program has it.
  private static let maximumBlank = 1024
  private static let first = Array("-----BEGIN AGE ENCRYPTED FILE-----".utf8)
  private static let last = Array("-----END AGE ENCRYPTED FILE-----".utf8)

  private enum State {
    case before
    case lines
    /// A line that is not full was the last one.
    case lastLine
    case after
  }

  private let source: BufferedSource
  private var state = State.before

  init(_ source: BufferedSource) { self.source = source }

  /// Whether a file is armored, by its start: a binary one begins with a letter.
  static func isPresent(_ source: BufferedSource) throws -> Bool {
    try source.next(maximumBlank + 1).first { !isBlank($0) } == UInt8(ascii: "-")
  }

  /// Fills the buffer, which must have room for a line, with what was armored; 0 at the end.
  ///
  /// - Throws: `DrydockError` (`.armor`), or what the source throws.
  func read(into target: UnsafeMutableRawBufferPointer) throws -> Int {
    if state == .before { try begin() }
    var count = 0
    while target.count - count >= Self.bytesPerLine, let bytes = try nextBytes() {
      UnsafeMutableRawBufferPointer(rebasing: target[count...]).copyBytes(from: bytes)
      count += bytes.count
    }
    return count
  }

  /// Skips blank lines and the line that starts the armor.
  private func begin() throws {
    var blank = 0
    while true {
      let line = try nextLine()
      if line.elementsEqual(Self.first) { break }
      guard line.allSatisfy(Self.isBlank) else {
        throw DrydockError.armor("it does not start with the line -----BEGIN AGE ENCRYPTED FILE-----")
      }
      blank += line.count + 1
      guard blank <= Self.maximumBlank else {
        throw DrydockError.armor("there are more than \(Self.maximumBlank) blank characters before it")
      }
    }
    state = .lines
  }

  /// The bytes of the next line; nil at the end.
  private func nextBytes() throws -> [UInt8]? {
    guard state != .after else { return nil }
    let line = try nextLine()
    if line.elementsEqual(Self.last) {
      state = .after
      try checkTail()
      return nil
    }
    guard state == .lines else {
      throw DrydockError.armor("a line that is not full is followed by something else than the end line")
    }
    guard !line.isEmpty, line.count % 4 == 0, line.count <= Self.columns else {
      throw DrydockError.armor("a line is empty, longer than 64 columns, or no whole base64")
    }
    let padding = line.suffix(2).count { $0 == UInt8(ascii: "=") }
    guard let bytes = Base64.decode(line.dropLast(padding)) else {
      throw DrydockError.armor("a line is not canonical base64")
    }
    if bytes.count < Self.bytesPerLine { state = .lastLine }
    return bytes
  }

  /// Behind the end line only blank space may come, and not much.
  private func checkTail() throws {
    let tail = try source.next(Self.maximumBlank + 1)
    guard tail.allSatisfy(Self.isBlank) else { throw DrydockError.armor("something follows its end line") }
    guard tail.count <= Self.maximumBlank else {
      throw DrydockError.armor("there are more than \(Self.maximumBlank) blank characters behind it")
    }
    source.skip(tail.count)
  }

  /// The next line without its line break, LF or CRLF. Only the last one may have none.
  private func nextLine() throws -> [UInt8] {
    let limit = Self.maximumBlank + 2
    let bytes = try source.next(limit).prefix(limit)
    guard !bytes.isEmpty else { throw DrydockError.armor("it ends before its end line") }
    let end = bytes.firstIndex(of: UInt8(ascii: "\n"))
    guard end != nil || bytes.count < limit else {
      throw DrydockError.armor("a line is longer than 64 columns")
    }
    let line = Array(bytes[..<(end ?? bytes.endIndex)])
    source.skip(line.count + (end == nil ? 0 : 1))
    return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
  }

  private static func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
