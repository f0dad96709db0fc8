import AgeEncryption
import Cryptography
import DrydockErrors
import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppStores
@testable import ContainerTransaction
@testable import FileSystem
@testable import Formats

/// A setting that moved into the vault is in no undo in the clear: neither in its own transaction's, nor in an earlier
/// one's, nor in what was kept aside, whenever the commit stops.
@Suite struct SealedUndoTests {

  /// Made-up secrets, in each way that a property list writes them.
  static let secrets: PropertyListDictionary = [
    "auth_token": .string("canary-0123456789abcdef"), "bookmark": .data(Array("canary-data-0123456789".utf8)),
    "umlaut": .string("kanarienvögelchen-0123"),
  ]
  static let needles: [Data] = [
    Data("canary-".utf8), Data("kanarien".utf8), Data("kanarien".utf16.flatMap { [0, UInt8($0)] }),
    Data("canary-".utf16.flatMap { [0, UInt8($0)] }),
    Data(Data("canary-".utf8).base64EncodedString().utf8.dropLast(3)),
  ]

  /// A container whose settings hold secrets, changed once before they moved, in a format.
  private func withSecrets(
    _ format: PropertyListFile.Format = .binary, _ body: (Sandbox, DeviceKeys) throws -> Void
  ) throws {
    let keys = DeviceKeys(try AgeIdentity.generate())
    var sandbox = try Sandbox(files: ["Documents/empty.txt": ""])
    sandbox.isScratch = true
    try sandbox.live().createDirectories(Sandbox.settings.parent, mode: 0o755)
    var file = PropertyListFile(format: format, root: Self.secrets)
    file.root["theme"] = .string("dark")
    try sandbox.live().create(Sandbox.settings, file.encoded(), mode: 0o640)
    try sandbox.live().setAttribute(ExtendedAttribute(name: "user.note", value: [7]), of: Sandbox.settings)
    try sandbox.run { try Self.set("theme", "light", $0) }
    // Under an older name, and inside of something else.
    try sandbox.run {
      try $0.changeSettings {
        $0["old_token"] = .dictionary(["value": $0["auth_token"] ?? .boolean(false)])
      }
    }
    try sandbox.run { try $0.changeSettings { $0["old_token"] = nil } }
    try body(sandbox, keys)
  }

  private static func set(_ key: String, _ value: String, _ staged: StagedContainer) throws {
    try staged.changeSettings { $0[key] = .string(value) }
  }

  /// What a migration does: each secret becomes an item, and its setting goes.
  @discardableResult
  private func move(
    _ sandbox: Sandbox, _ keys: DeviceKeys, _ commit: StateDirectory.Place? = nil,
    faults: Seams = .none
  ) throws -> TransactionOutcome<Void> {
    let options = TransactionOptions(commit: commit, keys: keys, faults: faults)
    return try Transaction.run(on: sandbox.container(), .migrate, summary: "move", options: options) {
      staged in
      guard var file = try staged.defaults(Sandbox.settings) else { return }
      var vault = try staged.vault() ?? Vault(new: keys)
      for secret in Self.moved(file.root) {
        vault.put(
          VaultItem(service: "com.example.notes", account: secret.key, value: SecretBytes([1, 2, 3])))
        staged.keepSealed(secret, to: vault.recipients)
        file.root[secret.key] = nil
      }
      try staged.setVault(vault)
      try staged.setDefaults(file, at: Sandbox.settings)
    }
  }

  /// The settings that hold a secret, whatever they are called now.
  private static func moved(_ root: PropertyListDictionary) -> [MovedSecret] {
    let known = secrets.map { MovedSecret(path: Sandbox.settings, key: $0.key, value: $0.value) }
    return known.keys(in: root).compactMap { key in
      root[key].map { MovedSecret(path: Sandbox.settings, key: key, value: $0) }
    }
  }

  /// An app that saves its settings while a commit puts its own in place.
  private func savingMeanwhile(_ sandbox: Sandbox) -> Seams {
    .at(.committed) {
      var file = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings))
      file.root["launchCount"] = .integer(1)
      try sandbox.live().create("new", file.encoded())
      try sandbox.live().rename("new", in: sandbox.live(), to: Sandbox.settings)
    }
  }

  /// The names of the files that were kept aside.
  private func conflictCopies(_ sandbox: Sandbox, _ place: StateDirectory.Place = .beside) throws -> [String]
  {
    var names: [String] = []
    try #require(try sandbox.state(place)).directory("conflict").walk { entry in
      if entry.status.type == .file { names.append(entry.path.nameString) }
      return .into
    }
    return names
  }

  /// Every file of the container and of its state that holds a secret in the clear.
  private func filesWithSecret(_ sandbox: Sandbox) throws -> [String] {
    var found: [String] = []
    let root = try Directory(sandbox.folder.path)
    try root.walk { entry in
      guard entry.status.type == .file else { return .into }
      let bytes = Data(try root.contents(entry.path))
      if Self.needles.contains(where: bytes.holds) { found.append(entry.path.description) }
      return .into
    }
    return found
  }

  static let formats: [(PropertyListFile.Format, StateDirectory.Place)] =
    [(.xml, .beside), (.binary, .inside)]
    + (TestExtent.isFull ? [(.xml, .inside), (.binary, .beside)] : [])

  @Test(arguments: formats)
  func thereAndBack(_ format: PropertyListFile.Format, _ commit: StateDirectory.Place) throws {
    try withSecrets(format) { sandbox, keys in
      let before = try sandbox.listing()
      #expect(try filesWithSecret(sandbox).count > 5, "the earlier undos hold it as long as the settings do")
      try move(sandbox, keys, commit)
      let after = try sandbox.listing()
      #expect(try filesWithSecret(sandbox) == [])
      #expect(try sandbox.stages().isEmpty)

      // Without the key, or with a wrong one, nothing is begun.
      let records = try sandbox.log().count
      for wrong in [nil, DeviceKeys(try AgeIdentity.generate())] {
        expectError(.vaultLocked) { try sandbox.rollback(commit: commit, keys: wrong) }
      }
      #expect(try sandbox.log().count == records)
      expectNone(try sandbox.listing().changes(from: after, comparing: TreeListing.untouched))

      try sandbox.rollback(commit: commit, keys: keys)
      expectNone(try sandbox.listing().changes(from: before))
      // What the settings hold again is nowhere else.
      #expect(try filesWithSecret(sandbox) == ["c/" + Sandbox.settings.description])
      try sandbox.rollback(redoing: true, commit: commit, keys: keys)
      #expect(try filesWithSecret(sandbox) == [])
      try sandbox.rollback(commit: commit, keys: keys)
      expectNone(try sandbox.listing().changes(from: before))
      // The earlier ones can be undone, too.
      for _ in 0..<3 { try sandbox.rollback(commit: commit, keys: keys) }
      let settings = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings))
      #expect(settings.root["theme"] == .string("dark") && settings.root["auth_token"] != nil)
      #expect(settings.format == format)
      // Moved anew, with undos of rollbacks about.
      try move(sandbox, keys, commit)
      #expect(try filesWithSecret(sandbox) == [])
    }
  }

  /// Files of the state that are not sealed, besides what describes an undo entry.
  private func plain(_ sandbox: Sandbox) throws -> [String] {
    var found: [String] = []
    for place in [StateDirectory.Place.beside, .inside] {
      guard let state = try sandbox.state(place) else { continue }
      for name in ["undo", "conflict"] as [ContainerPath] where try state.status(name) != nil {
        let folder = try state.directory(name)
        try folder.walk { entry in
          if entry.status.type == .file,
            !["record.json", "kept"].contains(entry.path.nameString),
            try !AgeHeader.isPresent(in: folder.contents(entry.path))
          {
            found.append("\(name)/\(entry.path)")
          }
          return .into
        }
      }
    }
    return found
  }

  /// A copy may be in any file, in a form that no search finds.
  @Test(arguments: [StateDirectory.Place.beside, .inside])
  func copiesOfEveryKindAreSealed(_ commit: StateDirectory.Place) throws {
    try withSecrets { sandbox, keys in
      let secret = "canary-0123456789abcdef"
      var random = SeededRandom(seed: 1)
      let real = try Age.seal(SecretBytes([1, 2, 3]), to: .recipients(Array(keys.recipients)))
      let files: [(path: ContainerPath, bytes: [UInt8])] = [
        ("Documents/copy.plist", try sandbox.live().contents(Sandbox.settings)),
        ("Documents/session.json", Array("{\"token\": \"\(secret)\"}".utf8)),
        ("Documents/wide.txt", secret.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }),
        ("Documents/base64.txt", Array(Data(secret.utf8).base64EncodedString().utf8)),
        ("Documents/large.bin", random.bytes(2_500_000)),
        ("Documents/none", []), ("Documents/real.age", real),
        // These only start like age files.
        ("Documents/header.txt", Array("age-encryption.org/v1\n\(secret)".utf8)),
        ("Documents/armor.txt", Array("-----BEGIN AGE ENCRYPTED FILE-----\n\(secret)".utf8)),
        ("Documents/appended.age", real + Array(secret.utf8)),
      ]
      for file in files { try sandbox.live().create(file.path, file.bytes, mode: 0o640) }
      for name in ["replaced", "removed", "other"] {
        let queue = try DatabaseQueue(path: sandbox.root + "/Documents/\(name).sqlite")
        try queue.writeWithoutTransaction {
          try $0.execute(
            sql: "CREATE TABLE t (a); INSERT INTO t VALUES (?); DELETE FROM t",
            arguments: [name == "other" ? "" : secret])
        }
        try queue.close()
      }
      let before = try sandbox.listing()
      let other = try sandbox.live().contents("Documents/other.sqlite")
      try sandbox.run(commit: commit) { staged in
        for file in files { try staged.remove(file.path) }
        try staged.write(other, to: "Documents/replaced.sqlite")
        try staged.remove("Documents/removed.sqlite")
      }
      try move(sandbox, keys, commit)
      #expect(try filesWithSecret(sandbox) == [] && plain(sandbox) == [])
      for _ in 0..<2 { try sandbox.rollback(commit: commit, keys: keys) }
      expectNone(try sandbox.listing().changes(from: before))
    }
  }

  @Test(arguments: [StateDirectory.Place.beside, .inside])
  func stoppedAtEveryPoint(_ commit: StateDirectory.Place) throws {
    let others: [FaultPoint] = [
      commit == .inside ? .exchanged : .placed, .partlyExchanged, .moved, .sealed, .reverted,
    ]
    let points = FaultPoint.allCases.filter { !others.contains($0) }
    var (sealed, isOver) = (0, false)
    for (point, count) in points.map({ ($0, 1) }) + (1...30).map({ (FaultPoint.sealed, $0) }) where !isOver {
      try withSecrets { sandbox, keys in
        let before = try sandbox.listing()
        let isOld: Bool
        do {
          let outcome = try move(sandbox, keys, commit, faults: .at(point, count))
          if point == .sealed {
            // There are not that many.
            isOver = outcome.isFinished
            sealed += isOver ? 0 : 1
          }
          isOld = false
        } catch is Stop {
          isOld = true
        }
        // Nobody who recovers has the key.
        _ = try Transaction.recover(sandbox.container())
        #expect(try sandbox.stages().isEmpty)
        if isOld {
          expectNone(try sandbox.listing().changes(from: before), "\(point)")
          try move(sandbox, keys, commit)
        }
        #expect(try filesWithSecret(sandbox) == [], "\(commit), \(point) \(count)")
        try sandbox.rollback(commit: commit, keys: keys)
        expectNone(try sandbox.listing().changes(from: before), "\(point)")
      }
    }
    #expect(sealed > 6, "\(sealed)")
  }

  @Test func theRedoIsSealedAtEveryPoint() throws {
    for point in [FaultPoint.exchanged, .merged, .undoKept, .sealed, .oldRemoved] {
      for redoing in [false, true] {
        try withSecrets { sandbox, keys in
          try move(sandbox, keys)
          if redoing { try sandbox.rollback(commit: .beside, keys: keys) }
          let outcome = try sandbox.rollback(
            redoing: redoing, commit: .beside, keys: keys, faults: .at(point))
          #expect(!outcome.isFinished)
          _ = try Transaction.recover(sandbox.container())
          #expect(
            try filesWithSecret(sandbox) == (redoing ? [] : ["c/" + Sandbox.settings.description]), "\(point)"
          )
        }
      }
    }
  }

  @Test(arguments: [StateDirectory.Place.beside, .inside])
  func whatAnAppWroteAtTheSameMomentIsSealedToo(_ commit: StateDirectory.Place) throws {
    try withSecrets { sandbox, keys in
      let outcome = try move(sandbox, keys, commit, faults: savingMeanwhile(sandbox))
      #expect(outcome.conflicts == [Sandbox.settings] && outcome.isFinished)
      #expect(try filesWithSecret(sandbox) == [])
      let kept = try conflictCopies(sandbox, commit)
      #expect(kept == [Sandbox.settings.nameString + ".age"])
    }
  }

  @Test func anEarlierConflictIsSealed() throws {
    try withSecrets { sandbox, keys in
      let outcome = try sandbox.run(faults: savingMeanwhile(sandbox)) { try Self.set("theme", "blue", $0) }
      #expect(outcome.conflicts == [Sandbox.settings])
      try move(sandbox, keys)
      #expect(try filesWithSecret(sandbox) == [])
    }
  }

  /// Neither its name nor how it starts says that a file is sealed: the app chose both.
  @Test func aConflictCopyThatLooksSealedIsSealedOnce() throws {
    try withSecrets { sandbox, keys in
      let path: ContainerPath = "Documents/notes.age"
      try sandbox.live().create(path, Array("before".utf8), mode: 0o640)
      let app = Seams.at(.committed) {
        try sandbox.live().create("new", Array("age-encryption.org/v1\ncanary-0123456789abcdef".utf8))
        try sandbox.live().rename("new", in: sandbox.live(), to: path)
      }
      let outcome = try sandbox.run(faults: app) { try $0.write(Array("written".utf8), to: path) }
      #expect(outcome.conflicts == [path])
      try move(sandbox, keys)
      #expect(try filesWithSecret(sandbox) == [])
      try sandbox.rollback(commit: .beside, keys: keys)
      try move(sandbox, keys)
      #expect(try filesWithSecret(sandbox) == [])
      #expect(try conflictCopies(sandbox) == ["notes.age.age"])
    }
  }

  /// An earlier undo whose record cannot be read any more holds its files all the same.
  @Test func anUndoWithADamagedRecordIsSealedToo() throws {
    try withSecrets { sandbox, keys in
      let state = try #require(try sandbox.state())
      for name in try state.directory("undo").names() {
        let record = try ContainerPath("undo").appending(name: name).appending(UndoRecord.file.description)
        try state.removeFile(record)
        try state.create(record, Array("{".utf8))
      }
      try move(sandbox, keys)
      #expect(try filesWithSecret(sandbox) == [])
    }
  }

  @Test func bothPlacesOfStateAreLookedInto() throws {
    try withSecrets { sandbox, keys in
      try sandbox.run(commit: .inside) { try Self.set("theme", "blue", $0) }
      #expect(try sandbox.state(.inside) != nil && sandbox.state(.beside) != nil)
      for point in [FaultPoint.exchanged, .merged, .undoKept, .sealed] {
        #expect(try !move(sandbox, keys, .beside, faults: .at(point)).isFinished)
        _ = try Transaction.recover(sandbox.container())
        #expect(try filesWithSecret(sandbox) == [], "\(point)")
        try sandbox.rollback(commit: .beside, keys: keys)
      }
    }
  }

  /// A restore of an old archive brings the setting back; then that is rolled back.
  @Test(arguments: [StateDirectory.Place.beside, .inside])
  func whatCameBackAndWentAgainIsSealed(_ commit: StateDirectory.Place) throws {
    try withSecrets { sandbox, keys in
      let old = try sandbox.live().contents(Sandbox.settings)
      try move(sandbox, keys, commit)
      let after = try sandbox.listing()
      // No key is at hand.
      try sandbox.run(kind: .restore, commit: commit) { try $0.write(old, to: Sandbox.settings) }
      try sandbox.run(commit: commit) { try Self.set("theme", "blue", $0) }
      #expect(try !filesWithSecret(sandbox).isEmpty)
      for _ in 0..<2 { try sandbox.rollback(commit: commit) }
      #expect(try filesWithSecret(sandbox) == [])
      expectNone(try sandbox.listing().changes(from: after))
      try sandbox.rollback(redoing: true, commit: commit, keys: keys)
      #expect(try sandbox.live().contents(Sandbox.settings) == old)
    }
  }

  /// Whatever happens to a container: as soon as its settings are without the secrets that are in its vault, so is all
  /// that is kept.
  @Test(arguments: 1...(TestExtent.isFull ? 6 : 3) as ClosedRange<UInt64>) func inAnyOrder(_ seed: UInt64)
    throws
  {
    var random = SeededRandom(seed: seed)
    try withSecrets { sandbox, keys in
      let original = try sandbox.live().contents(Sandbox.settings)
      var (moves, clean) = (0, 0)
      for step in 0..<14 {
        let commit: StateDirectory.Place = Bool.random(using: &random) ? .beside : .inside
        let choice = step == 0 ? 5 : Int.random(in: 0..<7, using: &random)
        switch choice {
        case 0: try sandbox.run(commit: commit) { try Self.set("theme", "step \(step)", $0) }
        case 1:
          // A rename, or something around it.
          try sandbox.run(commit: commit) {
            try $0.changeSettings { root in
              guard let value = root["auth_token"] else { return }
              root["auth_token"] = nil
              root["token-\(step)"] = step.isMultiple(of: 2) ? value : .array([value])
            }
          }
        case 2:
          try sandbox.run(kind: .restore, commit: commit) { try $0.write(original, to: Sandbox.settings) }
        case 3, 4:
          _ = try? sandbox.rollback(redoing: choice == 4, commit: commit, keys: keys)
        default:
          try move(sandbox, keys, commit)
          moves += 1
        }
        let root = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings)).root
        if Self.moved(root).isEmpty {
          clean += 1
          #expect(try filesWithSecret(sandbox) == [], "seed \(seed), step \(step), choice \(choice)")
        }
      }
      #expect(moves > 0 && clean > 0)
    }
  }

  @Test func whatTheAppChangedSinceIsNotShown() throws {
    try withSecrets { sandbox, keys in
      try move(sandbox, keys)
      var file = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings))
      file.root["umlaut"] = .string("another-canary-of-the-app")
      try sandbox.live().removeFile(Sandbox.settings)
      try sandbox.live().create(Sandbox.settings, file.encoded())
      let error = expectError(.conflict, "umlaut") { try sandbox.rollback(commit: .beside, keys: keys) }
      #expect(error?.message.contains("canary") == false && error?.message.contains("kanarien") == false)
    }
  }

  @Test func damageIsSaid() throws {
    try withSecrets { sandbox, keys in
      let transaction = try #require(try move(sandbox, keys).transaction)
      let state = try #require(try sandbox.state())
      let folder = try state.directory(StateDirectory.folder(StateDirectory.undo, transaction))
      let sealed = try #require(
        try folder.names().map { ContainerPath(name: $0) }.first { $0.nameString.hasSuffix(".age") })
      var bytes = try folder.contents(sealed)
      bytes[bytes.count - 1] ^= 1
      try folder.removeFile(sealed)
      try folder.create(sealed, bytes)
      let before = try sandbox.listing()
      expectError(.nothingToUndo, "encrypted") { try sandbox.rollback(commit: .beside, keys: keys) }
      expectNone(try sandbox.listing().changes(from: before, comparing: TreeListing.untouched))
    }
  }
}
