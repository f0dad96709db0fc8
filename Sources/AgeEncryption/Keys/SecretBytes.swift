import CLibCrypto

/// Bytes that nobody else may see: a key, a passphrase, a decrypted value. They are wiped when the last owner lets
/// go, never shown by `print`, and compared in constant time.
///
/// Unchecked because the compiler cannot see it: the memory is written before `init` returns, and never again until
/// `deinit`.
package final class SecretBytes: @unchecked Sendable {
  private let memory: UnsafeMutableRawBufferPointer

  /// Memory of `count` bytes, set to zero and then filled by `fill`.
  ///
  /// - Throws: what `fill` throws.
  package init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    // One byte for nothing: an empty secret has an address too, which libcrypto wants.
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
    _ = room.initializeMemory(as: UInt8.self, repeating: 0)
    memory = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
    try fill(memory)
  }

  /// A copy of bytes. The array stays as it is: use `init(wiping:)` for one that holds a secret.
  package convenience init(_ bytes: [UInt8]) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  /// The bytes of an array, which is wiped: it holds zeros afterwards.
  package convenience init(wiping bytes: inout [UInt8]) {
    self.init(bytes)
    bytes.withUnsafeMutableBytes { LibCrypto.wipe($0) }
  }

  /// A copy of bytes in memory.
  package convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  deinit {
    LibCrypto.wipe(memory)
    memory.baseAddress?.deallocate()
  }

  /// How many bytes there are.
  package var count: Int { memory.count }

  /// Lends the bytes to `body`, for the time of the call. Who copies them has to wipe the copy.
  package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(memory)) }
  }
}

extension SecretBytes: Equatable {
  /// Whether two secrets are the same. The time it takes tells their lengths and nothing else.
  package static func == (left: SecretBytes, right: SecretBytes) -> Bool {
    guard left.count == right.count else { return false }
    return left.withBytes { one in
      right.withBytes { CRYPTO_memcmp(one.baseAddress, $0.baseAddress, one.count) == 0 }
    }
  }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The number of bytes, and nothing of them.
  package var description: String { "(secret, \(count) bytes)" }

  /// The number of bytes, and nothing of them.
  package var debugDescription: String { description }

  /// Nothing: what dumps values shows no secret.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
