import TestSupport

/// Content to encrypt.
enum Samples {
  /// Bytes that are the same for the same size.
  static func bytes(_ size: Int) -> [UInt8] {
    var random = SeededRandom(seed: UInt64(size))
    return random.bytes(size)
  }
}
