import Cryptography
import DrydockErrors
import Formats

/// The name of one run over many containers, in the records of all its transactions, so that they can be found together.
public struct RunID: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Such as `4711`, or 16 hexadecimal digits.
  public let description: String

  /// The name that a user or a scheduler gave a run.
  ///
  /// - Throws: `DrydockError` with code `usage` unless it has 1 to 64 letters, digits, `.`, `_` and `-`, the first one a letter or
  ///   a digit.
  public init(_ text: String) throws {
    guard Self.isWellFormed(text) else {
      throw DrydockError(
        .usage,
        "not the name of a run: 1 to 64 letters, digits, `.`, `_` and `-`, and the first one a letter or a digit"
      )
    }
    description = text
  }

  /// A random name.
  package static func new() throws -> RunID {
    try RunID(RandomBytes.make(8).hex)
  }

  private static func isWellFormed(_ text: String) -> Bool {
    func isWord(_ byte: UInt8) -> Bool { byte.isLetter || byte.isDigit }
    return (1...64).contains(text.utf8.count) && text.utf8.first.map(isWord) == true
      && text.utf8.allSatisfy { isWord($0) || "._-".utf8.contains($0) }
  }

  public init(from decoder: any Decoder) throws {
    description = try decoder.text("the name of a run", Self.isWellFormed)
  }

  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}
