import Cryptography
import DrydockErrors

/// The keys of an encrypted device backup: one for each protection class, wrapped with a key from the backup's password.
///
/// Fields of a tag of four letters, a length (u32, big-endian) and a value. Those up to the second `UUID` belong to the
/// keybag, and each later `UUID` begins a class.
struct BackupKeybag {
  struct ClassKey {
    var isForPassword = false
    /// Whether it is also wrapped with a key that never leaves the device.
    var isForDevice = false
    var wrapped: [UInt8] = []
  }

  private(set) var classes: [UInt32: ClassKey] = [:]
  private var salt: [UInt8] = []
  private var rounds: UInt64 = 0
  /// The first derivation, which iOS 10.2 introduced.
  private var firstSalt: [UInt8]?
  private var firstRounds: UInt64 = 0

  private static let passwordBit: UInt32 = 2
  private static let deviceBit: UInt32 = 1
  /// The most classes; iOS has about 20.
  private static let mostClasses = 256

  init(_ bytes: [UInt8]) throws {
    var blocks: [[String: [UInt8]]] = [[:]]
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count >= 8, case let length = Self.number(rest.dropFirst(4).prefix(4)),
        length <= rest.count - 8
      else { throw Self.damaged("a field is longer than the keybag") }
      let tag = String(decoding: rest.prefix(4), as: UTF8.self)
      if tag == "UUID", blocks.last?["UUID"] != nil { blocks.append([:]) }
      guard blocks.count <= Self.mostClasses else { throw Self.damaged("it has too many classes") }
      let value = Array(rest.dropFirst(8).prefix(Int(length)))
      guard blocks[blocks.count - 1].updateValue(value, forKey: tag) == nil else {
        throw Self.damaged("it has the field \(tag.utf8.allSatisfy { $0 < 0x80 } ? tag : "…") twice")
      }
      rest = rest.dropFirst(8 + Int(length))
    }
    try readHeader(blocks[0])
    for block in blocks.dropFirst() { try add(block) }
  }

  private mutating func readHeader(_ fields: [String: [UInt8]]) throws {
    guard let salt = fields["SALT"], let rounds = fields["ITER"] else {
      throw Self.damaged("it has no SALT or no ITER")
    }
    (self.salt, self.rounds) = (salt, try Self.short(rounds, "ITER"))
    if let firstSalt = fields["DPSL"], let rounds = fields["DPIC"] {
      (self.firstSalt, firstRounds) = (firstSalt, try Self.short(rounds, "DPIC"))
    }
  }

  private mutating func add(_ fields: [String: [UInt8]]) throws {
    guard let id = fields["CLAS"], let wrap = fields["WRAP"] else {
      throw Self.damaged("a class has no CLAS or no WRAP")
    }
    let flags = UInt32(try Self.short(wrap, "WRAP"))
    let key = ClassKey(
      isForPassword: flags & Self.passwordBit != 0, isForDevice: flags & Self.deviceBit != 0,
      wrapped: fields["WPKY"] ?? [])
    guard classes.updateValue(key, forKey: UInt32(try Self.short(id, "CLAS"))) == nil else {
      throw Self.damaged("it has a class twice")
    }
  }

  /// The keys of all classes that a password opens. Those of classes that stay on the device are not among them.
  ///
  /// - Throws: `DrydockError`: `badKey` for a wrong password, `limit` for absurd numbers of rounds.
  func unlock(_ password: SecretBytes) throws -> [UInt32: SecretBytes] {
    var secret = password
    if let firstSalt {
      secret = try secret.passwordKey(salt: firstSalt, rounds: firstRounds, .sha256)
    }
    let key = try secret.passwordKey(salt: salt, rounds: rounds, .sha1)
    var keys: [UInt32: SecretBytes] = [:]
    for (id, own) in classes where own.isForPassword && !own.isForDevice {
      guard let unwrapped = try key.unwrapKey(own.wrapped) else {
        throw DrydockError(
          .badKey, "the password does not open the backup; give the one that it was made with")
      }
      keys[id] = unwrapped
    }
    guard !keys.isEmpty else { throw Self.damaged("it has no class that a password opens") }
    return keys
  }

  private static func short(_ value: [UInt8], _ name: String) throws -> UInt64 {
    guard value.count == 4 else { throw damaged("\(name) does not have 4 bytes") }
    return number(value[...])
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func damaged(_ what: String) -> DrydockError {
    DrydockError(.damaged, "the backup's keybag is damaged: \(what); use another copy of the backup")
  }
}

/// A key that is wrapped with the key of a class: the number of the class (u32, little-endian), and the key.
struct ClassWrappedKey: Sendable, Equatable {
  var classID: UInt32
  var wrapped: [UInt8]

  /// Nil for bytes that are too short.
  init?(_ bytes: [UInt8]) {
    guard bytes.count > 4 else { return nil }
    classID = bytes.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    wrapped = Array(bytes.dropFirst(4))
  }

  /// The key; nil when the backup's password does not open its class, or it is damaged.
  func unwrapped(_ keys: [UInt32: SecretBytes]) throws -> SecretBytes? {
    try keys[classID].flatMap { try $0.unwrapKey(wrapped) }
  }
}
