import AgeEncryption
import ArchiveSigning
import Cryptography
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

struct SigningLab {
  let lab: Lab
  let key: SigningKey, sshKey: SigningKey
  let trusted: TrustedKeys, strangers: TrustedKeys
  let stranger: SigningKey

  init() throws {
    let lab = try Lab()
    self.lab = lab
    try lab.write("file", "content")
    try lab.write("Documents/other", SeededRandom.noise(200_000))
    try lab.shell(
      """
      minisign -G -W -p key.pub -s key.sec; minisign -G -W -p stranger.pub -s stranger.sec
      ssh-keygen -q -t ed25519 -N '' -C builder@example.com -f ssh
      """)
    key = try SigningKey(file: lab.directory("key.sec"))
    sshKey = try SigningKey(file: lab.directory("ssh"))
    stranger = try SigningKey(file: lab.directory("stranger.sec"))
    trusted = try TrustedKeys(files: [lab.directory("key.pub"), lab.directory("ssh.pub")])
    strangers = try TrustedKeys(files: [lab.directory("stranger.pub")])
  }

  @discardableResult
  func snapshot(
    _ keys: [SigningKey]? = nil, trusted: TrustedKeys? = nil,
    _ change: (inout SnapshotOptions) -> Void = { _ in }
  ) throws -> SnapshotReport {
    try lab.incremental {
      ($0.signing, $0.trusted) = (keys ?? [key], trusted)
      change(&$0)
    }
  }

  /// The code of the error with which an archive is not opened, or not verified.
  func refusal(
    _ path: String, _ trusted: TrustedKeys? = nil, keys: AgeKeys = AgeKeys(), data: Bool = true
  ) -> String {
    code {
      let archive = try Archive(path: path, keys: keys, trusted: trusted ?? self.trusted)
      _ = try Verification.run(archive, data: data)
    }
  }

  func read(_ path: String) throws -> [UInt8] {
    try isStored(path) ? lab.stored(path) : [UInt8](RawFiles.read(Array(path.utf8)))
  }

  func write(_ path: String, _ bytes: [UInt8]) throws {
    if isStored(path) { try lab.store(path, bytes) } else { try RawFiles.write(bytes, to: Array(path.utf8)) }
  }

  private func isStored(_ path: String) -> Bool { path.hasPrefix(lab.repository + "/") }
}

@Suite(.everyPlace) struct SignedArchiveTests {
  private let signing: SigningLab
  private var lab: Lab { signing.lab }

  init() throws { signing = try SigningLab() }

  @Test func stockProgramsVerifyWithoutDrydock() throws {
    let report = try signing.snapshot([signing.key, signing.sshKey])
    let name = lastName(report.path)
    #expect(
      try lab.storedNames()
        == ["", ".statement", ".statement.minisig", ".statement.sig"].map { name + $0 })
    let output = try lab.changeRepository(
      """
      cd repository
      sha256sum -c --strict '\(name).statement'
      minisign -Vm '\(name).statement' -p ../key.pub
      printf 'builder %s\\n' "$(cat ../ssh.pub)" > ../allowed
      ssh-keygen -Y verify -f ../allowed -I builder -n archive@drydock -s '\(name).statement.sig' < '\(name).statement'
      """)
    #expect(output.contains("\(name): OK") && output.contains("Trusted comment: timestamp:"))
    #expect(report.signedBy.count == 2)
    for trusted in [signing.trusted, try TrustedKeys(files: [lab.directory("ssh.pub")])] {
      #expect(signing.refusal(report.path, trusted) == "none")
    }
    #expect(try Archive(path: report.path, trusted: signing.trusted).signer?.key == signing.key.description)
    #expect(signing.refusal(report.path, signing.strangers) == "untrusted")
  }

  @Test func aStockProgramMaySignThePayload() throws {
    let report = try signing.snapshot([signing.stranger])
    #expect(signing.refusal(report.path) == "untrusted")
    try lab.changeRepository(
      "ssh-keygen -q -Y sign -n archive@drydock -f ssh 'repository/\(lastName(report.path)).statement'")
    #expect(signing.refusal(report.path) == "none")
  }

  @Test func noByteOfAnArchiveCanBeChanged() throws {
    let report = try signing.snapshot()
    let bytes = try signing.read(report.path)
    var random = SeededRandom(seed: 18)
    let places =
      [0] + (0..<60).map { _ in Int.random(in: 0..<bytes.count, using: &random) } + [bytes.count - 1]
    for place in lab.sample(places, 8) {
      var changed = bytes
      changed[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      try signing.write(report.path, changed)
      #expect(signing.refusal(report.path) != "none", "byte \(place)")
    }
    for count in [0, 1, bytes.count / 2, bytes.count - 1] {
      try signing.write(report.path, Array(bytes.prefix(count)))
      #expect(signing.refusal(report.path, data: false) != "none", "\(count) bytes")
    }
    try signing.write(report.path, bytes + [0])
    #expect(signing.refusal(report.path, data: false) != "none")
    try signing.write(report.path, bytes)
    #expect(signing.refusal(report.path) == "none")
  }

  @Test func anotherArchiveUnderASignatureIsRefusedBeforeItIsRead() throws {
    let first = try signing.snapshot()
    try lab.write("file", "other content")
    let second = try signing.snapshot { $0.isFull = true }
    for suffix in [".statement", ".statement.minisig"] {
      let (one, two) = (first.path + suffix, second.path + suffix)
      let bytes = try (signing.read(one), signing.read(two))
      try signing.write(one, bytes.1)
      try signing.write(two, bytes.0)
      // With the signatures alone exchanged, too.
      for path in [first.path, second.path] {
        #expect(signing.refusal(path, data: false) == "badSignature", "\(suffix)")
      }
    }
    // Each has the other's payload, properly signed. Exchanged files are the same thing under other names.
    let bytes = try (signing.read(first.path), signing.read(second.path))
    try signing.write(first.path, bytes.1)
    try signing.write(second.path, bytes.0)
    #expect(signing.refusal(first.path) == "none" && signing.refusal(second.path) == "none")
  }

  @Test func hostilePayloadsAndSignatures() throws {
    let report = try signing.snapshot()
    let (statement, signature) = (report.path + ".statement", report.path + ".statement.minisig")
    let text = try signing.read(statement)
    let good = try signing.read(signature)
    let string = String(decoding: text, as: UTF8.self)
    // Signed by a trusted key, and still not in the one form.
    for changed in [
      string + "\n", string + "# more\n", string.replacing("\n", with: "\r\n"), String(string.dropLast()),
      string.replacing("# size: ", with: "# size: 0"), string.replacing("# app: ", with: "# app:  "),
      string.uppercased(), string.replacing("statement 1", with: "statement x"), "", "\n", "\0",
      string + String(repeating: "# x\n", count: 2000), string.replacing("SHA256 (", with: "SHA256 (/"),
      string.replacing("# time: 2", with: "# time: 3"),
      string.replacing("# contents: ", with: "# contents: 0"),
    ] {
      try signing.write(statement, Array(changed.utf8))
      try signing.write(signature, signing.key.sign(Array(changed.utf8), comment: ""))
      #expect(signing.refusal(report.path, data: false) == "badSignature", "\(changed.prefix(300))")
    }
    try signing.write(statement, Array(string.replacing("statement 1", with: "statement 2").utf8))
    #expect(signing.refusal(report.path) == "newerFormat")
    try signing.write(statement, text)
    for (bytes, expected) in [
      ([], "badSignature"), (Array(good.prefix(80)), "badSignature"), (good + good, "badSignature"),
      ([UInt8](repeating: 65, count: 1 << 20), "badSignature"), (good, "none"),
      (try signing.stranger.sign(text, comment: ""), "untrusted"),
    ] as [([UInt8], String)] {
      try signing.write(signature, bytes)
      #expect(signing.refusal(report.path) == expected)
    }
    try lab.removeStored(signature)
    #expect(signing.refusal(report.path) == "untrusted")
    try lab.removeStored(statement)
    #expect(signing.refusal(report.path) == "untrusted")
    // A name for people says nothing: renamed with its files, it is the same archive.
    try signing.write(statement, text)
    try signing.write(signature, good)
    try lab.changeRepository(
      "cd repository; for f in *; do mv $f mine${f#*_}; done; for f in mine*; do mv $f new.${f#*.}; done")
    #expect(signing.refusal(lab.repository + "/new.tar.zst") == "none")
  }

  @Test func everyArchiveOfAChainNeedsItsSignature() throws {
    let full = try signing.snapshot()
    try lab.write("file", "changed")
    let child = try signing.snapshot()
    #expect(child.header.parent == full.archive && signing.refusal(child.path) == "none")
    let files = [".minisig", ""].map { full.path + ".statement" + $0 }
    let bytes = try files.map(signing.read)
    // First without the signature, then without what it signs, too.
    for (file, words) in zip(
      files, ["needs, cannot be read: it has no signature", "needs, cannot be read: it is not signed"])
    {
      try lab.removeStored(file)
      for acceptsGap in [false, true] {
        let which = "\(lastName(full.path)), which \(lastName(child.path))"
        let error = expectError(.untrusted, which, words) {
          try Archive(path: child.path, trusted: signing.trusted, acceptsGap: acceptsGap)
        }
        #expect(error?.path == full.path)
      }
    }
    // The next signed archive does not need one that nobody could restore.
    try lab.write("file", "changed again")
    let next = try signing.snapshot()
    #expect(next.header.kind == .full && next.parentProblem?.contains("cannot be read") == true)
    for (file, bytes) in zip(files, bytes) { try signing.write(file, bytes) }
    #expect(signing.refusal(child.path) == "none" && signing.refusal(next.path) == "none")
    // Nor one of a key that is not trusted here; without a policy the own key counts.
    let other = try signing.snapshot([signing.stranger], trusted: signing.trusted) { $0.isFull = true }
    try lab.write("file", "and again")
    #expect(try signing.snapshot().header.kind == .full)
    #expect(signing.refusal(other.path) == "untrusted")
  }

  @Test func encryptedArchives() throws {
    let identity = try AgeIdentity.generate()
    let keys = AgeKeys(identities: [identity])
    let target = AgeTarget.recipients([identity.recipient])
    let report = try signing.snapshot { $0.encryption = target }
    #expect(signing.refusal(report.path, keys: keys) == "none")
    let text = String(decoding: try signing.read(report.path + ".statement"), as: UTF8.self)
    // The instance's name is only inside.
    #expect(!text.contains("box") && text.contains("# app: com.example.lab\n"))
    #expect(try lab.changeRepository("cd repository; sha256sum -c --strict *.statement").contains("OK"))
    // The same archive, encrypted once more by somebody who can open it.
    let scratch = lab.directory("again")
    try lab.make(scratch)
    _ = try Repository.rekey(
      report.path, keys: keys, to: .file(scratch + "/copy.tar.zst.age"), encryption: target)
    try signing.write(report.path, signing.read(scratch + "/copy.tar.zst.age"))
    #expect(signing.refusal(report.path, keys: keys, data: false) == "badSignature")
  }

  @Test func aCacheWithoutKeyAddsToSignedChainsOnly() throws {
    let identity = try AgeIdentity.generate()
    let cache = lab.directory("cache")
    func snapshot(_ keys: [SigningKey]) throws -> SnapshotReport {
      try signing.snapshot(keys) {
        $0.encryption = .recipients([identity.recipient])
        $0.cache = cache
      }
    }
    let first = try snapshot([signing.key])
    try lab.write("file", "changed")
    let second = try snapshot([signing.key])
    #expect(second.header.parent == first.archive)
    #expect(signing.refusal(second.path, keys: AgeKeys(identities: [identity])) == "none")
    try lab.removeStored(first.path + ".statement")
    try lab.write("file", "changed again")
    #expect(try snapshot([signing.key]).header.kind == .full)
  }

  @Test(.atEachPlace) func rekeySignsAgainOrLeavesTheArchive() throws {
    let identity = try AgeIdentity.generate()
    let (keys, target) = (AgeKeys(identities: [identity]), AgeTarget.recipients([identity.recipient]))
    let report = try signing.snapshot()
    try lab.expectUnchangedRepository {
      expectError(.untrusted) { try Repository.rekey(report.path, keys: keys, to: nil, encryption: target) }
      // What is signed again must have been signed by the same.
      let other = CopySigning(keys: [signing.stranger])
      expectError(.untrusted) {
        try Repository.rekey(report.path, keys: keys, to: nil, encryption: target, signing: other)
      }
    }
    let replaced = try Repository.rekey(
      report.path, keys: keys, to: nil, encryption: target, signing: CopySigning(keys: [signing.key]))
    #expect(replaced.path == report.path + ".age" && signing.refusal(replaced.path, keys: keys) == "none")
    #expect(try lab.storedNames().count == 3)
    let copy = try Repository.rekey(
      replaced.path, keys: keys, to: .file(lab.directory("copy.tar.zst.age")), encryption: target)
    #expect(copy.losesSignature && signing.refusal(copy.path, keys: keys) == "untrusted")
    let signed = try Repository.rekey(
      replaced.path, keys: keys, to: .file(lab.directory("signed.tar.zst.age")), encryption: target,
      signing: CopySigning(keys: [signing.sshKey], trusted: signing.trusted))
    #expect(!signed.losesSignature && signing.refusal(signed.path, keys: keys) == "none")
  }

  @Test(.atEachPlace) func exportsAndSigningLater() throws {
    let report = try lab.snapshot()
    let signing = CopySigning(keys: [self.signing.key])
    expectError(.untrusted) { try Archive(path: report.path, trusted: signing.sources) }
    _ = try Repository.sign(report.path, with: signing.keys, keys: AgeKeys())
    #expect(self.signing.refusal(report.path) == "none")
    let exported = try SnapshotCopy.export(
      Archive(path: report.path, trusted: signing.sources), to: .file(lab.directory("copy.tar.zst")),
      signing: signing.keys, tool: "test")
    #expect(self.signing.refusal(exported.path) == "none")
    // A damaged archive is not signed.
    var bytes = try self.signing.read(report.path)
    bytes[bytes.count / 2] ^= 1
    try self.signing.write(report.path, bytes)
    expectError { try Repository.sign(report.path, with: signing.keys, keys: AgeKeys()) }
  }

  @Test func forgetRemovesSignaturesWithTheirArchives() throws {
    let first = try signing.snapshot { $0.isFull = true }
    let second = try signing.snapshot { $0.isFull = true }
    // What killed snapshots leave: a signature payload before its archive, and one that was being written.
    let left = lab.repository + "/com.example.lab_20200101T000000Z_0123456789abcdef.tar.zst"
    for suffix in [".statement", ".statement.sig", ".statement.minisig.drydock-new"] {
      try signing.write(left + suffix, [1])
    }
    let removed = try Repository(lab.repository).forget(keeping: .last(1)).removed
    #expect(removed.flatMap(\.paths) == [first.path])
    #expect(
      try lab.storedNames() == ["", ".statement", ".statement.minisig"].map { lastName(second.path) + $0 })
    try Repository(lab.repository).forgetEverything(app: "com.example.lab")
    #expect(try lab.storedNames().isEmpty)
  }

  @Test func compactionSignsOrKeepsTheChain() throws {
    try lab.write("large", SeededRandom.noise(2_000_000))
    for index in 0..<3 {
      try lab.write("Documents/noise", SeededRandom.noise(400_000 + index))
      try signing.snapshot()
    }
    let policy = RetentionPolicy.last(1)
    var options = CompactionOptions.share(0.05)
    try lab.expectUnchangedRepository {
      let kept = try Repository(lab.repository).forget(keeping: policy, compacting: options)
      #expect(kept.notCompacted.first?.reason.contains("give the signing key") == true)
      options.signing = CopySigning(keys: [signing.stranger], trusted: signing.strangers)
      let foreign = try Repository(lab.repository).forget(keeping: policy, compacting: options)
      #expect(
        foreign.compacted.isEmpty && foreign.notCompacted.first?.reason.contains("not a trusted key") == true)
    }
    options.signing = CopySigning(keys: [signing.key])
    let report = try Repository(lab.repository).forget(keeping: policy, compacting: options)
    #expect(report.compacted.count == 1 && report.notCompacted.isEmpty)
    let listing = try Repository(lab.repository).list(keys: AgeKeys(), trusted: signing.trusted)
    #expect(listing.items.count == 1 && listing.items.allSatisfy { signing.refusal($0.path) == "none" })
    #expect(try lab.storedNames().count == 3)
  }

  @Test func aListShowsWhoSigned() throws {
    try signing.snapshot()
    try signing.snapshot([signing.stranger]) { $0.isFull = true }
    try lab.snapshot()
    let repository = Repository(lab.repository)
    #expect(try repository.list().items.map(\.signature) == [.present, .present, .none])
    let states = try repository.list(keys: AgeKeys(), trusted: signing.trusted).items.map(\.signature)
    guard case .trusted(let signer) = states[0], case .refused(let reason) = states[1], states[2] == .none
    else {
      Issue.record("\(states)")
      return
    }
    #expect(signer.key == signing.key.description && reason.contains("not a trusted key"))
  }

  @Test(.local("a file of this machine")) func archivesAreNotSignedUnderNamesThatStockProgramsMisread() throws
  {
    expectError(.unsupported) {
      try lab.snapshot(to: lab.directory("a\\b.tar.zst")) { $0.signing = [signing.key] }
    }
    #expect(!RawFiles.exists(Array(lab.directory("a\\b.tar.zst").utf8)))
  }
}
