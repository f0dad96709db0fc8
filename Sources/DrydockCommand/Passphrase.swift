import Drydock
import Foundation

/// Passphrases, from files and from a person at a terminal.
enum Passphrase {
  private static let limit = 4096

  /// The one line of a file.
  static func read(_ file: String) throws -> SecretBytes {
    try SecretFile.read(file, limit: limit).withBytes { bytes in
      let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
      let rest = bytes[line.endIndex...]
      guard !line.isEmpty, rest.isEmpty || rest.elementsEqual("\n".utf8) || rest.elementsEqual("\r\n".utf8)
      else {
        throw UsageError(
          message: "\(file) is no passphrase file: it has one line, the passphrase, and no more")
      }
      return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: line))
    }
  }

  /// Whether there is a person to ask.
  static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

  /// Asks without showing what is typed.
  static func ask(_ question: String) throws -> SecretBytes {
    // Silent before it asks: whoever answers at once must not be seen, nor lose what was typed.
    try withoutEcho {
      StandardStreams.note("\(question): ")
      defer { StandardStreams.note("\n") }
      return try readLine()
    }
  }

  /// Asks for a new one, twice: a slip would lock everybody out.
  static func askTwice() throws -> SecretBytes {
    let first = try ask("passphrase for the archive")
    let second = try ask("the same passphrase again")
    guard first == second else {
      throw UsageError(message: "the two passphrases are not the same; nothing was written, run it again")
    }
    return first
  }

  // MARK: The terminal

  /// Runs a body with a terminal that shows nothing and hands over every key, those that would stop the program too: it
  /// must not end with a terminal that stays silent.
  private static func withoutEcho<T>(_ body: () throws -> T) throws -> T {
    var before = termios()
    guard tcgetattr(STDIN_FILENO, &before) == 0 else {
      throw UsageError(message: "the terminal cannot be asked for a passphrase; give it in a file")
    }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
    defer { tcsetattr(STDIN_FILENO, TCSAFLUSH, &before) }
    return try body()
  }

  private static func readLine() throws -> SecretBytes {
    var count = 0
    let line = try SecretBytes(count: limit) { line in
      while count < line.count {
        guard let key = line.baseAddress, Foundation.read(STDIN_FILENO, key + count, 1) == 1 else {
          throw givenUp
        }
        switch line[count] {
        case UInt8(ascii: "\r"), UInt8(ascii: "\n"): return
        case 0x03, 0x04, 0x1A, 0x1C: throw givenUp  // control and C, D, Z, \
        case 0x15: count = 0  // control and U: all of it
        case 0x08, 0x7F:  // backspace: one letter, which may have several bytes
          while count > 0, line[count - 1] & 0xC0 == 0x80 { count -= 1 }
          count = max(0, count - 1)
        default: count += 1
        }
      }
    }
    guard count > 0 else { throw givenUp }
    return line.withBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }

  private static let givenUp = UsageError(message: "no passphrase was given; nothing was done")
}
