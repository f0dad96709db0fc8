import Cryptography
import DrydockErrors

/// Encrypts and decrypts whole messages in memory. Files of any size go through `AgeWriter` and `AgeReader`.
package enum Age {
  /// Encrypts bytes into a binary age file.
  package static func seal(_ plain: UnsafeRawBufferPointer, to target: AgeTarget) throws -> [UInt8] {
    var file: [UInt8] = []
    file.reserveCapacity(plain.count + plain.count / 4096 + 4096)
    try withoutActuallyEscaping({ file.append(contentsOf: $0) }) { sink in
      let writer = try AgeWriter(to: target, sink: sink)
      try writer.write(plain)
      try writer.finish()
    }
    return file
  }

  package static func seal(_ plain: SecretBytes, to target: AgeTarget) throws -> [UInt8] {
    try plain.withBytes { try seal($0, to: target) }
  }

  /// Decrypts an age file, binary or armored: all of it or nothing.
  package static func open(_ file: [UInt8], with keys: AgeKeys) throws -> SecretBytes {
    let file = try withoutArmor(file)
    let reader = try AgeReader(size: UInt64(file.count), keys: keys) { target, offset in
      target.copyBytes(from: file[Int(offset)..<(Int(offset) + target.count)])
    }
    return try SecretBytes(count: Int(reader.plainSize)) { try reader.read(into: $0, at: 0) }
  }

  /// The header of an age file, binary or armored: reading it needs no key.
  ///
  /// - Throws: `DrydockError` (`.header`, `.armor`).
  package static func header(of file: [UInt8]) throws -> AgeHeader {
    let file = try withoutArmor(file)
    return try AgeHeader.read(size: UInt64(file.count)) { target, offset in
      target.copyBytes(from: file[Int(offset)..<(Int(offset) + target.count)])
    }
  }

  private static func withoutArmor(_ file: [UInt8]) throws -> [UInt8] {
    Armor.isPresent(in: file) ? try Armor.decode(file) : file
  }
}

/// To whom a file is encrypted: who can open it.
public enum AgeTarget: Sendable {
  /// The owners of these keys, of which there is at least one. Each can open it alone.
  case recipients([AgeRecipient])
  /// Whoever knows the passphrase. Each step of the work factor doubles the time and memory of one try; 18, as in age,
  /// takes about a second and 256 MiB.
  case passphrase(SecretBytes, workFactor: Int = 18)
}

/// The identities and passphrases that open encrypted files, tried in order.
public struct AgeKeys: Sendable {
  /// Secret keys.
  public var identities: [AgeIdentity]
  /// Passphrases, each of which takes a second to try.
  public var passphrases: [SecretBytes]

  /// Keys that open archives; without any, only what is not encrypted can be read.
  public init(identities: [AgeIdentity] = [], passphrases: [SecretBytes] = []) {
    self.identities = identities
    self.passphrases = passphrases
  }

  /// Whether there are none.
  public var isEmpty: Bool { identities.isEmpty && passphrases.isEmpty }
}

/// Errors about the parts of an age file.
extension DrydockError {
  static func header(_ what: String) -> Self {
    Self(.header, "the age header is malformed: \(what); use another copy of the file")
  }

  static func payload(_ what: String) -> Self {
    Self(.payload, "the encrypted content is damaged: \(what); use another copy or fetch this one again")
  }

  static func armor(_ what: String) -> Self {
    Self(.armor, "the ASCII armor is malformed: \(what); use another copy or fetch this one again")
  }
}
