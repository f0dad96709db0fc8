import AgeEncryption
import ContainerTransaction
import FileSystem
import Formats
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Which plain archives still hold what was moved into the vault.
@Suite(.everyPlace) struct ExposedSecretTests {
  static let settings: ContainerPath = "Library/Preferences/com.example.notes.plist"
  static let token = "canary-token-0123456789"
  static let secret = MovedSecret(path: settings, key: "auth_token", value: .string(token))

  private let lab: Lab
  init() throws { lab = try Lab(notes: ["--signed-out", "--photos", "0", "--texts", "1", "--caches", "0"]) }

  private func write(_ values: PropertyListDictionary, _ format: PropertyListFile.Format = .binary) throws {
    try lab.write(Self.settings.description, PropertyListFile(format: format, root: values).encoded())
  }

  @Test func underAnyKeyInAnyForm() throws {
    // The keys under which each archive has it, if any.
    let cases: [(values: PropertyListDictionary, keys: [String])] = [
      (["auth_token": .string(Self.token), "theme": .string("dark")], ["auth_token"]),
      (["user_token": .string(Self.token)], ["user_token"]),
      (["session": .dictionary(["list": .array([.string("Bearer " + Self.token)])])], ["session"]),
      (["blob": .data(Array(Self.token.utf8)), "auth_token": .string("another")], ["blob"]),
      (["auth_token": .string("canary-token-other"), "n": .integer(1)], []),
    ]
    var wanted: [ExposedSecret] = []
    for (number, item) in cases.enumerated() {
      try write(item.values, number.isMultiple(of: 2) ? .binary : .xml)
      let report = try lab.snapshot()
      wanted += item.keys.map { ExposedSecret(archive: report.path, file: Self.settings, key: $0) }
    }
    let (found, notRead) = try Repository(lab.repository).exposed([Self.secret], of: "com.example.notes")
    #expect(
      Set(found.map { $0.archive + $0.key }) == Set(wanted.map { $0.archive + $0.key }) && notRead == [])
    #expect(found.count == 4 && !"\(found)".contains("canary"))
    // Neither another app's, nor anything when nothing was moved.
    #expect(try Repository(lab.repository).exposed([Self.secret], of: "com.example.other").found == [])
    #expect(try Repository(lab.repository).exposed([], of: "com.example.notes").found == [])
  }

  @Test func numbersCountUnderTheirOwnKeyOnly() throws {
    try write(["pin": .integer(4711), "count": .integer(4711)])
    _ = try lab.snapshot()
    let pin = MovedSecret(path: Self.settings, key: "pin", value: .integer(4711))
    #expect(
      try Repository(lab.repository).exposed([pin], of: "com.example.notes").found.map(\.key) == ["pin"])
  }

  @Test func encryptedOnesAreNotListedAndDamagedOnesAreTold() throws {
    try write(["auth_token": .string(Self.token)])
    try lab.snapshot { $0.encryption = .recipients([try AgeIdentity.generate().recipient]) }
    let plain = try lab.snapshot()
    var bytes = try lab.stored(plain.path)
    bytes.replaceSubrange(bytes.count / 3..<bytes.count / 3 + 2000, with: [UInt8](repeating: 0, count: 2000))
    let damaged = plain.path.replacing(".tar.zst", with: "_copy.tar.zst")
    try lab.store(damaged, bytes.dropLast(100))
    let (found, notRead) = try Repository(lab.repository).exposed([Self.secret], of: "com.example.notes")
    #expect(found.map(\.archive) == [plain.path])
    #expect(notRead.count == 1 && notRead.first?.hasPrefix(damaged) == true, "\(notRead)")
    expectError { try Repository(lab.directory("nowhere")).exposed([Self.secret], of: "com.example.notes") }
  }
}
