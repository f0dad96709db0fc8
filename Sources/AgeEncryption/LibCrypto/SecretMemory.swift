import CLibCrypto

extension LibCrypto {
  /// Overwrites memory in a way that no optimizer leaves out.
  static func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    OPENSSL_cleanse(base, bytes.count)
  }

  /// Gives memory for secrets on their way, set to zero, and wipes it afterwards.
  static func withScratch<Result>(
    _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { scratch in
      _ = scratch.initializeMemory(as: UInt8.self, repeating: 0)
      defer { wipe(scratch) }
      return try body(scratch)
    }
  }
}
