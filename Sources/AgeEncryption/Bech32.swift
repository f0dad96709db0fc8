import Cryptography
import DrydockErrors

/// The text form of age's keys (BIP 173): a name, `1`, the bytes in groups of five bits, and a checksum. As in age,
/// there is no limit of 90 characters. All work is done in wiped memory, since most keys are secret.
enum Bech32 {
  private static let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
  private static let separator = UInt8(ascii: "1")
  private static let checksumLength = 6

  /// The text in lower case.
  static func encode(_ name: String, _ bytes: UnsafeRawBufferPointer) -> SecretBytes {
    let name = Array(name.utf8)
    let dataLength = (bytes.count * 8 + 4) / 5
    return SecretBytes(count: name.count + 1 + dataLength + checksumLength) { text in
      text.copyBytes(from: name)
      text[name.count] = separator
      let values = UnsafeMutableRawBufferPointer(rebasing: text[(name.count + 1)...])
      regroup(bytes, into: values)
      // The checksum replaces the six zeros after the data.
      let checksum = polymod(name, UnsafeRawBufferPointer(values)) ^ 1
      for index in 0..<checksumLength {
        values[dataLength + index] = UInt8(checksum >> UInt32(5 * (5 - index)) & 31)
      }
      for index in values.indices { values[index] = alphabet[Int(values[index])] }
    }
  }

  /// The `count` bytes of a text with that name, all in one case; nil for an invalid text.
  static func decode(
    _ text: UnsafeRawBufferPointer, name: String, count: Int, isUpperCase: Bool = false
  ) -> SecretBytes? {
    let name = Array(name.utf8)
    let dataLength = (count * 8 + 4) / 5
    guard text.count == name.count + 1 + dataLength + checksumLength else { return nil }
    return LibCrypto.withScratch(text.count) { scratch in
      for (index, character) in text.enumerated() {
        if character.isLetter, character.isCapital != isUpperCase { return nil }
        scratch[index] = character.isLetter ? character | 0x20 : character
      }
      guard scratch.starts(with: name), scratch[name.count] == separator else { return nil }
      let values = UnsafeMutableRawBufferPointer(rebasing: scratch[(name.count + 1)...])
      for index in values.indices {
        guard let value = alphabet.firstIndex(of: values[index]) else { return nil }
        values[index] = UInt8(value)
      }
      guard polymod(name, UnsafeRawBufferPointer(values)) == 1 else { return nil }
      // Unused bits of the last character must be zero.
      let padding = dataLength * 5 - count * 8
      guard values[dataLength - 1] & (1 << UInt8(padding) - 1) == 0 else { return nil }
      return SecretBytes(count: count) { bytes in
        for bit in 0..<count * 8 where values[bit / 5] >> UInt8(4 - bit % 5) & 1 == 1 {
          bytes[bit / 8] |= 0x80 >> UInt8(bit % 8)
        }
      }
    }
  }

  private static func regroup(_ bytes: UnsafeRawBufferPointer, into values: UnsafeMutableRawBufferPointer) {
    for bit in 0..<bytes.count * 8 where bytes[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1 {
      values[bit / 5] |= 16 >> UInt8(bit % 5)
    }
  }

  /// The checksum polynomial over the name, expanded as BIP 173 says, and the values.
  private static func polymod(_ name: [UInt8], _ values: UnsafeRawBufferPointer) -> UInt32 {
    var checksum: UInt32 = 1
    func feed(_ value: UInt8) {
      let generator: [UInt32] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3]
      let top = checksum >> 25
      checksum = (checksum & 0x1ff_ffff) << 5 ^ UInt32(value)
      for bit in 0..<5 where top >> UInt32(bit) & 1 == 1 { checksum ^= generator[bit] }
    }
    for character in name { feed(character >> 5) }
    feed(0)
    for character in name { feed(character & 31) }
    for value in values { feed(value) }
    return checksum
  }
}
