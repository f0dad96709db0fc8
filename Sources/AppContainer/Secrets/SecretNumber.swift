/// Numbers that belong to a person: of a payment card, of the US social security, of a bank account.
enum SecretNumber {
  /// Whether one begins at an index, where a word does; nothing that belongs to a number may stand around it.
  static func begins(at index: Int, in bytes: [UInt8]) -> Bool {
    if index > 0, "-.+#".utf8.contains(bytes[index - 1]) { return false }
    if SecretText.isDigit(bytes[index]) {
      return isCard(groups(from: index, in: bytes)) || isSocialSecurity(index, bytes)
    }
    return isAccount(index, bytes)
  }

  /// Whether a number in a store is that of a card. Identifiers are as long: no more than what cards really have counts.
  static func isCard(_ number: UInt64) -> Bool {
    let digits = String(number).utf8.map { Int($0) - 0x30 }
    return (15...16).contains(digits.count) && isCard([digits])
  }

  // MARK: Cards

  /// The groups of digits from an index on, with the same single space or hyphen between them; none when letters are
  /// next to them.
  private static func groups(from index: Int, in bytes: [UInt8]) -> [[Int]] {
    var groups: [[Int]] = [[]]
    var separator: UInt8?
    var at = index
    while at < bytes.count, at - index < 32 {
      let byte = bytes[at]
      if SecretText.isDigit(byte) {
        groups[groups.count - 1].append(Int(byte) - 0x30)
      } else if byte == 0x20 || byte == UInt8(ascii: "-"), separator == nil || separator == byte,
        at + 1 < bytes.count, SecretText.isDigit(bytes[at + 1])
      {
        separator = byte
        groups.append([])
      } else {
        break
      }
      at += 1
    }
    guard at < bytes.count else { return groups }
    let isInside =
      SecretText.isWord(bytes[at]) || (bytes[at] == UInt8(ascii: ".") && isDigit(after: at, bytes))
    return isInside ? [] : groups
  }

  private static func isDigit(after index: Int, _ bytes: [UInt8]) -> Bool {
    index + 1 < bytes.count && SecretText.isDigit(bytes[index + 1])
  }

  private static func isCard(_ groups: [[Int]]) -> Bool {
    let digits = groups.flatMap { $0 }
    guard (14...19).contains(digits.count), Set(digits).count > 1 else { return false }
    if groups.count > 1 {
      let sizes = groups.map(\.count)
      let isGrouped =
        sizes == [4, 6, 5] || sizes == [4, 6, 4]
        || sizes.dropLast().allSatisfy { $0 == 4 } && groups.count >= 4
      if !isGrouped { return false }
    }
    return isIssued(digits) && isLuhn(digits)
  }

  /// Whether an issuer of cards has numbers of this beginning and length.
  private static func isIssued(_ digits: [Int]) -> Bool {
    func beginning(_ count: Int) -> Int { digits.prefix(count).reduce(0) { $0 * 10 + $1 } }
    let (two, three, four) = (beginning(2), beginning(3), beginning(4))
    switch digits.count {
    case 14: return two == 36 || (38...39).contains(two) || (300...305).contains(three)
    case 15: return two == 34 || two == 37
    case 16, 19:
      if digits[0] == 4 || two == 62 || two == 65 { return true }
      if four == 6011 || (644...649).contains(three) || (3528...3589).contains(four) { return true }
      if [5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763].contains(four) { return true }
      return digits.count == 16 && ((51...55).contains(two) || (2221...2720).contains(four))
    default: return false
    }
  }

  private static func isLuhn(_ digits: [Int]) -> Bool {
    let sum = digits.reversed().enumerated().reduce(0) { sum, digit in
      let value = digit.offset.isMultiple(of: 2) ? digit.element : digit.element * 2
      return sum + (value > 9 ? value - 9 : value)
    }
    return sum.isMultiple(of: 10)
  }

  // MARK: Social security

  /// `078-05-1120`, with hyphens or spaces; areas, groups and serials that are never given out are none.
  private static func isSocialSecurity(_ index: Int, _ bytes: [UInt8]) -> Bool {
    let form = Array(bytes[index...].prefix(12))
    guard form.count >= 11, form[3] == form[6], form[3] == 0x20 || form[3] == UInt8(ascii: "-") else {
      return false
    }
    if form.count == 12, SecretText.isWord(form[11]) || form[11] == UInt8(ascii: "-") { return false }
    func number(_ range: Range<Int>) -> Int? {
      form[range].reduce(0 as Int?) { sum, byte in
        SecretText.isDigit(byte) ? sum.map { $0 * 10 + Int(byte) - 0x30 } : nil
      }
    }
    guard let area = number(0..<3), let group = number(4..<6), let serial = number(7..<11) else {
      return false
    }
    return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
  }

  // MARK: Accounts

  /// An IBAN, in one piece or in groups of four, whose check digits are right.
  private static func isAccount(_ index: Int, _ bytes: [UInt8]) -> Bool {
    func isUpper(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") }
    guard index + 15 <= bytes.count, isUpper(bytes[index]), isUpper(bytes[index + 1]),
      SecretText.isDigit(bytes[index + 2]), SecretText.isDigit(bytes[index + 3])
    else { return false }
    var compact: [UInt8] = []
    var at = index
    while at < bytes.count, compact.count < 34 {
      let byte = bytes[at]
      if isUpper(byte) || SecretText.isDigit(byte) {
        compact.append(byte)
      } else if byte == 0x20, at - index == compact.count + compact.count / 4 - 1,
        compact.count.isMultiple(of: 4)
      {
        // A group of four has ended, and maybe all of it.
        if isRight(compact) { return true }
      } else {
        break
      }
      at += 1
    }
    return (at == bytes.count || !SecretText.isWord(bytes[at])) && isRight(compact)
  }

  /// Whether the check digits fit: the remainder that ISO 7064 wants.
  private static func isRight(_ account: [UInt8]) -> Bool {
    guard account.count >= 15 else { return false }
    let rotated = account.dropFirst(4) + account.prefix(4)
    let remainder = rotated.reduce(0) { sum, byte in
      SecretText.isDigit(byte)
        ? (sum * 10 + Int(byte) - 0x30) % 97 : (sum * 100 + Int(byte) - 0x41 + 10) % 97
    }
    return remainder == 1
  }
}
