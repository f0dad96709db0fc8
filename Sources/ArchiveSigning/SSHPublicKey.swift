import Cryptography
import DrydockErrors
import Foundation

/// A public key of OpenSSH.
struct SSHPublicKey: Sendable, Hashable {
  /// As in a line of a `.pub` file, and in SSH's formats.
  let blob: [UInt8]
  let type: String
  private let key: SignatureKey

  private static let curves = ["nistp256": "P-256", "nistp384": "P-384", "nistp521": "P-521"]
  private static let ecdsa = "ecdsa-sha2-"
  private static let shortestRSA = 2048, longestRSA = 16384

  /// The types of keys that lines begin with, also of those that are refused.
  static func isType(_ word: some StringProtocol) -> Bool {
    ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"].contains { word.hasPrefix($0) }
  }

  /// - Throws: `DrydockError` with code `badKey`.
  init(blob: [UInt8]) throws {
    var reader = SSHReader(blob)
    guard blob.count <= 1 << 14, let type = reader.text() else { throw Self.invalid }
    switch type {
    case "ssh-ed25519":
      guard let bytes = reader.string(), bytes.count == Ed25519.keyLength else { throw Self.invalid }
      key = .ed25519(bytes)
    case "ssh-rsa":
      guard let exponent = reader.unsigned(), let modulus = reader.unsigned(), exponent.count <= 8 else {
        throw Self.invalid
      }
      let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
      guard (Self.shortestRSA...Self.longestRSA).contains(bits) else {
        throw DrydockError(
          .badKey, "an RSA key has \(Self.shortestRSA) to \(Self.longestRSA) bits, and this one \(bits)")
      }
      key = .rsa(modulus: modulus, exponent: exponent)
    case _ where type.hasPrefix(Self.ecdsa):
      guard let curve = Self.curves[String(type.dropFirst(Self.ecdsa.count))],
        let name = reader.text(), type == Self.ecdsa + name, let point = reader.string(), point.first == 4
      else { throw Self.invalid }
      key = .ecdsa(curve: curve, point: point)
    default:
      let name = type.unicodeScalars.allSatisfy { ("!"..."~").contains($0) } ? String(type.prefix(60)) : "it"
      throw DrydockError(
        .badKey, "keys of the type \(name) are not supported; use ssh-ed25519, ecdsa-sha2 or ssh-rsa")
    }
    guard reader.isAtEnd else { throw Self.invalid }
    (self.blob, self.type) = (blob, type)
  }

  private static var invalid: DrydockError { DrydockError(.badKey, "the SSH key is malformed") }

  /// As `ssh-keygen -l` prints it.
  var fingerprint: String {
    let digest = (try? SHA256.hash(blob))?.bytes ?? []
    return "SHA256:" + Data(digest).base64EncodedString().prefix { $0 != "=" }
  }

  /// Whether the key made a signature of a message in SSH's form: the name of the method, and its value.
  func verifies(_ signature: [UInt8], of message: [UInt8]) throws -> Bool {
    var reader = SSHReader(signature)
    guard let method = reader.text(), let value = reader.string(), reader.isAtEnd else { return false }
    switch key {
    case .ed25519: return try method == type && key.verifies(value, of: message)
    case .rsa:
      // `ssh-rsa` is with SHA-1.
      switch method {
      case "rsa-sha2-256": return try key.verifies(value, of: message, hash: .sha256)
      case "rsa-sha2-512": return try key.verifies(value, of: message, hash: .sha512)
      default: return false
      }
    case .ecdsa(let curve, _):
      var numbers = SSHReader(value)
      guard method == type, let r = numbers.unsigned(), let s = numbers.unsigned(), numbers.isAtEnd,
        let der = SignatureKey.derSignature(r: r, s: s)
      else { return false }
      let hash: HashFunction = curve == "P-256" ? .sha256 : curve == "P-384" ? .sha384 : .sha512
      return try key.verifies(der, of: message, hash: hash)
    }
  }
}

/// A signature of `ssh-keygen -Y sign` (the format SSHSIG).
struct SSHSignature: Sendable {
  let publicKey: SSHPublicKey
  /// For what purpose it was made.
  private let namespace: String
  private let hashName: String
  private let signature: [UInt8]

  private static let magic = Array("SSHSIG".utf8)
  static let begin = "-----BEGIN SSH SIGNATURE-----"
  private static let end = "-----END SSH SIGNATURE-----"
  private static let columns = 70

  /// - Throws: `DrydockError` with code `badSignature`, or `badKey` for an unsupported key.
  init(armored text: String) throws {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map {
      $0.hasSuffix("\r") ? $0.dropLast() : $0
    }
    let body = lines.dropFirst().prefix { $0 != Self.end }
    guard lines.first.map(String.init) == Self.begin, body.count < lines.count - 1,
      lines.dropFirst(body.count + 2).allSatisfy(\.isEmpty),
      let bytes = Base64.decode(body.joined().utf8, isPadded: true)
    else { throw DrydockError.malformedSignature("its armor is invalid") }
    var reader = SSHReader(bytes)
    guard reader.bytes(Self.magic.count) == Self.magic, reader.number() == 1, let blob = reader.string(),
      let namespace = reader.text(), let reserved = reader.string(), reserved.isEmpty,
      let hashName = reader.text(), let signature = reader.string(), reader.isAtEnd
    else { throw DrydockError.malformedSignature("not a signature of ssh-keygen -Y sign") }
    publicKey = try SSHPublicKey(blob: blob)
    (self.namespace, self.hashName, self.signature) = (namespace, hashName, signature)
  }

  /// Whether its key signed the message as an archive's.
  func isValid(_ message: [UInt8]) throws -> Bool {
    guard namespace == DetachedSignature.namespace, let signed = try Self.signed(message, hashName) else {
      return false
    }
    return try publicKey.verifies(signature, of: signed)
  }

  /// What a key signs: the hash of a message, and for what purpose.
  private static func signed(_ message: [UInt8], _ hashName: String) throws -> [UInt8]? {
    let hash: [UInt8]
    switch hashName {
    case "sha512": hash = try HashFunction.sha512.hash(message)
    case "sha256": hash = try SHA256.hash(message).bytes
    default: return nil
    }
    return magic + purpose(hashName) + SSHWriter.string(hash)
  }

  /// The namespace, a reserved field, and the name of the hash.
  private static func purpose(_ hashName: String) -> [UInt8] {
    SSHWriter.string(DetachedSignature.namespace) + SSHWriter.string("") + SSHWriter.string(hashName)
  }

  /// Signs a message.
  ///
  /// - Parameter sign: makes a signature in SSH's form with the key.
  /// - Returns: the file.
  static func make(
    of message: [UInt8], by key: SSHPublicKey, _ sign: ([UInt8]) throws -> [UInt8]
  ) throws -> [UInt8] {
    let signature = try sign(signed(message, "sha512") ?? [])
    let blob =
      magic + SSHWriter.number(1) + SSHWriter.string(key.blob) + purpose("sha512")
      + SSHWriter.string(signature)
    var rest = Data(blob).base64EncodedString()[...]
    var text = begin + "\n"
    while !rest.isEmpty {
      text += rest.prefix(columns) + "\n"
      rest = rest.dropFirst(columns)
    }
    return Array((text + end + "\n").utf8)
  }
}
