@testable import ArchiveManifest
import AgeEncryption
import AppStores
import ArchiveFile
import Cryptography
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// The items that may leave, in archives: who has them, who never has, and what is refused.
@Suite(.everyPlace) struct VaultArchiveTests {
  private func scene() throws -> (VaultLab, DeviceKeys) {
    let lab = try VaultLab()
    let keys = try DeviceKeys(.generate())
    var vault = try Vault(new: keys)
    vault.put(VaultLab.item("leaves", "leaving canary"))
    vault.put(VaultLab.item("stays", "staying canary", .whenUnlockedThisDeviceOnly))
    vault.put(VaultLab.item("asks", "asking canary", .whenUnlocked, [.userPresence]))
    try lab.write(vault)
    return (lab, keys)
  }

  private func extract(_ path: String, _ lab: VaultLab) throws -> VaultExtract? {
    try lab.open(path).vaultExtract()
  }

  @Test func onlyAnEncryptedArchiveHasThemAndOnlyWithTheKey() throws {
    let (lab, keys) = try scene()
    let plain = try lab.snapshot(encrypted: false, keys)
    #expect(try plain.vault?.leaving == nil && extract(plain.path, lab) == nil)
    let encrypted = try lab.snapshot(encrypted: true, nil)
    #expect(try encrypted.vault?.leaving == nil && extract(encrypted.path, lab) == nil)
    let both = try lab.snapshot(encrypted: true, keys)
    #expect(both.vault == SnapshotVault(path: try ContainerPath(VaultLab.vault), leaving: 1, staying: 2))
    let found = try #require(try extract(both.path, lab))
    #expect(found.document.sorted.map(\.text) == ["leaving canary"])
    #expect(found.staying.map(\.name) == ["s/asks", "s/stays"])
    #expect(try found.document.device == lab.vault(keys).device && found.document.recipients.isEmpty)
    #expect([plain, encrypted, both].allSatisfy { $0.snapshot == plain.snapshot && !$0.isIncomplete })
    for report in [plain, encrypted, both] { _ = try Verification.run(lab.open(report.path), data: true) }
  }

  /// What does not leave is in the archive sealed, and nowhere else.
  @Test func theStreamHoldsNothingMore() throws {
    let (lab, keys) = try scene()
    let archive = try lab.open(lab.snapshot(encrypted: true, keys).path)
    var bytes: [UInt8] = []
    try archive.parts[0].reader.read(offset: 0, length: archive.parts[0].reader.tarSize) { bytes += $0 }
    let text = String(decoding: bytes, as: UTF8.self)
    let base64 = { (text: String) in
      SecretBytes(Array(text.utf8)).withBytes { Data($0).base64EncodedString() }
    }
    #expect(text.contains(base64("leaving canary")))
    for secret in ["staying canary", "asking canary"] {
      #expect(!text.contains(secret) && !text.contains(base64(secret)))
    }
  }

  @Test func aKeyThatDoesNotFitIsToldAndTheArchiveIsMade() throws {
    let (lab, _) = try scene()
    let report = try lab.snapshot(encrypted: true, DeviceKeys(.generate()))
    #expect(report.isIncomplete && report.vault?.problem?.contains("device key") == true)
    #expect(try extract(report.path, lab) == nil)
    try lab.lab.write(VaultLab.vault, "damaged")
    let damaged = try lab.snapshot(encrypted: true, DeviceKeys(.generate()))
    #expect(damaged.isIncomplete && damaged.vault?.problem?.contains("not an age file") == true)
    try lab.lab.remove(VaultLab.vault)
    #expect(try lab.snapshot(encrypted: true, DeviceKeys(.generate())).vault == nil)
  }

  @Test(.atEachPlace) func anExportKeepsThemWhereItIsEncrypted() throws {
    let (lab, keys) = try scene()
    let source = try lab.open(lab.snapshot(encrypted: true, keys).path)
    let target = AgeTarget.recipients([try VaultLab.archiveKey.get().recipient])
    let kept = try SnapshotCopy.export(
      source, to: .file(lab.lab.directory("kept")), encryption: target, tool: "test")
    #expect(try !kept.dropsVaultItems && extract(kept.path, lab) == source.vaultExtract())
    let dropped = try SnapshotCopy.export(source, to: .file(lab.lab.directory("dropped")), tool: "test")
    #expect(try dropped.dropsVaultItems && extract(dropped.path, lab) == nil)
    #expect(try lab.open(kept.path).snapshot == Archive(path: dropped.path).snapshot)
  }

  private func handmade(
    _ lab: VaultLab, _ items: [VaultItem], _ change: (inout HandmadeArchive) throws -> Void = { _ in }
  ) throws -> String {
    var archive = try HandmadeArchive(lab.lab)
    try archive.addFile("a.txt", "content")
    archive.encryption = .recipients([try VaultLab.archiveKey.get().recipient])
    let document = Vault(device: String(repeating: "0a", count: 16), items: items)
    archive.vault = document.encoded().withBytes { Array($0) }
    try change(&archive)
    return try archive.write()
  }

  private func problem(_ path: String, _ lab: VaultLab) -> String {
    code { try Verification.run(lab.open(path), data: true) }
  }

  @Test func whatIsWrongWithThemIsRefused() throws {
    let lab = try VaultLab()
    let item = VaultLab.item("leaves", "value")
    #expect(try problem(handmade(lab, [item]), lab) == "none")
    typealias Change = (inout HandmadeArchive) throws -> Void
    /// The manifest says another place.
    func record(_ place: @escaping (MemberLocation) -> (UInt64, UInt64)) -> Change {
      {
        $0.vaultRecord = {
          MemberLocation(offset: place($0).0, length: place($0).1, sha256: $0.sha256)
        }
      }
    }
    let other = try SHA256.hash([1])
    let wrong: [(String, Change)] = [
      ("not encrypted", { $0.encryption = nil }),
      ("not encrypted, and no record", { ($0.encryption, $0.vaultRecord) = (nil, { _ in nil }) }),
      ("no record", { $0.vaultRecord = { _ in nil } }),
      ("a record of nothing", { ($0.vault, $0.claimsVault) = (nil, true) }),
      ("another hash", { $0.vaultRecord = { .init(offset: $0.offset, length: $0.length, sha256: other) } }),
      ("another place", record { ($0.offset - 512, $0.length) }),
      ("in an entry's content", record { ($0.offset - 1536, $0.length) }),
      ("unaligned", record { ($0.offset + 1, $0.length) }), ("outside", record { (1 << 40, $0.length) }),
      ("endless", record { ($0.offset, 1 << 62) }), ("shorter", record { ($0.offset, $0.length - 1) }),
      ("no JSON", { $0.vault = Array("{".utf8) }),
      ("half a record", { $0.sql = "DELETE FROM property WHERE name = 'vault-length'" }),
      ("text for a number", { $0.sql = "UPDATE property SET value = '512' WHERE name = 'vault-offset'" }),
      ("negative", { $0.sql = "UPDATE property SET value = -512 WHERE name = 'vault-offset'" }),
    ]
    for (name, change) in wrong {
      #expect(try problem(handmade(lab, [item], change), lab) == "damaged", "\(name)")
    }
    // Nobody is made to take what may not have left.
    for item in [
      VaultLab.item("a", "v", .whenUnlockedThisDeviceOnly),
      VaultLab.item("a", "v", .whenUnlocked, [.userPresence]),
    ] {
      #expect(try problem(handmade(lab, [item]), lab) == "damaged")
    }
  }

  /// A full restore looks at all of the stream, too, without verify.
  @Test func aRestoreRefusesWhatTheManifestDoesNotSay() throws {
    let lab = try VaultLab()
    let path = try handmade(lab, [VaultLab.item("a", "v")]) { $0.vaultRecord = { _ in nil } }
    expectError(.damaged) { try lab.restore(path, nil) }
    let misplaced = try handmade(lab, [VaultLab.item("a", "v")]) { archive in
      archive.vaultRecord = { .init(offset: $0.offset - 512, length: $0.length, sha256: $0.sha256) }
    }
    expectError(.damaged) { try lab.restore(misplaced, nil) }
    #expect(!lab.lab.exists("a.txt"))
  }
}
