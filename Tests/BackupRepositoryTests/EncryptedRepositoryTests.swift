@testable import ArchiveManifest
import AgeEncryption
import Cryptography
import Formats
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Repositories with encrypted archives, with keys at hand and without.
@Suite(.everyPlace) struct EncryptedRepositoryTests {
  private let lab: Lab
  private let identity: AgeIdentity
  private let keys: AgeKeys

  init() throws {
    lab = try Lab()
    identity = try AgeIdentity.generate()
    keys = AgeKeys(identities: [identity])
    try lab.write("file", "content")
  }

  private func path(_ name: String) -> String { lab.repository + "/" + name }

  @discardableResult
  private func add(
    _ name: String, instance: String = "box", time: String, id: String? = nil,
    app: String = "com.example.lab", encrypted: Bool = true
  ) throws -> String {
    let id = id.map { Archive.ID(unchecked: $0) }
    let bytes = try HandmadeArchive(lab, id: id, app: app, instance: instance, time: time).bytes()
    try lab.store(
      name, encrypted ? Age.seal(SecretBytes(bytes), to: .recipients([identity.recipient])) : bytes)
    return path(name)
  }

  @Test func aSnapshotIsReadWithItsKeyAndWithNoOther() throws {
    let report = try lab.snapshot { $0.encryption = .recipients([identity.recipient]) }
    #expect(report.isEncrypted && report.path.hasSuffix(".tar.zst.age"))
    expectError(.noIdentity) { try Archive(path: report.path) }
    expectError(.noIdentity) { try Archive.header(path: report.path) }
    #expect(try Archive.header(path: report.path, keys: keys) == report.header)
    let archive = try Archive(path: report.path, keys: keys)
    #expect(archive.encryption?.needsPassphrase == false && archive.snapshot == report.snapshot)
    #expect(
      try Verification.run(Archive(path: report.path, keys: keys), data: true).entries == report.entries)
    let plain = try lab.snapshot()
    #expect(!plain.isEncrypted && plain.snapshot == report.snapshot)
    #expect(try Archive(path: plain.path).encryption == nil)
    #expect(try Archive.encryption(path: plain.path) == nil)
    // What is exported is encrypted to whom it is said.
    let copy = try SnapshotCopy.export(
      archive, to: .file(lab.directory("copy")), encryption: .recipients([identity.recipient]), tool: "test")
    #expect(try Archive(path: copy.path, keys: keys).header.exportedFrom == report.archive)
    expectError(.noIdentity) { try Archive(path: copy.path) }
  }

  @Test func aListTellsWhatNamesSay() throws {
    let name = "com.example.lab_20261114T080000Z_0123abcd\(mark("box")).tar.zst.age"
    // The header says something else than the name, which a key shows.
    try add(name, instance: "other", time: "2026-11-10T00:00:00Z")
    try add("by hand.tar.zst.age", time: "2026-11-12T00:00:00Z")
    try add("plain.tar.zst", time: "2026-11-13T00:00:00Z", encrypted: false)
    let blind = try Repository(lab.repository).list()
    #expect(blind.items.map(\.fileName) == ["plain.tar.zst"] && blind.unreadable.isEmpty)
    #expect(blind.locked.map(\.fileName) == [name, "by hand.tar.zst.age"])
    // The readable one shows whose mark it is.
    let label = ArchiveLabel(
      app: "com.example.lab", instance: "box", time: "2026-11-14T08:00:00Z", id: "0123abcd")
    #expect(blind.locked.map(\.label) == [label, nil])
    #expect(blind.locked.allSatisfy { $0.encryption?.description == "encrypted to 1 recipient (X25519)" })
    #expect(blind.locked.allSatisfy { $0.error?.code == .noIdentity })
    let seen = try Repository(lab.repository).list(keys: keys)
    #expect(seen.locked.isEmpty && seen.items.map(\.instance) == ["other", "box", "box"])
    #expect(seen.items.map { $0.encryption == nil } == [false, false, true])
    #expect(try Repository(lab.repository).list(keys: AgeKeys(identities: [.generate()])).locked.count == 2)

    let filtered = blind.filtered(app: "com.example.lab", instance: "red")
    #expect(filtered.items.isEmpty && filtered.locked.map(\.fileName) == ["by hand.tar.zst.age"])
    #expect(blind.filtered(app: nil, instance: "box").locked.count == 2)
  }

  @Test func whatIsSealedIsFoundByItsName() throws {
    let (box, one) = (mark("my box"), mark("red one"))
    try add("plain.tar.zst", instance: "my box", time: "2026-11-13T00:00:00Z", encrypted: false)
    let first = try add(
      "com.example.lab_20261112T080000Z_0123abcd\(box).tar.zst.age", time: "2026-11-12T08:00:00Z")
    let newest = try add(
      "com.example.lab_20261114T080000Z_4567abcd\(box).tar.zst.age", time: "2026-11-14T08:00:00Z")
    let red = try add(
      "com.example.lab_20261114T080000Z_89ababcd\(one).tar.zst.age", time: "2026-11-14T08:00:00Z")
    let listing = try Repository(lab.repository).list()
    for (name, found) in [
      ("my box@latest", newest), ("#\(one)@latest", red), ("com.example.lab/my box@latest", newest),
      ("my box@2026-11-13", path("plain.tar.zst")), ("my box@2026-11-12", first), ("red one@latest", red),
      ("0123", first), ("0123abcd", first), ("89ababcd00112233445566778899aabb", red),
      (lastName(newest), newest),
    ] { #expect(try listing.find(name) == found, "\(name)") }
    expectError(.ambiguousArchive, "#\(one)@latest, my box@latest") { try listing.find("latest") }
    expectError(.notFound) { try listing.find("blue@latest") }
    expectError(.notFound) { try listing.find("0123ffff") }
  }

  @Test func copiesOfOneArchiveAreOne() throws {
    let id = "0123456789abcdef0123456789abcdef"
    let time = "2026-11-14T08:00:00Z"
    let plain = try add("a.tar.zst", time: time, id: id, encrypted: false)
    let encrypted = try add(
      "com.example.lab_20261114T080000Z_01234567\(mark("box")).tar.zst.age", time: time, id: id)
    for keys in [keys, AgeKeys()] {
      let listing = try Repository(lab.repository).list(keys: keys)
      #expect(listing.idLength() == 8)
      #expect([plain, encrypted].contains(try listing.find("01234567")))
    }
    // Without the key the one that can be read stands for both, the newest too.
    let blind = try Repository(lab.repository).list()
    #expect(try blind.find("latest") == plain && blind.find("0123") == plain)
  }

  @Test(.local("without files")) func aNameIsReadAsItIsWritten() throws {
    let id = try Archive.ID.new()
    for (app, instance) in [
      ("com.example.notes", "box"), ("an app/", "..é"), ("a_b", String(repeating: "x", count: 300)),
    ] {
      for isEncrypted in [true, false] {
        let names = ArchiveLabel(
          app: app, instance: instance, time: "2026-11-20T10:15:00Z", id: id.description
        ).fileNames(isEncrypted: isEncrypted)
        #expect(
          names.count == 3 && names.allSatisfy { $0.utf8.count < 256 && $0.hasSuffix(".age") == isEncrypted })
        for name in names {
          let label = try #require(ArchiveLabel(fileName: name))
          #expect(label.app == ArchiveLabel.plain(app) && label.mark == ArchiveLabel.mark(app, instance))
          #expect(label.nameKey == ArchiveLabel.nameKey(app, instance))
          #expect(
            label.time == "2026-11-20T10:15:00Z" && id.description.hasPrefix(label.id) && label.id.count >= 8)
          #expect(ArchiveLabel.isFileName(Array(name.utf8)))
        }
      }
    }
    for name in [
      "a.tar.zst", "a_20261120T101500Z_0123abcd01234567.tar", "a_20261320T101500Z_0123abcd01234567.tar.zst",
      "a_20261120T101500Z_0123abc01234567.tar.zst", "a_b_20261120T101500Z_0123abcd01234567.tar.zst",
      "_20261120T101500Z_0123abcd01234567.tar.zst", "a_20261120T101500Z_0123abcd.tar.zst",
      "a_20261120T101500Z_0123ABCD01234567.tar.zst.age", "a_20261120T101500Z_0123abcd01234567-.tar.zst",
      "a_20261120T101500Z_0123abcd01234567-0123456.tar.zst",
      "a_20261120T101500Z_0123abcd01234567-01234567-8.tar.zst",
      "a_2026-11-20T10:15_0123abcd01234567.tar.zst", "a_20261120T101500_0123abcd01234567.tar.zst",
      "__.tar.zst", ".tar.zst", "a_20261120T101500Z_0123abcd01234567.tar.zst.zst", "",
    ] { #expect(ArchiveLabel(fileName: name) == nil, "\(name)") }
    let parent = ArchiveLabel(fileName: "a_20261120T101500Z_0123abcd01234567-89abcdef.tar.zst.age")
    #expect(parent?.id == "0123abcd" && parent?.parent == "89abcdef")
  }

  private func mark(_ instance: String) -> String { ArchiveLabel.mark("com.example.lab", instance) }

  /// An archive of which only the name is known is no one's where its mark is that of two instances.
  @Test func aMarkOfTwoInstancesIsOfNeither() throws {
    let name = "com.example.lab_20261114T080000Z_0123abcd\(mark("box")).tar.zst.age"
    try add(name, time: "2026-11-14T08:00:00Z")
    try add("plain.tar.zst", time: "2026-11-13T00:00:00Z", encrypted: false)
    let encrypted = { try #require(try Repository(lab.repository).list().locked.first?.label) }
    #expect(try encrypted().instance == "box" && encrypted().mark == nil)
    try add("claims.tar.zst", instance: "#" + mark("box"), time: "2026-11-13T00:00:00Z", encrypted: false)
    #expect(try encrypted().instance == "#" + mark("box") && encrypted().mark == mark("box"))
    #expect(try Repository(lab.repository).forget(keeping: .last(1)).removed.isEmpty)
  }

  /// Two apps may have the same form in names: their headers tell them apart.
  @Test func appsOfOneFormAreTwo() throws {
    let form = ArchiveLabel.plain("a b")
    try add("one.tar.zst", time: "2026-11-13T00:00:00Z", app: "a b", encrypted: false)
    let other = try add("two.tar.zst", time: "2026-11-14T00:00:00Z", app: form, encrypted: false)
    let listing = try Repository(lab.repository).list()
    #expect(try listing.find("a b/box@latest") == path("one.tar.zst"))
    #expect(try listing.find("\(form)/box@latest") == other)
    let report = try Repository(lab.repository).forgetEverything(app: "a b")
    #expect(try report.removed.count == 1 && lab.isStored(other))
  }

  @Test func anInstanceIsNotNamedLikeAMark() throws {
    let container = try lab.container()
    let named = container.assuming(layout: .generic, app: container.app, instance: "#0123abcd")
    expectError(.usage) { try Snapshot.take(named, to: .repository(lab.repository)) }
  }

  @Test(.local("without files")) func noTwoOwnersHaveOneName() {
    let long = String(repeating: "x", count: 89)
    let texts = [
      "ada smith", "ada-smith", "ada_smith", "李明", "王芳", "", "container", "-", "café", "cafe\u{301}", "Zoë",
      "Zoé", long + "xx", long + "xy", long + "x", ".box", "box", "a/b", "a-b",
    ]
    let forms = texts.map(ArchiveLabel.plain)
    #expect(Set(forms.map { Array($0.utf8) }).count == texts.count, "\(forms)")
    for form in forms {
      #expect(ArchiveLabel.plain(form) == form && form.utf8.count <= 90, "\(form)")
      #expect(ArchiveLabel(fileName: "\(form)_20261120T101500Z_0123abcd01234567.tar.zst")?.app == form)
    }
    #expect(ArchiveLabel.plain("ada-smith") == "ada-smith")
  }

  @Test(.local("without files")) func aTimeMayEndAtAnyPlace() {
    for (text, meaning) in [
      ("2026", "2026"), ("2026-11", "2026-11"), ("2026-11-14", "2026-11-14"),
      ("2026-11-14T12", "2026-11-14T12"), ("2026-11-14T12:05Z", "2026-11-14T12:05"),
      ("2026-12-31T23:59:60Z", "2026-12-31T23:59:60"), ("20261114T120000Z", "2026-11-14T12:00:00"),
    ] { #expect(UTCTime.beginning(text) == meaning, "\(text)") }
    for text in [
      "", "T", "Z", "26", "20266", "2026-", "2026-13", "2026-00", "2026-1", "2026-11-32", "2026-11-14Z",
      "2026-11T12", "2026-11-14T", "2026-11-14T24", "2026-11-14T12:60", "2026-11-14T12:00:61",
      "2026-11-14T12:00:00:00", "2026-11-14T12:00ZZ", "2026-11-14 12:00", "2026-11-14T12:00+01:00",
      "20261314T120000Z", "20261114T120000", "+026-11-14", "２０２６",
    ] { #expect(UTCTime.beginning(text) == nil, "\(text)") }
  }

}
