import Cryptography
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import DeviceBackups
@testable import Formats

@Suite("The keybag of a device backup")
struct KeybagTests {
  /// The keybag of the sample.
  static func sample() throws -> [UInt8] {
    let list = try PropertyListFile(bytes: Array(Data(contentsOf: Samples.encrypted("Manifest.plist"))))
    guard case .data(let bytes)? = list.root["BackupKeyBag"] else {
      throw DrydockError(.malformed, "no keybag")
    }
    return bytes
  }

  /// The place of a field's value.
  private static func place(of tag: String, in bytes: [UInt8]) throws -> Int {
    try #require(bytes.firstRange(of: Array(tag.utf8))?.upperBound) + 4
  }

  @Test("The password opens every class but those of the device, whatever the order of the fields")
  func unlock() throws {
    let keys = try BackupKeybag(Self.sample()).unlock(Samples.password)
    #expect(Set(keys.keys) == Set(1...8))
    #expect(keys.values.allSatisfy { $0.count == 32 })
  }

  @Test("Another password is refused as such", arguments: ["", "Correct horse", "correct horse "])
  func wrongPassword(_ password: String) throws {
    let error = #expect(throws: DrydockError.self) {
      try BackupKeybag(Self.sample()).unlock(SecretBytes(Array(password.utf8)))
    }
    #expect(error?.code == .badKey && error?.code.exitCode == 4)
  }

  @Test("Absurd rounds are refused before any is made", arguments: ["ITER", "DPIC"])
  func rounds(_ tag: String) throws {
    for value in [UInt32(0), 50_000_001, .max] {
      var bytes = try Self.sample()
      let place = try Self.place(of: tag, in: bytes)
      bytes.replaceSubrange(place..<place + 4, with: withUnsafeBytes(of: value.bigEndian) { Array($0) })
      expectError(value == 0 ? .damaged : .limit) { try BackupKeybag(bytes).unlock(Samples.password) }
    }
  }

  @Test("Each prefix, and each flipped byte, gives an error or a keybag that does not open")
  func damage() throws {
    let bytes = try Self.sample()
    for count in 0..<bytes.count {
      // A prefix that ends behind a class is a keybag with fewer classes.
      guard let keybag = try Self.accepted(Array(bytes.prefix(count))) else { continue }
      #expect(keybag.classes.count < 11)
    }
    // More rounds than in the sample would take long: they are another test.
    let rounds = try ["ITER", "DPIC"].flatMap { tag in
      let place = try Self.place(of: tag, in: bytes)
      return place..<place + 3
    }
    for index in bytes.indices where !rounds.contains(index) {
      for bit in [0x01, 0x80] as [UInt8] {
        var changed = bytes
        changed[index] ^= bit
        do { _ = try Self.accepted(changed)?.unlock(Samples.password) } catch is DrydockError {}
      }
    }
  }

  private static func accepted(_ bytes: [UInt8]) throws -> BackupKeybag? {
    do { return try BackupKeybag(bytes) } catch let error as DrydockError {
      #expect(error.code == .damaged)
      return nil
    }
  }

  @Test("Lengths that lie, and fields and classes that come twice, are refused")
  func lies() throws {
    let bytes = try Self.sample()
    var long = bytes
    let length = try Self.place(of: "SALT", in: bytes) - 4
    long.replaceSubrange(length..<length + 4, with: [0xFF, 0xFF, 0xFF, 0xFF])
    let twice = bytes + Array("CLAS".utf8) + [0, 0, 0, 4, 0, 0, 0, 1]
    let classTwice = bytes + bytes[(try #require(bytes.lastRange(of: Array("UUID".utf8))?.lowerBound))...]
    let many = bytes + Array(repeating: Array("UUID".utf8) + [0, 0, 0, 0], count: 300).joined()
    for damaged in [long, twice, classTwice, many, [], Array(repeating: 0, count: 64)] {
      expectError(.damaged) { try BackupKeybag(damaged) }
    }
  }
}

extension Array where Element == UInt8 {
  fileprivate func lastRange(of other: [UInt8]) -> Range<Int>? {
    indices.reversed().first { self[$0...].starts(with: other) }.map { $0..<$0 + other.count }
  }
}
