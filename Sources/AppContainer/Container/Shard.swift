import Cryptography
import DrydockErrors

/// One of several parts of a set of names. Every name is in exactly one of them, whatever the machine and the order, so that
/// jobs which know only their number share the work.
package struct Shard: Sendable, Hashable, CustomStringConvertible {
  /// From 1 to ``count``.
  package let index: Int
  package let count: Int

  /// - Throws: ``DrydockError`` with code `usage` for numbers that name no part.
  package init(_ index: Int, of count: Int) throws {
    guard count > 0, (1...count).contains(index) else {
      throw DrydockError(
        .usage, "the shard \(index)/\(count) does not exist: the first number is from 1 to the second")
    }
    (self.index, self.count) = (index, count)
  }

  /// A text such as `3/8`; nil for any other.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let index = Self.number(parts[0]), let count = Self.number(parts[1]),
      let shard = try? Shard(index, of: count)
    else { return nil }
    self = shard
  }

  /// Digits alone: `Int` also takes a sign.
  package static func number(_ text: some StringProtocol) -> Int? {
    text.utf8.allSatisfy { $0.isDigit } ? Int(text) : nil
  }

  package var description: String { "\(index)/\(count)" }

  /// The part that a name is in: its hash modulo the number of parts, counted from 1.
  package func contains(_ name: String) -> Bool { Self.hash(name) % UInt64(count) == UInt64(index - 1) }

  /// The first 8 bytes of the SHA-256 of a name's UTF-8, as a big-endian number. It is documented, for other programs.
  package static func hash(_ name: String) -> UInt64 {
    // Only an allocation of the cryptographic library can fail, and then nothing else works either.
    guard let digest = try? SHA256.hash(Array(name.utf8)) else { return 0 }
    return digest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
