import Cryptography
import DrydockErrors

/// The ASCII armor around an age file: base64 in lines of 64 columns between two marks, as strict as RFC 7468 demands,
/// with LF or CRLF line breaks and blank space around it.
enum Armor {
  private static let columns = 64
  private static let bytesPerLine = 48
  /// The most blank space before and after, as in the age program.
  private static let maximumBlank = 1024
  static let begin = Array("-----BEGIN AGE ENCRYPTED FILE-----".utf8)
  private static let end = Array("-----END AGE ENCRYPTED FILE-----".utf8)

  /// Whether a file is armored, judged by its start: a binary one begins with a letter.
  static func isPresent(in file: [UInt8]) -> Bool {
    file.first { !isBlank($0) } == UInt8(ascii: "-")
  }

  /// The binary file inside the armor. Throws `DrydockError` (`.armor`).
  static func decode(_ file: [UInt8]) throws -> [UInt8] {
    var rest = file[...]
    try skipBegin(&rest)
    var binary: [UInt8] = []
    binary.reserveCapacity(rest.count / 4 * 3)
    var isLastLine = false
    while case let line = try nextLine(&rest), line != end {
      guard !isLastLine else {
        throw DrydockError.armor("a short line is not followed by the end line")
      }
      guard !line.isEmpty, line.count % 4 == 0, line.count <= columns else {
        throw DrydockError.armor("a line is empty, longer than 64 columns, or not whole base64")
      }
      let padding = line.suffix(2).count { $0 == UInt8(ascii: "=") }
      guard let bytes = Base64.decode(line.dropLast(padding)) else {
        throw DrydockError.armor("a line is not canonical base64")
      }
      binary += bytes
      isLastLine = bytes.count < bytesPerLine
    }
    guard rest.allSatisfy(isBlank) else { throw DrydockError.armor("data follows its end line") }
    guard rest.count <= maximumBlank else {
      throw DrydockError.armor("more than \(maximumBlank) blank characters follow it")
    }
    return binary
  }

  /// Skips blank lines and the line that starts the armor.
  private static func skipBegin(_ rest: inout ArraySlice<UInt8>) throws {
    var blank = 0
    while case let line = try nextLine(&rest), line != begin {
      guard line.allSatisfy(isBlank) else {
        throw DrydockError.armor("it does not start with the line -----BEGIN AGE ENCRYPTED FILE-----")
      }
      blank += line.count + 1
      guard blank <= maximumBlank else {
        throw DrydockError.armor("more than \(maximumBlank) blank characters precede it")
      }
    }
  }

  /// The next line without its line break, LF or CRLF. Only the last one may have none.
  private static func nextLine(_ rest: inout ArraySlice<UInt8>) throws -> [UInt8] {
    let limit = maximumBlank + 2
    guard !rest.isEmpty else { throw DrydockError.armor("its end line is missing") }
    let end = rest.prefix(limit).firstIndex(of: UInt8(ascii: "\n"))
    guard end != nil || rest.count < limit else {
      throw DrydockError.armor("a line is longer than 64 columns")
    }
    let line = Array(rest[..<(end ?? rest.endIndex)])
    rest = rest[(end.map { $0 + 1 } ?? rest.endIndex)...]
    return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
  }

  private static func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
