import CLibCrypto

/// Secret bytes: a key, a passphrase, a decrypted value. They are wiped when the last reference is released, never shown
/// by `print`, and compared in constant time.
///
/// Unchecked: the memory is written before `init` returns and not again until `deinit`, which the compiler cannot see.
public final class SecretBytes: @unchecked Sendable {
  private let memory: UnsafeMutableRawBufferPointer

  /// `count` bytes, zeroed and then filled by `fill`.
  package init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    // libcrypto needs an address even for an empty secret.
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
    _ = room.initializeMemory(as: UInt8.self, repeating: 0)
    memory = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
    try fill(memory)
  }

  /// Copies bytes. The array is left unchanged: use `init(wiping:)` for one that holds a secret.
  public convenience init(_ bytes: [UInt8]) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  /// Copies the bytes of an array and zeroes the array.
  package convenience init(wiping bytes: inout [UInt8]) {
    self.init(bytes)
    bytes.withUnsafeMutableBytes { LibCrypto.wipe($0) }
  }

  package convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  deinit {
    LibCrypto.wipe(memory)
    memory.baseAddress?.deallocate()
  }

  /// The number of bytes.
  public var count: Int { memory.count }

  /// Whether the bytes are UTF-8 text.
  public var isText: Bool { withBytes { String(validating: $0, as: UTF8.self) != nil } }

  /// Lends the bytes to `body` for the duration of the call. A copy is the caller's to wipe.
  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(memory)) }
  }
}

extension SecretBytes: Equatable {
  /// The time it takes depends on their lengths only.
  public static func == (left: SecretBytes, right: SecretBytes) -> Bool {
    guard left.count == right.count else { return false }
    return left.withBytes { one in
      right.withBytes { CRYPTO_memcmp(one.baseAddress, $0.baseAddress, one.count) == 0 }
    }
  }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The number of bytes only.
  public var description: String { "(secret, \(count) bytes)" }

  public var debugDescription: String { description }

  /// Empty, so that `dump` shows no secret.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Shows whether secrets are equal without showing them: the same instance gives equal bytes equal fingerprints. Its key
/// is random, so a fingerprint alone reveals nothing.
package struct Fingerprint: Sendable {
  private let key: SecretBytes

  package init() throws { key = try RandomBytes.secret(32) }

  /// The first 8 hexadecimal digits of HMAC-SHA256; `????????` if libcrypto fails.
  package func text(of bytes: UnsafeRawBufferPointer) -> String {
    guard let code = try? LibCrypto.hmac(bytes, key: key), let digest = SHA256.Digest(bytes: code) else {
      return "????????"
    }
    return String(digest.hex.prefix(8))
  }

  package func text(of secret: SecretBytes) -> String { secret.withBytes { text(of: $0) } }
}
