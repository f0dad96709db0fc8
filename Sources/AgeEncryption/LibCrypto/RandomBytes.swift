import CLibCrypto
import DrydockErrors

/// Random bytes fit for keys and identifiers.
package enum RandomBytes {
  /// That many bytes from libcrypto's generator. Throws `DrydockError` when it has no entropy, or for a negative
  /// or absurd count.
  package static func make(_ count: Int) throws -> [UInt8] {
    guard let length = Int32(exactly: count), length >= 0 else {
      throw DrydockError(.badKey, "cannot make \(count) random bytes: ask for a count from 0 to \(Int32.max)")
    }
    var bytes = [UInt8](repeating: 0, count: count)
    guard RAND_bytes(&bytes, length) == 1 else { throw LibCrypto.error("making random bytes") }
    return bytes
  }

  /// The same for keys, from the generator that libcrypto keeps for them.
  static func secret(_ count: Int) throws -> SecretBytes {
    try SecretBytes(count: count) { memory in
      let base = memory.baseAddress?.assumingMemoryBound(to: UInt8.self)
      guard RAND_priv_bytes(base, Int32(memory.count)) == 1 else { throw LibCrypto.error("making a key") }
    }
  }
}
