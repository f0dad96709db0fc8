import AgeEncryption
import TestSupport

/// Writes in pieces of random sizes.
enum Streaming {
  /// Seals content through `AgeWriter`, which gets pieces of 0 bytes up to `limit`.
  static func seal(
    _ plain: [UInt8], to target: AgeTarget, upTo limit: Int, _ random: inout SeededRandom
  ) throws -> [UInt8] {
    var file: [UInt8] = []
    let writer = try AgeWriter(to: target) { file.append(contentsOf: $0) }
    var rest = plain[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(Int.random(in: 0...limit, using: &random)))
      try piece.withUnsafeBytes { try writer.write($0) }
      rest = rest.dropFirst(piece.count)
    }
    try writer.finish()
    return file
  }
}
