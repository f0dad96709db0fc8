import DrydockErrors
import TestSupport

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// Two containers, `c` and `d`, that share a group; `c` has another one of its own.
struct GroupLab {
  static let shared: ContainerPath = ".groups/group.shared"
  static let own: ContainerPath = ".groups/group.own"
  static let files = [
    "c/Documents/a.txt": "a", "c/Documents/keep/b.txt": "b", "Shared/one/note.txt": "note",
    "Shared/one/gone.txt": "gone", "Shared/one/deep/down/x.txt": "x", "Shared/two/own.txt": "own",
    "d/Documents/d.txt": "d",
  ]

  let folder: TemporaryDirectory

  static func with(_ body: (GroupLab) throws -> Void) throws {
    try TemporaryDirectory.with { folder in
      let lab = GroupLab(folder: folder)
      for (path, text) in files { try lab.put(path, text) }
      try Directory(folder("Shared")).setMode(0o750, of: "one")
      try body(lab)
    }
  }

  func put(_ path: String, _ text: String) throws {
    let base = try Directory(folder.path)
    try base.createDirectories(ContainerPath(path).parent, mode: 0o755)
    try RawFiles.write(Array(text.utf8), to: Array("\(folder.path)/\(path)".utf8))
  }

  func text(_ path: String) throws -> String {
    String(decoding: try Directory(folder.path).contents(ContainerPath(path)), as: UTF8.self)
  }

  func exists(_ path: String) throws -> Bool { try Directory(folder.path).status(ContainerPath(path)) != nil }

  func container(_ name: String = "c", in base: String? = nil) throws -> Container {
    var configuration = Configuration()
    configuration.groups =
      name == "c"
      ? ["group.shared": "../Shared/one", "group.own": "../Shared/two"]
      : ["group.shared": (base ?? folder.path) + "/Shared/one"]
    return try Container(at: (base ?? folder.path) + "/" + name, configuration: configuration)
  }

  /// All roots, without Drydock's own state in them.
  func listings(in base: String? = nil) throws -> [TreeListing] {
    try ["c", "d", "Shared/one", "Shared/two"].map {
      try TreeListing((base ?? folder.path) + "/" + $0).without(".drydock-state")
    }
  }

  /// What is not as it was, in any root.
  func changes(
    from old: [TreeListing], in base: String? = nil,
    comparing aspects: Set<TreeEntry.Aspect> = TreeListing.copied
  ) throws -> String {
    zip(try listings(in: base), old).map { $0.changes(from: $1, comparing: aspects) }.filter { !$0.isEmpty }
      .joined(separator: "\n")
  }

  /// Changes each of the three roots.
  static func change(_ staged: StagedContainer) throws {
    try staged.write(Array("A".utf8), to: "Documents/a.txt")
    try staged.write(Array("NOTE".utf8), to: shared.appending("note.txt"))
    try staged.remove(shared.appending("gone.txt"))
    try staged.move("Documents/keep", to: shared.appending("keep"))
    try staged.write(Array("OWN".utf8), to: own.appending("new").appending("own.txt"))
  }

  @discardableResult
  func run(
    _ name: String = "c", commit: CommitPreference = .automatic, faults: FaultInjection = .none,
    _ body: (StagedContainer) throws -> Void = change
  ) throws -> TransactionOutcome<Void> {
    var options = TransactionOptions()
    (options.faults, options.commit) = (faults, commit)
    return try Transaction.run(on: container(name), .migrate, summary: "test", options: options, body: body)
  }

  /// Whether all roots are as ``change(_:)`` makes them.
  func isNew(in base: String? = nil) throws -> Bool {
    let base = try Directory(base ?? folder.path)
    return try base.contents("c/Documents/a.txt") == Array("A".utf8)
      && base.contents("Shared/one/note.txt") == Array("NOTE".utf8)
      && base.status("Shared/one/gone.txt") == nil && base.status("c/Documents/keep") == nil
      && base.contents("Shared/one/keep/b.txt") == Array("b".utf8)
      && base.contents("Shared/two/new/own.txt") == Array("OWN".utf8)
      && base.contents("Shared/one/deep/down/x.txt") == Array("x".utf8)
  }

  /// Drydock's own files that are left beside and in the groups.
  func traces() throws -> [String] {
    var found: [String] = []
    try Directory(folder("Shared")).walk { entry in
      if entry.path.nameString.hasPrefix(".drydock-") { found.append(entry.path.description) }
      return .into
    }
    return found
  }

  func failure(_ body: () throws -> Void) -> DrydockError? { Ship(folder: folder).failure(body) }
}
