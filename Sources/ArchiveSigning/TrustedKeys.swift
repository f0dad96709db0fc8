import Cryptography
import DrydockErrors
import FileSystem
import Foundation

/// Who signed something: a key that was trusted.
public struct Signer: Sendable, Hashable, Codable {
  /// `minisign` and the key's number, or a type of SSH keys and the fingerprint.
  public var key: String
  /// The key's comment, or in a file of allowed signers the principals; nil without one.
  public var name: String?
}

/// A signature in a file beside what it signs, as minisign, signify or `ssh-keygen -Y sign` make it.
enum DetachedSignature {
  case minisign(MinisignSignature)
  case ssh(SSHSignature)

  /// What SSH signatures of archives are made for: one for another purpose, such as a commit, is not one of an archive.
  static let namespace = "archive@drydock"

  /// - Throws: `DrydockError` with code `badSignature`.
  init(_ bytes: [UInt8]) throws {
    guard bytes.count <= TrustedKeys.signatureSizeLimit else {
      throw DrydockError.malformedSignature("it is too large")
    }
    if let lines = Minisign.lines(bytes) {
      self = .minisign(try MinisignSignature(lines))
    } else if let text = String(validating: bytes, as: UTF8.self), text.hasPrefix(SSHSignature.begin) {
      do { self = .ssh(try SSHSignature(armored: text)) } catch let error as DrydockError {
        throw DrydockError(.badSignature, error.message, cause: error)
      }
    } else {
      throw DrydockError.malformedSignature("neither of minisign, signify nor ssh-keygen -Y sign")
    }
  }

  /// The ``VerifyingKey/name`` of the key that it names, which proves nothing.
  var keyName: String {
    switch self {
    case .minisign(let signature): "minisign \(Minisign.name(ofNumber: signature.keyNumber))"
    case .ssh(let signature): VerifyingKey.ssh(signature.publicKey).name
    }
  }
}

/// A public key that verifies such signatures.
enum VerifyingKey: Sendable, Hashable {
  /// A signature names its key by the number, and by nothing more: anyone can make a key with the same number.
  case minisign(number: [UInt8], key: [UInt8])
  case ssh(SSHPublicKey)

  /// The key of minisign or signify in a text as minisign's `-P` takes it; nil for anything else.
  init?(minisign text: String) {
    guard let bytes = Base64.decode(text.utf8, isPadded: true), bytes.count == 42,
      bytes.starts(with: Array("Ed".utf8))
    else { return nil }
    self = .minisign(number: Array(bytes[2..<10]), key: Array(bytes[10...]))
  }

  var name: String {
    switch self {
    case .minisign(let number, _): "minisign \(Minisign.name(ofNumber: number))"
    case .ssh(let key): "\(key.type) \(key.fingerprint)"
    }
  }

  func verifies(_ signature: DetachedSignature, of message: [UInt8]) throws -> Bool {
    switch (self, signature) {
    case (.minisign(let number, let key), .minisign(let signature)):
      try number == signature.keyNumber && signature.isValid(message, by: key)
    case (.ssh(let key), .ssh(let signature)):
      try signature.publicKey == key && signature.isValid(message)
    default: false
    }
  }
}

/// The public keys whose signatures are trusted, from files of minisign, signify and OpenSSH.
public struct TrustedKeys: Sendable, Equatable {
  struct Key: Sendable, Equatable {
    var key: VerifyingKey
    var name: String?
    /// When what it signed must have been made.
    var validAfter: Date?, validBefore: Date?
  }

  var keys: [Key] = []
  private static let sizeLimit = 1 << 20
  /// A larger file of a signature is refused.
  package static let signatureSizeLimit = 1 << 14

  /// No keys: nothing is trusted.
  public init() {}

  /// Whether nothing is trusted.
  public var isEmpty: Bool { keys.isEmpty }

  /// Reads public keys: of minisign or signify, lines of OpenSSH's `.pub` files, and files of allowed signers.
  ///
  /// - Throws: ``DrydockError`` (`badKey`, `notFound`) with the file and the line, and nothing of its text.
  public init(files: [String]) throws {
    for file in files { try add(file: file) }
  }

  /// Adds the keys of a file.
  package mutating func add(file: String) throws {
    guard FollowedStatus.isFile(file) || FollowedStatus.identity(file) == nil else {
      throw DrydockError(.badKey, "not a regular file; give a file of public keys", path: file)
    }
    let bytes = try SecretFile.read(file, limit: Self.sizeLimit)
    guard !bytes.withBytes({ SigningKey.isSecret($0) }) else {
      throw DrydockError(.badKey, "this is a secret key; give the public one", path: file)
    }
    guard let text = bytes.withBytes({ String(validating: $0, as: UTF8.self) }) else {
      throw DrydockError(.badKey, "not a file of public keys", path: file)
    }
    let count = keys.count
    var comment: String?
    for (index, line) in text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
      .enumerated()
    {
      let line = String(line).trimmingCharacters(in: .whitespacesAndNewlines)
      if line.isEmpty || line.hasPrefix("#") { continue }
      if line.hasPrefix(Minisign.comment) {
        comment = String(line.dropFirst(Minisign.comment.count))
        continue
      }
      do {
        try add(line: line, comment: comment)
      } catch let error as DrydockError {
        throw DrydockError(error.code, error.message, path: file, line: index + 1)
      }
    }
    guard keys.count > count else {
      throw DrydockError(
        .badKey,
        "this file has no key that signs archives; add a public key of minisign, signify or OpenSSH (for a line with "
          + "`namespaces=`, one of them is \(DetachedSignature.namespace))", path: file)
    }
  }

  /// Adds the key of one line: `RW…` of minisign or signify, `ssh-ed25519 …`, or a line of allowed signers.
  package mutating func add(line: String, comment: String? = nil) throws {
    if let key = VerifyingKey(minisign: line) {
      // What the programs write there says no more than the key.
      let isTheirs = comment.map { $0.contains("public key") } ?? true
      keys.append(Key(key: key, name: isTheirs ? nil : comment.flatMap(Self.shown)))
    } else if let key = try Key(allowedSigner: line) {
      keys.append(key)
    }
  }

  /// Whether a text is meant as a key, and not as a file's name.
  package static func isKey(_ text: String) -> Bool {
    VerifyingKey(minisign: text) != nil
      || text.split(separator: " ").prefix(3).contains { SSHPublicKey.isType($0) }
  }

  /// A text for people, without what acts on a terminal.
  static func shown(_ text: some StringProtocol) -> String? {
    let kept = text.unicodeScalars.prefix(200).filter {
      $0.properties.generalCategory != .control && !$0.properties.isBidiControl
    }
    return kept.isEmpty ? nil : String(String.UnicodeScalarView(kept))
  }

  /// Who signed a message: the first trusted key with a valid signature.
  ///
  /// - Parameters:
  ///   - time: of what is signed.
  ///   - signatures: the contents of files.
  /// - Throws: `DrydockError`: `untrusted` when no trusted key is named, `badSignature` when none is valid.
  package func signer(of message: [UInt8], at time: Date, _ signatures: [[UInt8]]) throws -> Signer {
    var problem: DrydockError?
    for bytes in signatures {
      let signature: DetachedSignature
      do { signature = try DetachedSignature(bytes) } catch let error as DrydockError {
        problem = problem ?? error
        continue
      }
      let named = keys.filter { $0.key.name == signature.keyName }
      guard !named.isEmpty else {
        problem =
          problem
          ?? DrydockError(.untrusted, "signed with \(signature.keyName), which is not a trusted key")
        continue
      }
      guard let valid = try named.first(where: { try $0.key.verifies(signature, of: message) }) else {
        problem = DrydockError(
          .badSignature, "the signature with \(signature.keyName) does not match; it is forged or damaged")
        continue
      }
      // A key may be listed for several times.
      guard
        let current = named.first(where: { key in
          key.key == valid.key && key.validAfter.map { $0 <= time } ?? true
            && key.validBefore.map { time < $0 } ?? true
        })
      else {
        problem = DrydockError(
          .untrusted, "signed with \(signature.keyName), which was not valid at that time")
        continue
      }
      return Signer(key: current.key.name, name: current.name)
    }
    throw problem ?? DrydockError(.untrusted, "it has no signature")
  }
}
