import Cryptography
import DrydockErrors
import Foundation

extension TrustedKeys.Key {
  /// Reads one line with an OpenSSH public key: of a `.pub` file, or of a file of allowed signers (`ssh-keygen(1)`):
  /// principals, options, the key, a comment. Nil for a key that signs for other purposes only.
  ///
  /// - Throws: `DrydockError` with code `badKey`, which repeats nothing of the key.
  init?(allowedSigner line: String) throws {
    var words = try Self.split(line, at: " ", "\t").filter { !$0.isEmpty }
    var principals: String?
    if let first = words.first, !SSHPublicKey.isType(first) {
      principals = first.filter { $0 != "\"" }
      words.removeFirst()
    }
    var options: [(name: String, value: String)] = []
    if principals != nil, let word = words.first, !SSHPublicKey.isType(word) {
      options = try Self.options(word)
      words.removeFirst()
    }
    guard words.count >= 2, SSHPublicKey.isType(words[0]),
      let blob = Base64.decode(words[1].utf8, isPadded: true)
    else {
      throw DrydockError(
        .badKey, "not a public key of minisign, signify or OpenSSH, and not a line of allowed signers")
    }
    let publicKey = try SSHPublicKey(blob: blob)
    guard publicKey.type == words[0] else {
      throw DrydockError(.badKey, "the type before the key is not the key's")
    }
    let comment = words.dropFirst(2).joined(separator: " ")
    self.init(key: .ssh(publicKey), name: TrustedKeys.shown(principals ?? comment))
    var isForArchives = true
    for (name, value) in options {
      switch name {
      case "cert-authority":
        throw DrydockError(.badKey, "certificates (cert-authority) are not supported; list each key")
      case "namespaces": isForArchives = try Self.includesArchives(value)
      case "valid-after": validAfter = try Self.time(value, name)
      case "valid-before": validBefore = try Self.time(value, name)
      default: throw DrydockError(.badKey, "an option before the key is unknown; see ssh-keygen(1)")
      }
    }
    if !isForArchives { return nil }
  }

  /// The parts of a text between separators that are not in quotes.
  private static func split(_ text: String, at separators: Character...) throws -> [String] {
    var (parts, part, isQuoted): ([String], String, Bool) = ([], "", false)
    for character in text {
      if character == "\"" { isQuoted.toggle() }
      if !isQuoted, separators.contains(character) {
        parts.append(part)
        part = ""
      } else {
        part.append(character)
      }
    }
    guard !isQuoted else { throw DrydockError(.badKey, "a quote is not closed") }
    return parts + [part]
  }

  /// `name` or `name="value"`, separated by commas outside of quotes.
  private static func options(_ word: String) throws -> [(name: String, value: String)] {
    try split(word, at: ",").map { part in
      let fields = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = fields[0].lowercased()
      guard fields.count == 2 else { return (name, "") }
      guard fields[1].count >= 2, fields[1].hasPrefix("\""), fields[1].hasSuffix("\"") else {
        throw DrydockError(.badKey, "the value of an option is not quoted")
      }
      return (name, String(fields[1].dropFirst().dropLast()))
    }
  }

  private static func includesArchives(_ namespaces: String) throws -> Bool {
    let names = namespaces.split(separator: ",").map(String.init)
    guard names.allSatisfy({ $0 == "*" || !$0.contains { "*?!".contains($0) } }) else {
      throw DrydockError(
        .badKey, "patterns in namespaces are not supported; name \(DetachedSignature.namespace)")
    }
    return names.contains("*") || names.contains(DetachedSignature.namespace)
  }

  /// `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, in local time, or with a `Z` in UTC.
  private static func time(_ text: String, _ option: String) throws -> Date {
    let isUTC = text.hasSuffix("Z")
    let digits = Array((isUTC ? text.dropLast() : text[...]).utf8)
    let invalid = DrydockError(
      .badKey, "\(option) is not a time; write YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with a Z for UTC")
    guard [8, 12, 14].contains(digits.count), digits.allSatisfy(\.isDigit) else {
      throw invalid
    }
    func field(_ start: Int, _ length: Int) -> Int {
      guard start + length <= digits.count else { return 0 }
      return digits[start..<start + length].reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = isUTC ? TimeZone(secondsFromGMT: 0) ?? .current : .current
    let components = DateComponents(
      year: field(0, 4), month: field(4, 2), day: field(6, 2), hour: field(8, 2), minute: field(10, 2),
      second: field(12, 2))
    guard components.isValidDate(in: calendar), let date = calendar.date(from: components) else {
      throw invalid
    }
    return date
  }
}
