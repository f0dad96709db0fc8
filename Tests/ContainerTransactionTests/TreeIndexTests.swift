import FileSystem
import TestSupport
import Testing

@testable import ContainerTransaction

/// The index of a tree against a dictionary.
@Suite struct TreeIndexTests {
  private static func path(_ random: inout SeededRandom) -> ContainerPath {
    let names = ["a", "b", "a-b", "ab", "é", "long name", "c"]
    let depth = Int.random(in: 1...3, using: &random)
    return (0..<depth).reduce(.root) { path, _ in
      path.appending(name: Array(names[Int.random(in: 0..<names.count, using: &random)].utf8))
    }
  }

  private static let types: [FileType] = [.file, .directory, .symbolicLink, .other]

  private static func status(_ random: inout SeededRandom) -> FileStatus {
    var status = FileStatus(
      type: types[Int.random(in: 0..<types.count, using: &random)],
      identity: FileIdentity(
        device: .random(in: 1...3, using: &random),
        // Some have the same lower half.
        inode: .random(in: 1...9, using: &random) << 32 | .random(in: 1...50, using: &random)),
      size: .random(in: 0 ... .max, using: &random), modified: .random(in: .min ... .max, using: &random),
      changed: .random(in: .min ... .max, using: &random), mode: .random(in: 0...0o7777, using: &random),
      user: .random(in: 0 ... .max, using: &random), group: .random(in: 0...2, using: &random))
    (status.mount, status.blocks) = (.random(in: 1...3, using: &random), .random(in: 1...99, using: &random))
    status.links = .random(in: 1...3, using: &random)
    return status
  }

  /// What the index has of a status.
  private static func kept(_ status: FileStatus) -> FileStatus {
    var status = status
    (status.mount, status.blocks) = (0, 0)
    if status.type == .directory { (status.size, status.links) = (0, 0) }
    return status
  }

  @Test(arguments: 1...5) func itIsADictionary(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var (table, model): (TreeIndex, [ContainerPath: FileStatus]) = (TreeIndex(), [:])
    for _ in 0..<400 {
      let path = Self.path(&random)
      let status = Bool.random(using: &random) || model.count < 50 ? Self.status(&random) : nil
      table[path] = status
      model[path] = status.map(Self.kept)
      #expect(table.count == model.count && table[path] == model[path])
    }
    #expect(Dictionary(table.map { ($0, $1) }, uniquingKeysWith: { a, _ in a }) == model)
    for _ in 0..<200 {
      let path = Self.path(&random)
      #expect(table[path] == model[path], "\(path)")
    }
    let large = table.filter { $1.size > .max / 2 }
    #expect(Set(large.paths) == Set(model.filter { $1.size > .max / 2 }.keys))
    let inodes = InodePaths(table)
    for status in model.values {
      #expect(inodes[status.identity] == model.filter { $1.identity == status.identity }.keys.min())
      #expect(inodes.contains(half: UInt32(truncatingIfNeeded: status.identity.inode)))
      let other = FileIdentity(device: 4, inode: status.identity.inode)
      #expect(inodes[other] == nil && !inodes.contains(half: 51))
    }
  }

  @Test func theIndexIsReadAsItWasWritten() throws {
    let sandbox = try Sandbox(files: ["Documents/a": "a", "Documents/sub/b": "b", "Library/c": "c"])
    let live = try sandbox.live()
    let index = try TreeIndex(of: live)
    #expect(
      Set(index.paths.map(\.description)) == [
        "Documents", "Documents/a", "Documents/sub", "Documents/sub/b", "Library", "Library/c",
      ])
    let other = try Sandbox(files: [:])
    let folder = try Directory(other.root)
    try index.write(to: folder)
    let read = try TreeIndex(in: folder)
    #expect(read.count == 6 && read.differences(from: index) == [])
    try folder.removeFile(TreeIndex.file)
    try index.write(to: folder, below: "Documents")
    let part = try TreeIndex(in: folder)
    #expect(Set(part.paths) == ["Documents/a", "Documents/sub", "Documents/sub/b"])
    #expect(try index.firstDifference(in: live, byChangeTime: []) == nil)
    let mode = try #require(index["Documents/sub/b"]).mode
    try live.setMode(mode ^ 0o100, of: "Documents/sub/b")
    try live.removeFile("Library/c")
    #expect(try index.firstDifference(in: live, byChangeTime: []) == "Documents/sub/b")
    try live.setMode(mode, of: "Documents/sub/b")
    #expect(try TreeIndex(of: live).differences(from: index) == ["Library", "Library/c"])
    #expect(try index.firstDifference(in: live, byChangeTime: []) == "Library")
  }

  @Test func ofALinkedFileTheNameIsLookedUp() throws {
    let sandbox = try Sandbox(files: ["a": "a", "b": "b", "c": "c"])
    let live = try sandbox.live()
    let index = try TreeIndex(of: live)
    func difference(linked: Set<ContainerPath>) throws -> ContainerPath? {
      try index.firstDifference(in: live, byChangeTime: [], isLinked: linked.contains)
    }
    try sandbox.put("a", "written to")
    #expect(try difference(linked: ["a"]) == nil && difference(linked: ["b", "c"]) == "a")
    try sandbox.save("b", "another file")
    #expect(try difference(linked: ["a", "b", "c"]) == "b")
    try sandbox.put("new", "")
    try sandbox.live().rename("c", in: live, to: "b")
    #expect(try difference(linked: ["a", "b", "c"]) != nil)
    let items = Dictionary(uniqueKeysWithValues: try live.items().map { (ContainerPath(name: $0.name), $0) })
    #expect(try index.file("a", listed: #require(items["a"])) == index["a"])
    #expect(try index.file("b", listed: #require(items["b"])) == nil)
    #expect(try index.file("new", listed: #require(items["new"])) == nil)
  }
}
