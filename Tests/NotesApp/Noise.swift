/// Bytes that compress badly, the same for the same seed.
struct Noise {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled + 8 <= count {
        UnsafeMutableRawPointer(buffer.baseAddress)?.storeBytes(
          of: next(), toByteOffset: filled, as: UInt64.self)
        filled += 8
      }
      while filled < count {
        buffer[filled] = UInt8(truncatingIfNeeded: next())
        filled += 1
      }
    }
  }
}
