import Cryptography
import DrydockErrors
import FileSystem
import TestSupport
import Testing

@testable import ContainerTransaction

/// The files of a large new directory are made in a folder of the stage, which becomes that directory.
@Suite struct NewDirectoryTests {
  private static let names =
    (0..<2 * Stage.largeDirectory).map { "file \($0)" } + ["file 0-journal", "x-WAL", "hold-1"]

  private func put(_ staged: StagedContainer, databases: Set<Int> = []) throws {
    staged.checksResult = false
    let paths = try Self.names.map { try ContainerPath("New/" + $0) }
    let metadata = try #require(try staged.live.metadata("old"))
    let numbers = paths.indices.map { UInt32($0) }
    let groups = [Array(numbers.dropLast(9)), Array(numbers.suffix(9))]
    try staged.putFiles(paths, groups, size: 1000) { _ in
      { number in
        let bytes = Array(Self.names[number].utf8)
        return (
          metadata, try SHA256.hash(bytes), UInt64(bytes.count), isDatabase: databases.contains(number),
          { try $0.write(bytes) }
        )
      }
    }
  }

  private func sandbox() throws -> Sandbox {
    var sandbox = try Sandbox(files: ["old": "old"])
    sandbox.isScratch = true
    return sandbox
  }

  enum Change: CaseIterable { case none, added, removed }

  @Test(arguments: [.beside, .inside] as [StateDirectory.Place], Change.allCases)
  func `It has the files that it is to have`(_ place: StateDirectory.Place, _ change: Change) throws {
    let sandbox = try sandbox()
    var expected = Dictionary(uniqueKeysWithValues: Self.names.map { ($0, $0) })
    var folder: UInt64?
    try sandbox.run(commit: place) { staged in
      try put(staged)
      let name = try #require(staged.stage.overlay.folders["New"])
      folder = try staged.stage.directory.status(Stage.name(name))?.inode
      switch change {
      case .none: break
      case .added:
        try staged.putHardLink(at: "New/link", to: "New/file 4")
        try staged.write(Array("below".utf8), to: "New/below/file")
        (expected["link"], expected["below/file"]) = ("file 4", "below")
      case .removed:
        try staged.remove("New/file 2")
        try staged.write(Array("other".utf8), to: "New/file 3")
        (expected["file 2"], expected["file 3"]) = (nil, "other")
      }
    }
    let isMoved = try sandbox.live().status("New")?.inode == folder
    #expect(isMoved == (place == .beside && change != .removed))
    let listed = try sandbox.live().directory("New").names().map { String(decoding: $0, as: UTF8.self) }
    #expect(listed == Set(expected.keys.map { $0 == "below/file" ? "below" : $0 }).sorted())
    for (name, text) in expected { #expect(try sandbox.text(ContainerPath("New/" + name)) == text) }
    #expect(try sandbox.stages().isEmpty)
  }

  @Test func `A database is not in it before the commit, nor anything that SQLite would read with one`()
    throws
  {
    let sandbox = try sandbox()
    expectError(.conflict) {
      try sandbox.run { staged in
        try put(staged, databases: [1])
        let folder = try #require(staged.stage.overlay.folders["New"])
        let names = try staged.stage.directory.directory(Stage.name(folder)).names()
        let others: Set = ["file 1", "file 0-journal", "x-WAL"]
        #expect(Set(names) == Set(Self.names.filter { !others.contains($0) }.map { Array($0.utf8) }))
        #expect(try staged.read("New/file 1") == Array("file 1".utf8))
        throw DrydockError(.conflict, "made up")
      }
    }
    #expect(try sandbox.live().names() == [Array("old".utf8)] && sandbox.stages().isEmpty)
  }

  @Test(arguments: [.beside, .inside] as [StateDirectory.Place])
  func `What an app wrote to a new file is kept when all is reverted`(_ place: StateDirectory.Place) throws {
    let sandbox = try sandbox()
    let faults = Seams.at(.marked) {
      for name in ["file 1", "hold-1"] { try sandbox.put("New/" + name, "the app's") }
      throw Stop()
    }
    #expect(throws: Stop.self) { try sandbox.run(faults: faults, commit: place) { try put($0) } }
    #expect(try !sandbox.exists("New"))
    let kept = try #require(try sandbox.state(place)).directory("conflict")
    let copies = try kept.directory(ContainerPath(name: #require(kept.names().first))).directory("New")
    #expect(try copies.names() == ["file 1", "hold-1"].map { Array($0.utf8) })
  }
}
