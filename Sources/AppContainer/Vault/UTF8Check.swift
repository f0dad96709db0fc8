import AgeEncryption

/// Whether bytes that come one by one are UTF-8.
struct UTF8Check {
  private var pending: [UInt8] = []
  private var isBroken = false

  /// Whether they were, and no character lacks its end.
  var isWhole: Bool { !isBroken && pending.isEmpty }

  mutating func take(_ byte: UInt8) {
    if byte < 0x80 && pending.isEmpty { return }
    pending.append(byte)
    let length =
      switch pending[0] {
      case 0xC2...0xDF: 2
      case 0xE0...0xEF: 3
      case 0xF0...0xF4: 4
      default: 0
      }
    if length == 0 { isBroken = true }
    guard pending.count >= length else { return }
    if String(validating: pending, as: UTF8.self) == nil { isBroken = true }
    pending.removeAll(keepingCapacity: true)
  }
}

extension SecretBytes {
  /// Whether they are text, UTF-8; no string is made to find out, which nobody could wipe.
  package var isText: Bool {
    withBytes { bytes in
      var check = UTF8Check()
      for byte in bytes { check.take(byte) }
      return check.isWhole
    }
  }
}
