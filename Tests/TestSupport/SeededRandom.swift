import Foundation

/// Random numbers that are the same for the same seed on every machine (SplitMix64), so that a failing test can
/// be run again as it was.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// A generator whose numbers follow from the seed alone.
  public init(seed: UInt64) {
    state = seed
  }

  /// The next 64 bits.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  /// Bytes that compress badly.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
      // Without the optimizer generic functions for each number would cost more than the tests that use them.
      guard var next = UnsafeMutableRawPointer(bytes.baseAddress) else { return }
      while filled < count {
        var number = self.next()
        let size = count - filled < 8 ? count - filled : 8
        memcpy(next, &number, size)
        next += size
        filled += size
      }
    }
  }

  /// Bytes that are the same each time.
  public static func noise(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
    var random = SeededRandom(seed: seed)
    return random.bytes(count)
  }
}
