import AgeEncryption
import Cryptography
import DrydockErrors
import Foundation
import TestSupport

/// One file of `Vectors`, which `make_vectors.py` wrote from the specification with other code.
struct Vector {
  /// What opening it comes to, in the words of the C2SP testkit.
  enum Outcome: String {
    case success
    case noMatch = "no match"
    case macFailure = "HMAC failure"
    case headerFailure = "header failure"
    case payloadFailure = "payload failure"
    case armorFailure = "armor failure"

    init(_ code: DrydockError.Code) throws {
      switch code {
      case .noIdentity: self = .noMatch
      case .mac: self = .macFailure
      case .header: self = .headerFailure
      case .payload: self = .payloadFailure
      case .armor: self = .armorFailure
      default: throw SystemFailure("not an outcome of opening a file: \(code)")
      }
    }
  }

  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Vectors"

  static func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
  }

  let file: [UInt8]
  let expected: Outcome
  /// What the age program makes of it, where that is something else.
  let expectedOfAge: Outcome
  /// The SHA-256 of the content.
  let payload: String?
  let identities: [String]
  let passphrases: [String]

  init(_ name: String) throws {
    let bytes = Array(try RawFiles.read(Array("\(Self.folder)/\(name)".utf8)))
    let end = try (1..<bytes.count).first { bytes[$0 - 1] == 10 && bytes[$0] == 10 }.unwrapped(
      "no empty line")
    file = Array(bytes[(end + 1)...])
    var values: [String: [String]] = [:]
    for line in String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      values[String(parts[0]), default: []].append(parts[1].trimmingCharacters(in: .whitespaces))
    }
    expected = try Self.outcome(values["expect"]?.first)
    expectedOfAge = try values["age"].map { try Self.outcome($0.first) } ?? expected
    payload = values["payload"]?.first
    identities = values["identity"] ?? []
    passphrases = values["passphrase"] ?? []
  }

  func keys() throws -> AgeKeys {
    AgeKeys(
      identities: try identities.map { try AgeIdentity(SecretBytes(Array($0.utf8))) },
      passphrases: passphrases.map { SecretBytes(Array($0.utf8)) })
  }

  private static func outcome(_ text: String?) throws -> Outcome {
    try text.flatMap(Outcome.init).unwrapped("an unknown outcome")
  }
}

extension Optional {
  /// The value. Throws with the reason when there is none.
  func unwrapped(_ reason: String) throws -> Wrapped {
    guard let self else { throw SystemFailure(reason) }
    return self
  }
}
