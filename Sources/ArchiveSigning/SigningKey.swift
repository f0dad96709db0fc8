import Cryptography
import DrydockErrors
import FileSystem
import Foundation

/// A secret key that signs archives: of minisign or signify, or of OpenSSH, in a file or in `ssh-agent`.
public struct SigningKey: Sendable, CustomStringConvertible {
  private enum Kind: Sendable {
    case minisign(MinisignSecretKey)
    case ssh(SSHPublicKey, seed: SecretBytes)
    /// With the agent's socket.
    case agent(SSHPublicKey, String)
  }

  private let kind: Kind

  private static let sizeLimit = 1 << 16

  /// Reads a key file. The public half of an SSH key, or an encrypted key, means the key that `ssh-agent` has.
  ///
  /// - Parameters:
  ///   - agent: the agent's socket (`SSH_AUTH_SOCK`); nil for none.
  ///   - passphrase: called for an encrypted key of minisign.
  /// - Throws: ``DrydockError`` (`badKey`, `notFound`); the message contains nothing of the key.
  public init(
    file: String, agent: String? = nil, passphrase: () throws -> SecretBytes = { throw Self.noPassphrase }
  ) throws {
    let bytes = try SecretFile.read(file, limit: Self.sizeLimit)
    kind = try bytes.withBytes { bytes in
      if bytes.starts(with: SSHPrivateKey.begin) {
        let key = try SSHPrivateKey(bytes, path: file)
        if let seed = key.seed { return .ssh(key.publicKey, seed: seed) }
        return try Self.inAgent(key.publicKey, agent, file)
      }
      if bytes.starts(with: Minisign.comment.utf8) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
        guard lines.count == 2 else { throw Self.unknown(file) }
        if lines[1].count < 100 {
          throw DrydockError(.badKey, "this is a public key or a signature; give the secret key", path: file)
        }
        return .minisign(
          try MinisignSecretKey(
            UnsafeRawBufferPointer(rebasing: lines[1]), path: file, passphrase: passphrase))
      }
      let words = String(decoding: bytes.prefix(1 << 14), as: UTF8.self).split { $0.isWhitespace }
      guard words.count >= 2, SSHPublicKey.isType(words[0]),
        let blob = Base64.decode(words[1].utf8, isPadded: true)
      else {
        throw Self.unknown(file)
      }
      return try DrydockError.locating(file) { try Self.inAgent(SSHPublicKey(blob: blob), agent, file) }
    }
  }

  private static func unknown(_ file: String) -> DrydockError {
    DrydockError(
      .badKey,
      "not a key that signs; give a secret key of minisign, signify or OpenSSH, or an SSH public key whose "
        + "secret half is in ssh-agent", path: file)
  }

  /// The error without a passphrase.
  public static var noPassphrase: DrydockError {
    DrydockError(.badKey, "the signing key is encrypted; give its passphrase")
  }

  private static func inAgent(_ key: SSHPublicKey, _ agent: String?, _ file: String) throws -> Kind {
    guard let agent, !agent.isEmpty else {
      throw DrydockError(
        .badKey,
        "only ssh-agent can sign with this key, and SSH_AUTH_SOCK names none; start one, and add the key with `ssh-add`",
        path: file)
    }
    return .agent(key, agent)
  }

  /// Whether bytes are a secret key of one of these programs.
  static func isSecret(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if bytes.starts(with: "-----BEGIN".utf8) { return true }
    guard bytes.starts(with: Minisign.comment.utf8) else { return false }
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 2)
    // Those of minisign have 212 characters, those of signify 140, signatures 100, public keys 56.
    return lines.count > 1 && lines[1].count > 104
  }

  /// The keys, of which no two write the same file.
  ///
  /// - Throws: ``DrydockError`` with code `usage`.
  package static func separate(_ keys: [SigningKey]) throws -> [SigningKey] {
    guard Set(keys.map(\.suffix)).count == keys.count else {
      throw DrydockError(
        .usage,
        "two of the keys would write the same file; sign with one of minisign, and one of OpenSSH or signify")
    }
    return keys
  }

  private var key: VerifyingKey {
    switch kind {
    case .minisign(let key): key.publicKey
    case .ssh(let key, _), .agent(let key, _): .ssh(key)
    }
  }

  /// The public halves, as the only trusted keys.
  package static func trusted(_ keys: [SigningKey]) -> TrustedKeys {
    var trusted = TrustedKeys()
    trusted.keys = keys.map { TrustedKeys.Key(key: $0.key) }
    return trusted
  }

  /// The public half, never the secret.
  public var description: String { key.name }

  /// The suffix of a signature's file: that of the program that verifies it.
  package var suffix: String {
    if case .minisign(let key) = kind, key.isMinisign { return "minisig" }
    return "sig"
  }

  /// The file of a signature, which is verified before this returns.
  ///
  /// - Parameter comment: what is signed, for people; in signatures of minisign only.
  package func sign(_ message: [UInt8], comment: String) throws -> [UInt8] {
    let file =
      switch kind {
      case .minisign(let key): try key.signature(of: message, comment: comment)
      case .ssh(let key, let seed):
        try SSHSignature.make(of: message, by: key) { try SSHPrivateKey.sign($0, seed) }
      case .agent(let key, let agent):
        try SSHSignature.make(of: message, by: key) { try key.sign($0, inAgentAt: agent) }
      }
    guard try key.verifies(DetachedSignature(file), of: message) else {
      throw DrydockError(.cryptography, "the signature made with \(key.name) is invalid; nothing was signed")
    }
    return file
  }
}

extension SigningKey: CustomReflectable {
  /// The public half, never the secret.
  public var customMirror: Mirror { Mirror(self, children: ["key": description]) }
}
