import Foundation
import TestSupport
import Testing

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

  @Test(arguments: 1...25 as ClosedRange<UInt64>) func agreesWithAModel(seed: UInt64) throws {
    try Ship.withFiles(Self.start) { ship in
      try ship.live().link("six", in: ship.live(), to: "d/linked")
      try ship.live().setMode(0o640, of: "a/one")
      try ship.live().setAttribute(ExtendedAttribute(name: "user.kept", value: [9]), of: "a/two")
      let before = try ship.listing()
      var random = SeededRandom(seed: seed)
      var model = try Model(of: ship.live())
      try ship.run { staged in
        for number in 0..<40 {
          try step(staged, &model, &random)
          if number % 10 == 9 { try compare(staged, model, seed) }
        }
        // Nothing of the live container has moved, not even through a hard link.
        expectNone(try ship.listing().changes(from: before, comparing: TreeListing.untouched))
      }
      let after = try Model(of: ship.live())
      #expect(after.nodes == model.nodes, "seed \(seed)")
      #expect(try ship.stages().isEmpty)
      guard try ship.log().last?.state == .undoable else { return }
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before), "seed \(seed)")
    }
  }

  private func own(_ ship: Ship) throws {
    let live = try ship.live()
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
    try Ship.withFiles(["d/file": "old", "d/other": "other"]) { ship in
      try own(ship)
      let before = try ship.listing()
      try ship.run { staged in
        try staged.write([1], to: "d/file")
        try staged.write([2], to: "d/fresh")
      }
      let after = try ship.listing()
      #expect(after["d/file"]?.mode == 0o4711 && after["d/file"]?.owner == [501, 20])
      #expect(after["d/file"]?.attributes == before["d/file"]?.attributes)
      #expect(after["d/fresh"]?.owner == [501, 20] && after["d/fresh"]?.mode == 0o644)
      let aspects = TreeListing.copied.subtracting([.content, .size])
      expectNone(
        after.without("d/fresh").changes(from: before, comparing: aspects, ignoringTimesOf: ["d", "d/file"]))
      #expect(after["d/other"]?.inode == before["d/other"]?.inode)
    }
  }

  @Test func aDatabaseMovesWithAllThatBelongsToIt() throws {
    try Ship.withFiles(["data/.notes_SUPPORT/_EXTERNAL_DATA/blob": "blob"]) { ship in
      let killed = try Command.spawn(
        try Tools.system("sqlite3"),
        [
          "-batch", "\(ship.root)/data/notes.sqlite", "PRAGMA journal_mode=WAL", "CREATE TABLE t(x)",
          "INSERT INTO t VALUES (5)", ".shell echo ready", ".shell cat >/dev/null",
        ])
      try killed.waitForLine("ready")
      killed.kill()
      _ = try killed.wait()
      let before = try ship.listing()
      #expect(before["data/notes.sqlite-wal"]?.size ?? 0 > 0)
      // As part of its directory, and by itself.
      try ship.run { staged in
        try staged.copy("data", to: "copy")
        try staged.move("data/notes.sqlite", to: "elsewhere/renamed.db")
      }
      let paths = try ship.listing().paths
      #expect(
        paths == [
          "copy", "copy/.notes_SUPPORT", "copy/.notes_SUPPORT/_EXTERNAL_DATA",
          "copy/.notes_SUPPORT/_EXTERNAL_DATA/blob",
          "copy/notes.sqlite", "data", "elsewhere", "elsewhere/.renamed_SUPPORT",
          "elsewhere/.renamed_SUPPORT/_EXTERNAL_DATA", "elsewhere/.renamed_SUPPORT/_EXTERNAL_DATA/blob",
          "elsewhere/renamed.db",
        ])
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before))
      for path in ["data/notes.sqlite"] {
        let rows = try Command.run(try Tools.system("sqlite3"), ["\(ship.root)/\(path)", "SELECT x FROM t"])
        #expect(rows.output == "5\n")
      }
    }
  }

  @Test func whatIsRefused() throws {
    try Ship.withFiles(["a/b": "1", "c": "2"]) { ship in
      try ship.live().createLink("link", target: Array("a".utf8))
      try ship.run { staged in
        for body in [
          { try staged.remove(.root) }, { try staged.remove("gone") }, { try staged.move("a", to: "a/x") },
          { try staged.move("c", to: "a/b") }, { try staged.write([1], to: "a") },
          { try staged.write([1], to: "c/x") },
          { _ = try staged.read("a") }, { _ = try staged.read("link") }, { try staged.createDirectory("c") },
          { _ = try staged.read("link/b") }, { try staged.write([1], to: "link/b") },
        ] { #expect(throws: (any Error).self, performing: body) }
      }
      #expect(try ship.text("a/b") == "1")
    }
  }
}
