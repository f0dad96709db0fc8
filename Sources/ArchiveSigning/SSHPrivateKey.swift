import Cryptography
import DrydockErrors
import Foundation

/// A private key file of OpenSSH. Its public half is readable also in an encrypted one.
struct SSHPrivateKey: Sendable {
  let publicKey: SSHPublicKey
  /// The seed of an Ed25519 key; nil for an encrypted key, or one of another type, which `ssh-agent` has to sign with.
  let seed: SecretBytes?

  static let begin = Array("-----BEGIN OPENSSH PRIVATE KEY-----".utf8)
  private static let end = Array("-----END OPENSSH PRIVATE KEY-----".utf8)
  private static let magic = Array("openssh-key-v1\0".utf8)

  /// - Throws: `DrydockError` with code `badKey`, which never repeats the text.
  init(_ file: UnsafeRawBufferPointer, path: String) throws {
    guard let bytes = Self.decoded(file) else { throw Self.invalid(path) }
    var fields = SSHReader(bytes)
    guard fields.bytes(Self.magic.count) == Self.magic, let cipher = fields.string(),
      fields.string() != nil, fields.string() != nil, fields.number() == 1,
      let blob = fields.string(), let sealed = fields.secret()
    else { throw Self.invalid(path) }
    publicKey = try DrydockError.locating(path) { try SSHPublicKey(blob: blob) }
    guard cipher.elementsEqual("none".utf8), publicKey.type == "ssh-ed25519" else {
      seed = nil
      return
    }
    var inner = SSHReader(sealed)
    guard let check = inner.number(), inner.number() == check, inner.string() == Array(publicKey.type.utf8),
      inner.string() != nil, let secret = inner.secret(), secret.count == 64, let seed = secret.part(0..<32),
      let blob = try? Self.blob(of: seed), blob == publicKey.blob
    else { throw Self.invalid(path) }
    self.seed = seed
  }

  private static func blob(of seed: SecretBytes) throws -> [UInt8] {
    SSHWriter.string("ssh-ed25519") + SSHWriter.string(try Ed25519.publicKey(of: seed))
  }

  private static func decoded(_ file: UnsafeRawBufferPointer) -> SecretBytes? {
    var count = file.count
    while count > 0, file[count - 1] == UInt8(ascii: "\n") || file[count - 1] == UInt8(ascii: "\r") {
      count -= 1
    }
    let text = file[..<count]
    guard text.count >= begin.count + end.count, text.starts(with: begin),
      text.suffix(end.count).elementsEqual(end)
    else { return nil }
    return SecretBytes.decodingBase64(
      UnsafeRawBufferPointer(rebasing: text.dropFirst(begin.count).dropLast(end.count)))
  }

  private static func invalid(_ path: String) -> DrydockError {
    DrydockError(.badKey, "the OpenSSH key file is damaged, or of an unsupported kind", path: path)
  }

  /// A signature in SSH's form.
  static func sign(_ message: [UInt8], _ seed: SecretBytes) throws -> [UInt8] {
    SSHWriter.string("ssh-ed25519") + SSHWriter.string(try Ed25519.sign(message, seed: seed))
  }
}
