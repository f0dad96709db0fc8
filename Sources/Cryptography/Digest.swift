import CLibCrypto
import DrydockErrors

/// SHA-256 of bytes that arrive in pieces. After `finalize()` an instance digests the next message.
package final class SHA256 {
  private let context: OpaquePointer
  /// A failure of `update`, thrown by `finalize` so that `update` does not throw.
  private var failure: DrydockError?

  package init() throws {
    guard let context = EVP_MD_CTX_new() else { throw LibCrypto.error("starting SHA-256") }
    self.context = context
    guard EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      EVP_MD_CTX_free(context)
      throw LibCrypto.error("starting SHA-256")
    }
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Adds bytes to the message. A failure is thrown by `finalize()`.
  package func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress, failure == nil else { return }
    if EVP_DigestUpdate(context, base, bytes.count) != 1 { failure = LibCrypto.error("computing SHA-256") }
  }

  /// Ends the message and returns its digest.
  package func finalize() throws -> Digest {
    let digest = failure == nil ? Digest { EVP_DigestFinal_ex(context, $0, nil) } : nil
    if failure == nil, digest == nil { failure = LibCrypto.error("computing SHA-256") }
    let failed = failure
    failure = nil
    // A null digest means the same algorithm again.
    guard EVP_DigestInit_ex(context, nil, nil) == 1 else { throw LibCrypto.error("starting SHA-256") }
    guard let digest else { throw failed ?? LibCrypto.error("computing SHA-256") }
    return digest
  }

  package static func hash(_ bytes: UnsafeRawBufferPointer) throws -> Digest {
    // An empty buffer may have no address, which libcrypto needs.
    let digest = bytes.withMemoryRebound(to: UInt8.self) { source in
      Digest { EVP_Digest(source.baseAddress, source.count, $0, nil, EVP_sha256(), nil) }
    }
    guard let digest else { throw LibCrypto.error("computing SHA-256") }
    return digest
  }

  package static func hash(_ bytes: [UInt8]) throws -> Digest {
    try bytes.withUnsafeBytes { try hash($0) }
  }
}

extension SHA256 {
  /// The first 16 bytes of a SHA-256, as two big-endian numbers: enough where there are very many.
  package struct Half: Hashable, Sendable {
    package let high, low: UInt64

    package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
  }

  /// The 32 bytes of a SHA-256. As text, and in JSON, 64 lower-case hexadecimal digits.
  package struct Digest: Hashable, Sendable, Codable, CustomStringConvertible {
    package static let byteCount = 32
    package static let zero = Digest(first32: Array(repeating: 0, count: byteCount))

    // Four words instead of an array, since a million entries have a million digests.
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// A digest from its 32 bytes; nil when there are more or fewer.
    package init?(bytes: some Collection<UInt8>) {
      guard bytes.count == Self.byteCount else { return nil }
      self.init(first32: Array(bytes))
    }

    /// A digest from 64 lower-case hexadecimal digits; nil for anything else.
    package init?(hex: String) {
      guard hex.utf8.allSatisfy(\.isLowercaseHexDigit), let bytes = [UInt8](hex: hex.utf8) else { return nil }
      self.init(bytes: bytes)
    }

    /// A digest that libcrypto writes; nil when it does not return 1. There are millions: no array is made for each.
    fileprivate init?(written write: (UnsafeMutablePointer<UInt8>?) -> Int32) {
      var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
      let result = withUnsafeMutableBytes(of: &words) {
        write($0.baseAddress?.assumingMemoryBound(to: UInt8.self))
      }
      guard result == 1 else { return nil }
      self.words = (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
    }

    /// Expects at least 32 bytes.
    init(first32 bytes: [UInt8]) {
      func word(_ index: Int) -> UInt64 {
        bytes[index * 8..<index * 8 + 8].reduce(0) { $0 << 8 | UInt64($1) }
      }
      words = (word(0), word(1), word(2), word(3))
    }

    package var firstHalf: Half { Half(high: words.0, low: words.1) }

    package var bytes: [UInt8] {
      [words.0, words.1, words.2, words.3].flatMap { word in
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> UInt64($0)) }
      }
    }

    package var hex: String { bytes.hex }

    package var description: String { hex }

    package static func == (left: Self, right: Self) -> Bool { left.words == right.words }

    package func hash(into hasher: inout Hasher) {
      hasher.combine(words.0)
      hasher.combine(words.1)
      hasher.combine(words.2)
      hasher.combine(words.3)
    }

    /// Reads the hexadecimal text. Throws `DecodingError` for anything else.
    package init(from decoder: any Decoder) throws {
      guard let digest = Self(hex: try String(from: decoder)) else {
        throw DecodingError.dataCorrupted(
          .init(
            codingPath: decoder.codingPath,
            debugDescription: "a SHA-256 has 64 lower-case hexadecimal digits"))
      }
      self = digest
    }

    package func encode(to encoder: any Encoder) throws { try hex.encode(to: encoder) }
  }
}

/// The hash functions of other programs' formats, in keys and signatures; Drydock's own use ``SHA256``.
package enum HashFunction: Sendable {
  case sha1, sha256, sha384, sha512
  /// BLAKE2b with 64 bytes.
  case blake2b

  var algorithm: OpaquePointer? {
    switch self {
    case .sha1: EVP_sha1()
    case .sha256: EVP_sha256()
    case .sha384: EVP_sha384()
    case .sha512: EVP_sha512()
    case .blake2b: EVP_blake2b512()
    }
  }

  package func hash(_ bytes: [UInt8]) throws -> [UInt8] {
    var result = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    guard EVP_Digest(bytes, bytes.count, &result, &count, algorithm, nil) == 1 else {
      throw LibCrypto.error("computing a hash")
    }
    return Array(result.prefix(Int(count)))
  }
}
