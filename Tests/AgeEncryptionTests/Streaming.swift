import AgeEncryption
import TestSupport

/// Streams in memory that give and take pieces of random sizes.
enum Streaming {
  /// Opens a file through `AgeStream`, which gets pieces of 1 byte up to `limit`.
  static func open(
    _ file: [UInt8], _ keys: AgeKeys, upTo limit: Int, _ random: inout SeededRandom
  ) throws -> [UInt8] {
    var position = 0
    var sizes = random
    let stream = try AgeStream(keys: keys) { target in
      let count = min(Int.random(in: 1...limit, using: &sizes), target.count, file.count - position)
      target.copyBytes(from: file[position..<(position + count)])
      position += count
      return count
    }
    var plain: [UInt8] = []
    while true {
      var piece = [UInt8](repeating: 0, count: Int.random(in: 1...(2 * limit), using: &random))
      let count = try piece.withUnsafeMutableBytes { try stream.read(into: $0) }
      if count == 0 { return plain }
      plain += piece[..<count]
    }
  }

  /// Seals content through `AgeWriter`, which gets pieces of 0 bytes up to `limit`.
  static func seal(
    _ plain: [UInt8], to lock: AgeLock, upTo limit: Int, _ random: inout SeededRandom
  ) throws -> [UInt8] {
    var file: [UInt8] = []
    let writer = try AgeWriter(to: lock) { file.append(contentsOf: $0) }
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
