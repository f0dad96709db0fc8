import AgeEncryption
import DrydockErrors
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import AppStores
@testable import ContainerDiff
@testable import ContainerTransaction
@testable import FileSystem

/// What a container should be, kept in memory.
private struct Model {
  enum Node: Equatable {
    case file([UInt8], mode: UInt16, attributes: [ExtendedAttribute])
    case link([UInt8])
    case directory
  }

  var nodes: [ContainerPath: Node] = [:]

  init(of root: Directory) throws {
    try root.walk { entry in
      let metadata = try root.metadata(entry.path)
      nodes[entry.path] =
        switch entry.status.type {
        case .file:
          .file(
            try root.contents(entry.path), mode: entry.status.mode, attributes: metadata?.attributes ?? [])
        case .symbolicLink: .link(try root.linkTarget(entry.path))
        default: .directory
        }
      return .into
    }
  }

  func below(_ path: ContainerPath) -> [ContainerPath] { nodes.keys.filter { $0.isInside(path) }.sorted() }
  func children(_ path: ContainerPath) -> [ContainerPath] { below(path).filter { $0.parent == path } }

  mutating func makeDirectories(_ path: ContainerPath) {
    for above in [path] + path.ancestors where !above.isRoot && nodes[above] == nil {
      nodes[above] = .directory
    }
  }

  mutating func remove(_ path: ContainerPath) {
    for below in below(path) + [path] { nodes[below] = nil }
  }

  mutating func copy(_ source: ContainerPath, to target: ContainerPath) {
    makeDirectories(target.parent)
    for path in [source] + below(source) { nodes[path.rebased(from: source, to: target)] = nodes[path] }
  }

  /// Whether something that is no directory is at the path or above it.
  func blocks(_ path: ContainerPath) -> Bool {
    path.ancestors.contains { above in nodes[above].map { $0 != .directory } ?? false }
  }
}

@Suite struct StagedModelTests {
  private static let start = [
    "a/one": "1", "a/two": "2", "a/b/three": "3", "a/b/c/four": "4", "d/five": "5", "six": "6",
    "e/f/g/seven": "7",
  ]

  private func randomPath(_ random: inout SeededRandom, _ model: Model) -> ContainerPath {
    if Bool.random(using: &random), let known = model.nodes.keys.sorted().randomElement(using: &random) {
      return known
    }
    let names: [[UInt8]] = [
      Array("a".utf8), Array("b".utf8), Array("n".utf8), [0x78, 0xff], Array("six".utf8),
    ]
    return (0..<Int.random(in: 1...3, using: &random)).reduce(ContainerPath.root) { path, _ in
      path.appending(name: names.randomElement(using: &random) ?? [0x61])
    }
  }

  /// One random operation on both; what the model refuses, the stage must refuse.
  private func step(_ staged: StagedContainer, _ model: inout Model, _ random: inout SeededRandom) throws {
    let path = randomPath(&random, model)
    let other = randomPath(&random, model)
    let exists = model.nodes[path] != nil
    switch Int.random(in: 0..<8, using: &random) {
    case 0, 1:
      let bytes = random.bytes(Int.random(in: 0...40, using: &random))
      var isAllowed = !model.blocks(path)
      var (mode, attributes): (UInt16, [ExtendedAttribute]) = (0o644, [])
      switch model.nodes[path] {
      case .file(_, let own, let kept): (mode, attributes) = (own, kept)
      case nil: break
      default: isAllowed = false
      }
      try attempt(isAllowed) { try staged.write(bytes, to: path) }
      guard isAllowed else { return }
      model.makeDirectories(path.parent)
      model.nodes[path] = .file(bytes, mode: mode, attributes: attributes)
    case 2:
      let isAllowed = !model.blocks(path) && (model.nodes[path] ?? .directory) == .directory
      try attempt(isAllowed) { try staged.createDirectory(path) }
      if isAllowed { model.makeDirectories(path) }
    case 3:
      try attempt(exists) { try staged.remove(path) }
      if exists { model.remove(path) }
    case 4, 5:
      let isMove = Bool.random(using: &random)
      let isAllowed =
        exists && model.nodes[other] == nil && !model.blocks(other) && !other.isInside(path)
      try attempt(isAllowed) { try isMove ? staged.move(path, to: other) : staged.copy(path, to: other) }
      guard isAllowed else { return }
      model.copy(path, to: other)
      if isMove { model.remove(path) }
    case 6:
      guard case .file(let bytes, _, _) = model.nodes[path] else { return }
      var metadata = try #require(try staged.metadata(of: path))
      metadata.mode = [0o600, 0o640, 0o755].randomElement(using: &random) ?? 0o600
      metadata.attributes = [ExtendedAttribute(name: "user.n", value: random.bytes(3))]
      try staged.setMetadata(metadata, of: path)
      model.nodes[path] = .file(bytes, mode: metadata.mode, attributes: metadata.attributes)
    default:
      let isAllowed = !exists && !model.blocks(path)
      guard isAllowed else { return }
      try staged.putLink(at: path, target: [0x78, 0xfe], metadata: nil)
      model.makeDirectories(path.parent)
      model.nodes[path] = .link([0x78, 0xfe])
    }
  }

  private func attempt(_ isAllowed: Bool, _ body: () throws -> Void) throws {
    if isAllowed { return try body() }
    #expect(throws: (any Error).self, performing: body)
  }

  private func compare(_ staged: StagedContainer, _ model: Model, _ seed: UInt64) throws {
    #expect(try staged.descendants(of: .root) == model.below(.root), "seed \(seed)")
    for path in Set(model.nodes.keys).union(["a", "a/one", "a/b/c/four", "gone/gone", .root]) {
      #expect(try staged.children(of: path) == model.children(path), "\(path), seed \(seed)")
      let status = try staged.status(of: path)
      switch model.nodes[path] {
      case .file(let bytes, let mode, let attributes):
        #expect(status?.type == .file && status?.mode == mode, "\(path), seed \(seed)")
        #expect(try staged.read(path) == bytes, "\(path), seed \(seed)")
        #expect(try staged.metadata(of: path)?.attributes == attributes, "\(path), seed \(seed)")
      case .link(let target):
        #expect(
          try status?.type == .symbolicLink && staged.linkTarget(path) == target, "\(path), seed \(seed)")
      case .directory: #expect(status?.type == .directory, "\(path), seed \(seed)")
      case nil: #expect(path.isRoot || status == nil, "\(path), seed \(seed)")
      }
    }
  }

  /// SQLite would create or change what a link leads to.
  @Test func aStagedLinkIsNotOpenedAsADatabase() throws {
    let sandbox = try Sandbox(files: ["a": "a"])
    let outside = sandbox.folder("outside.db")
    try FileManager.default.createSymbolicLink(atPath: sandbox.root + "/link", withDestinationPath: outside)
    _ = try Transaction.dryRun(on: sandbox.container()) { staged in
      try staged.move("link", to: "moved.db")
      expectError(.missing) { try staged.readDatabase(at: "moved.db") { _ in } }
      let write = expectError { try staged.writeDatabase(at: "moved.db") { _ in } }
      #expect(write != nil)
      try staged.remove("moved.db")
    }
    #expect(!FileManager.default.fileExists(atPath: outside))
  }

  @Test(arguments: 1...(TestExtent.isFull ? 25 : 10) as ClosedRange<UInt64>)
  func agreesWithAModel(seed: UInt64) throws {
    var sandbox = try Sandbox(files: Self.start)
    sandbox.isScratch = true
    try sandbox.live().link("six", in: sandbox.live(), to: "d/linked")
    try sandbox.live().setMode(0o640, of: "a/one")
    try sandbox.live().setAttribute(ExtendedAttribute(name: "user.kept", value: [9]), of: "a/two")
    let before = try sandbox.listing()
    var random = SeededRandom(seed: seed)
    var model = try Model(of: sandbox.live())
    try sandbox.run { staged in
      for number in 0..<40 {
        try step(staged, &model, &random)
        if number % 10 == 9 { try compare(staged, model, seed) }
      }
      // Nothing of the live container has moved, not even through a hard link.
      expectNone(try sandbox.listing().changes(from: before, comparing: TreeListing.untouched))
    }
    let after = try Model(of: sandbox.live())
    #expect(after.nodes == model.nodes, "seed \(seed)")
    #expect(try sandbox.stages().isEmpty)
    guard try sandbox.log().last?.state == .undoable else { return }
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before), "seed \(seed)")
  }

  private func own(_ sandbox: Sandbox) throws {
    let live = try sandbox.live()
    for path in ["d/file", "d/other", "d", .root] as [ContainerPath] {
      try live.setAttribute(ExtendedAttribute(name: "user.x", value: [1]), of: path)
      try live.setOwner(user: 501, group: 20, of: path)
    }
    try live.setMode(0o4711, of: "d/file")
    try live.setMode(0o1770, of: "d")
    try live.setMode(0o751, of: .root)
    for path in ["d/other", "d/file", "d", .root] as [ContainerPath] {
      try live.setModified(1_111_111_111_222_222_222, of: path)
    }
  }

  @Test func metadataOfWhatIsReplacedAndOfWhatIsLeft() throws {
    let sandbox = try Sandbox(files: ["d/file": "old", "d/other": "other"])
    try own(sandbox)
    let before = try sandbox.listing()
    try sandbox.run { staged in
      try staged.write([1], to: "d/file")
      try staged.write([2], to: "d/fresh")
    }
    let after = try sandbox.listing()
    #expect(after["d/file"]?.mode == 0o4711 && after["d/file"]?.owner == [501, 20])
    #expect(after["d/file"]?.attributes == before["d/file"]?.attributes)
    #expect(after["d/fresh"]?.owner == [501, 20] && after["d/fresh"]?.mode == 0o644)
    let aspects = TreeListing.copied.subtracting([.content, .size])
    expectNone(
      after.without("d/fresh").changes(from: before, comparing: aspects, ignoringTimesOf: ["d", "d/file"]))
    #expect(after["d/other"]?.inode == before["d/other"]?.inode)
  }

  @Test func aDatabaseMovesWithAllThatBelongsToIt() throws {
    let sandbox = try Sandbox(files: ["data/.notes_SUPPORT/_EXTERNAL_DATA/blob": "blob"])
    let killed = try Command.spawn(
      try Tools.system("sqlite3"),
      [
        "-batch", "\(sandbox.root)/data/notes.sqlite", "PRAGMA journal_mode=WAL", "CREATE TABLE t(x)",
        "INSERT INTO t VALUES (5)", ".shell echo ready", ".shell cat >/dev/null",
      ])
    try killed.waitForLine("ready")
    try killed.end()
    let before = try sandbox.listing()
    #expect(before["data/notes.sqlite-wal"]?.size ?? 0 > 0)
    // As part of its directory, and by itself.
    try sandbox.run { staged in
      try staged.copy("data", to: "copy")
      try staged.move("data/notes.sqlite", to: "elsewhere/renamed.db")
    }
    let paths = try sandbox.listing().paths
    #expect(
      paths == [
        "copy", "copy/.notes_SUPPORT", "copy/.notes_SUPPORT/_EXTERNAL_DATA",
        "copy/.notes_SUPPORT/_EXTERNAL_DATA/blob",
        "copy/notes.sqlite", "data", "elsewhere", "elsewhere/.renamed_SUPPORT",
        "elsewhere/.renamed_SUPPORT/_EXTERNAL_DATA", "elsewhere/.renamed_SUPPORT/_EXTERNAL_DATA/blob",
        "elsewhere/renamed.db",
      ])
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before))
    for path in ["data/notes.sqlite"] {
      let rows = try Command.run(try Tools.system("sqlite3"), ["\(sandbox.root)/\(path)", "SELECT x FROM t"])
      #expect(rows.output == "5\n")
    }
  }

  @Test func whatIsRefused() throws {
    let sandbox = try Sandbox(files: ["a/b": "1", "c": "2"])
    try sandbox.live().createLink("link", target: Array("a".utf8))
    try sandbox.run { staged in
      for body in [
        { try staged.remove(.root) }, { try staged.remove("gone") }, { try staged.move("a", to: "a/x") },
        { try staged.move("c", to: "a/b") }, { try staged.write([1], to: "a") },
        { try staged.write([1], to: "c/x") },
        { _ = try staged.read("a") }, { _ = try staged.read("link") }, { try staged.createDirectory("c") },
        { _ = try staged.read("link/b") }, { try staged.write([1], to: "link/b") },
      ] { #expect(throws: (any Error).self, performing: body) }
    }
    #expect(try sandbox.text("a/b") == "1")
  }
}

/// The vault on the stage.
@Suite struct VaultStagingTests {
  private let sandbox: VaultSandbox

  init() throws { sandbox = try VaultSandbox() }

  @Test func aVaultIsMadeForItsOwnerOnly() throws {
    let sandbox = try VaultSandbox(items: [])
    try sandbox.change { $0.put(VaultSandbox.item("a", "1")) }
    #expect(try sandbox.values() == ["a = 1"])
    let status = try #require(try sandbox.base.live().status(VaultSandbox.path))
    #expect(status.mode == 0o600)
    // Whatever mode somebody gave it, a rewrite takes the others' rights away.
    try sandbox.base.live().setMode(0o644, of: VaultSandbox.path)
    try sandbox.change { $0.put(VaultSandbox.item("b", "2")) }
    #expect(try sandbox.base.live().status(VaultSandbox.path)?.mode == 0o600)
  }

  @Test func withoutAKeyNothingIsStaged() throws {
    let before = try sandbox.base.listing()
    expectError(.vaultLocked) {
      _ = try sandbox.base.run { staged in
        try staged.requireDeviceKeys("vault.rename")
        Issue.record("it went on")
      }
    }
    expectError(.vaultLocked) { _ = try sandbox.base.run { _ = try $0.vault() } }
    let stranger = try DeviceKeys(.generate())
    expectError(.vaultLocked) {
      _ = try Transaction.run(
        on: sandbox.base.container(), .vault, summary: "", options: .init(keys: stranger)
      ) { _ = try $0.vault() }
    }
    expectNone(try sandbox.base.listing().changes(from: before))
  }

  @Test func whatIsTheSameIsNotWritten() throws {
    let before = try sandbox.sealed()
    #expect(try sandbox.change { _ in }.transaction == nil)
    #expect(try sandbox.change { $0.put(VaultSandbox.item("a", "a")) }.transaction == nil)
    #expect(try sandbox.sealed() == before)
  }

  @Test func severalKeysStaySeveral() throws {
    let other = try DeviceKeys(.generate())
    try sandbox.change { try $0.rekey(to: sandbox.keys.recipients + other.recipients) }
    try sandbox.change { $0.put(VaultSandbox.item("c", "c")) }
    let opened = try Vault(opening: sandbox.sealed(), with: other, path: "v")
    #expect(opened.items.count == 3 && opened.recipients == sandbox.keys.recipients + other.recipients)
  }

  @Test func nobodyIsLockedOutBySurprise() throws {
    // Sealed by hand to another key than the document says.
    let document = try sandbox.vault()
    let hand = try DeviceKeys(.generate())
    try sandbox.write(Age.seal(document.encoded(), to: .recipients(hand.recipients)))
    func change(_ body: @escaping (inout Vault) throws -> Void) throws {
      _ = try Transaction.run(
        on: sandbox.base.container(), .vault, summary: "", options: .init(keys: hand)
      ) {
        var vault = try #require(try $0.vault())
        try body(&vault)
        try $0.setVault(vault)
      }
    }
    expectError(.vaultLocked) { try change { $0.put(VaultSandbox.item("c", "c")) } }
    // Other keys that are not at hand are taken, for they are named on purpose.
    let later = try DeviceKeys(.generate())
    try change { try $0.rekey(to: later.recipients) }
    #expect(try Vault(opening: sandbox.sealed(), with: later, path: "v").items.count == 2)
  }

  @Test func aDryRunTellsItemsAndTouchesNothing() throws {
    let before = try sandbox.base.listing()
    let run = { (keys: DeviceKeys?, body: (StagedContainer) throws -> Void) in
      try Transaction.dryRun(on: sandbox.base.container(), options: .init(keys: keys), body: body)
        .difference
    }
    let difference = try run(sandbox.keys) {
      var vault = try #require(try $0.vault())
      vault.remove(VaultSandbox.id("a"))
      var item = VaultSandbox.item("b", "longer")
      item.accessibility = .afterFirstUnlock
      vault.put(item)
      vault.put(VaultSandbox.item("c", "a"))
      try $0.setVault(vault)
    }
    let vault = try #require(difference.vault.first)
    #expect(difference.vault.count == 1 && vault.change == .changed && vault.problem == nil)
    let items = try #require(vault.items)
    #expect(items.map(\.name) == ["s/a", "s/b", "s/c"])
    #expect(items.map(\.change) == [.removed, .changed, .added])
    #expect(items[0].valueAfter == nil && items[2].valueBefore == nil)
    #expect(items[0].valueBefore == items[2].valueAfter, "equal values can be seen to be equal")
    #expect(items[1].valueBefore != items[1].valueAfter)
    #expect(items[1].valueAfter?.hasPrefix("(secret, 6 characters, #") == true)
    #expect(
      items[1].attributes == [.init(name: "accessible", before: "whenUnlocked", after: "afterFirstUnlock")])
    #expect(!String(describing: difference).contains("longer"))
    // Without a key it is a file that is written, by whoever has the bytes.
    let sealed = try sandbox.vault().sealed()
    let closed = try run(nil) { try $0.write(sealed, to: VaultSandbox.path) }.vault.first
    #expect(closed?.items == nil && closed?.problem?.contains("encrypted to 1 recipient") == true)
    // Sealed anew it is the same.
    #expect(try run(sandbox.keys) { try $0.write(sealed, to: VaultSandbox.path) }.vault.isEmpty)
    expectNone(try sandbox.base.listing().changes(from: before, comparing: TreeListing.untouched))
  }

  @Test func aStagedVaultIsChecked() throws {
    let before = try sandbox.sealed()
    func stage(_ bytes: [UInt8], _ keys: DeviceKeys?) throws {
      _ = try Transaction.run(
        on: sandbox.base.container(), .migrate, summary: "", options: .init(keys: keys)
      ) {
        try $0.write(bytes, to: VaultSandbox.path)
      }
    }
    expectError(.checkFailed) { try stage(Array("no vault".utf8), sandbox.keys) }
    expectError(.checkFailed) { try stage(Array(before.dropLast()), sandbox.keys) }
    #expect(try sandbox.sealed() == before)
    // Without a key, or sealed to another one, there is nothing to be seen.
    try stage(before + [0], nil)
    let other = try Vault(new: DeviceKeys(.generate())).sealed()
    try stage(other, sandbox.keys)
    #expect(try sandbox.sealed() == other)
  }

  /// A vault that cannot be opened keeps nothing else from being changed.
  @Test func aDamagedVaultIsAFileLikeAnother() throws {
    try sandbox.write(Array("damaged".utf8))
    expectError(.badVault) { try sandbox.change { $0.put(VaultSandbox.item("c", "c")) } }
    try sandbox.base.run { try $0.write([1], to: "Documents/b.txt") }
    try sandbox.rollback(nil)
    #expect(try sandbox.sealed() == Array("damaged".utf8))
    try sandbox.base.live().removeFile(VaultSandbox.path)
    try sandbox.base.live().createDirectory(VaultSandbox.path)
    expectError(.unsupported) { try sandbox.change { $0.put(VaultSandbox.item("c", "c")) } }
    try sandbox.base.live().removeTree(VaultSandbox.path)
    try sandbox.base.live().createLink(VaultSandbox.path, target: Array("../elsewhere".utf8))
    expectError(.unsupported) { try sandbox.change { $0.put(VaultSandbox.item("c", "c")) } }
  }
}

@Suite struct StageWritingTests {
  @Test("What the disk refuses beside a run is thrown at its end; a file that is gone by then is nothing")
  func failures() throws {
    let directory = try TemporaryDirectory()
    let stage = try Stage(Directory(directory.path), foldsNames: false)
    stage.startWriting { throw DrydockError.system("cannot sync", "/made-up", .noSuchFileOrDirectory) }
    try stage.finishWriting()
    let later = Mutex(false)
    stage.startWriting { throw DrydockError.system("cannot sync", "/made-up", .ioError) }
    stage.startWriting {
      usleep(20_000)
      later.withLock { $0 = true }
    }
    expectError(.io) { try stage.finishWriting() }
    #expect(later.withLock { $0 })
  }

  @Test(
    "Two stages have different names: ext4 would place folders of the same names where others were removed")
  func names() throws {
    let folder = try TemporaryDirectory()
    let directory = try Directory(folder.path)
    let names = (0..<4).map { _ in Stage(directory, foldsNames: false).newName() }
    #expect(Set(names).count == 4)
  }

  @Test("A reason has no advice")
  func reasons() {
    let error = DrydockError.system("cannot write", "/made-up", .noSpace)
    #expect(error.message.contains("; free some space"))
    #expect(DrydockError.reason(of: error) == "/made-up: cannot write: No space left on device")
    let own = DrydockError(.noSpace, "no space; run it again", path: "/made-up")
    #expect(DrydockError.reason(of: own) == "/made-up: no space")
  }
}
