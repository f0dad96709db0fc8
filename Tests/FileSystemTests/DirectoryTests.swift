import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import FileSystem

@Suite struct DirectoryTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  @Test func binaryAndLongNames() throws {
    let root = try Directory(folder.path)
    let odd = ContainerPath(name: [0x61, 0xff, 0xfe])
    let long = ContainerPath(name: Array(repeating: 0x6e, count: 255))
    for path in [odd, long] {
      try root.create(path, Array("content".utf8))
      #expect(try root.contents(path) == Array("content".utf8))
      try root.setAttribute(ExtendedAttribute(name: "user.x", value: [0, 255]), of: path)
      #expect(try root.attributes(path) == [ExtendedAttribute(name: "user.x", value: [0, 255])])
    }
    #expect(try root.names() == [odd.bytes, long.bytes])
    #expect(try root.names(startingWith: "nn") == [long.bytes] && root.names(startingWith: "x") == [])
    #expect(throws: DrydockError.self) { try root.create(long.withSuffix("x"), []) }
  }

  /// As when another thread starts a program: that has copies of all descriptors until it runs.
  @Test func aLockIsReleasedAlsoWhileACopyOfItsDescriptorIsOpen() throws {
    var locked: Directory? = try Directory(folder.path)
    #expect(try locked?.tryLock(exclusive: true) == true)
    let copy = dup(try #require(locked).descriptor.rawValue)
    defer { close(copy) }
    let other = try Directory(folder.path)
    #expect(try !other.tryLock(exclusive: false))
    locked = nil
    #expect(try other.tryLock(exclusive: true))
  }

  @Test func pathsLongerThanTheKernelAccepts() throws {
    let root = try Directory(folder.path)
    var path = ContainerPath.root
    // Names of 255 bytes first, then short ones, so that the cuts fall at odd places.
    for depth in 0..<24 {
      let length = depth < 17 ? 255 : 3 + depth
      path = path.appending(name: Array(repeating: UInt8(ascii: "d"), count: length))
      try root.createDirectory(path)
    }
    #expect(path.bytes.count > 4096)
    let file = try path.appending("file")
    try root.create(file, Array("deep".utf8))
    try root.createLink(path.appending("link"), target: Array("file".utf8))
    try root.setAttribute(ExtendedAttribute(name: "user.deep", value: [1]), of: file)
    try root.setModified(1_234_567_890_123_456_789, of: file)
    #expect(try root.contents(file) == Array("deep".utf8))
    #expect(try root.status(file)?.modified == 1_234_567_890_123_456_789)
    #expect(try root.attributes(file).map(\.name) == ["user.deep"])
    #expect(try root.linkTarget(path.appending("link")) == Array("file".utf8))
    #expect(try root.status(path.appending("missing")) == nil)
    var seen = 0
    try root.walk { _ in
      seen += 1
      return .into
    }
    #expect(seen == 26)
    try root.rename(file, in: root, to: "top")
    try root.link("top", in: root, to: file)
    #expect(try root.status("top")?.links == 2)
    try root.removeTree(ContainerPath(name: path.components[0]))
    #expect(try root.names() == [Array("top".utf8)])
  }

  @Test func linksAreNeverFollowed() throws {
    let root = try Directory(folder.path)
    try root.createDirectory("real")
    try root.create("real/file", [1])
    try root.createLink("link", target: Array("real".utf8))
    try root.createLink("up", target: Array("../".utf8))
    try root.createLink("file", target: Array("real/file".utf8))
    #expect(try root.status("link")?.type == .symbolicLink)
    for action in [
      { _ = try root.contents("link/file") }, { _ = try root.contents("file") },
      { _ = try root.directory("up") }, { try root.create("link/new", []) },
      { try root.removeFile("link/file") }, { try root.rename("real/file", in: root, to: "link/x") },
    ] {
      #expect { try action() } throws: {
        [.unsupported, .notAContainer].contains(($0 as? DrydockError)?.code)
      }
    }
    try root.setModified(5, of: "file")
    #expect(try root.status("real/file")?.modified != 5)
    #expect(try root.attributes("file").isEmpty)
    try root.removeTree("link")
    #expect(try root.contents("real/file") == [1])
  }

  @Test func attributesOfFilesDirectoriesAndTheRoot() throws {
    let root = try Directory(folder.path)
    try root.createDirectory("directory")
    try root.create("file", [])
    let big = ExtendedAttribute(name: "user.big", value: Array(repeating: 7, count: 2000))
    let empty = ExtendedAttribute(name: "user.empty", value: [])
    for path in ["directory", "file", .root] as [ContainerPath] {
      try root.setAttribute(big, of: path)
      try root.setAttribute(empty, of: path)
      #expect(try root.attributes(path) == [big, empty])
      #expect(try root.attribute("user.none", of: path) == nil)
      try root.removeAttribute("user.big", of: path)
      try root.removeAttribute("user.big", of: path)
      #expect(try root.attributes(path) == [empty])
    }
    // Drydock's own note is no metadata, and metadata does not touch it.
    let note = ExtendedAttribute(name: ExtendedAttribute.ownNote, value: [1])
    try root.setAttribute(note, of: "file")
    let file = try root.open("file", .readOnly)
    defer { try? file.close() }
    #expect(try root.attributeNames(of: "file") == [empty.name] && root.attributes("file") == [empty])
    #expect(try root.view(of: file, "file").attributes(.root) == [empty])
    var metadata = try #require(try root.metadata("file"))
    #expect(metadata.attributes == [empty])
    try root.apply(metadata, to: "file")
    #expect(try root.attribute(note.name, of: "file") == [1])
    file.setOwnNote(nil)
    file.setOwnNote(nil)
    metadata.attributes = [note, empty]
    try root.apply(metadata, to: "file")
    #expect(try root.attribute(note.name, of: "file") == nil)
  }

  @Test func metadataRoundTrip() throws {
    let root = try Directory(folder.path)
    try root.create("a", [1], mode: 0o640)
    try root.setAttribute(ExtendedAttribute(name: "user.a", value: [1]), of: "a")
    try root.setOwner(user: 1234, group: 4321, of: "a")
    try root.setMode(0o4751, of: "a")
    try root.setModified(-1_500_000_001, of: "a")
    let metadata = try #require(try root.metadata("a"))
    #expect(metadata.modified == -1_500_000_001)
    try root.create("b", [2])
    try root.setAttribute(ExtendedAttribute(name: "user.stale", value: [1]), of: "b")
    try root.apply(metadata, to: "b")
    #expect(try root.metadata("b") == metadata)
  }

  @Test func everythingIsClosedAgain() throws {
    let root = try Directory(folder.path)
    try root.createDirectories("a/b/c")
    try root.create("a/b/c/file", [1])
    func count() throws -> Int {
      try RawFiles.names(in: Array("/proc/self/fd".utf8)).filter { name in
        let target = try? RawFiles.linkTarget(Array("/proc/self/fd/".utf8) + name)
        return target.map { String(decoding: $0, as: UTF8.self).hasPrefix(folder.path) } ?? false
      }.count
    }
    let before = try count()
    for _ in 0..<20 {
      _ = try root.contents("a/b/c/file")
      _ = try? root.contents("a/b/missing/file")
      _ = try? root.contents("a/b")
      try root.walk { _ in .into }
      _ = try? root.copyContents(of: "a/b/c/file", to: "a/b/c/file", in: root)
    }
    #expect(try count() == before)
  }

  @Test func replaceIsAtomicAndContentsHasALimit() throws {
    let root = try Directory(folder.path)
    // A user's file with a name like that of a new version.
    try root.create("file.new", [9])
    try root.replace("file", with: [1, 2, 3])
    try root.replace("file", with: [4])
    #expect(try root.contents("file") == [4] && root.contents("file.new") == [9])
    #expect(try root.names().count == 2)
    #expect { try root.contents("file", limit: 0) } throws: {
      ($0 as? DrydockError)?.code == .unsupported
    }
    #expect { try root.contents("gone") } throws: { ($0 as? DrydockError)?.code == .notFound }
  }

  @Test func aFailedReplacementLeavesNothing() throws {
    let root = try Directory(folder.path)
    try root.createDirectory("taken")
    #expect(throws: DrydockError.self) { try root.replace("taken", with: [1]) }
    #expect(try root.names().map { String(decoding: $0, as: UTF8.self) } == ["taken"])
  }

  /// As if the link had come after the status was read.
  @Test func aModeIsNotSetThroughALink() throws {
    let root = try Directory(folder.path)
    try root.create("file", [1])
    try root.createLink("link", target: Array("file".utf8))
    #expect(throws: DrydockError.self) { try root.setMode(0o777, of: "link") }
    #expect(try root.status("file")?.mode == 0o600)
  }

  /// To open a FIFO lets its writer go on, and to open a device may do anything.
  @Test func whatIsNoFileIsNotOpened() throws {
    let root = try Directory(folder.path)
    #expect(mkfifo(folder("pipe"), 0o600) == 0)
    let writer = try Command.spawn(
      Tools.system("sh"), ["-c", "echo ready; : > '\(folder("pipe"))'; echo opened"])
    _ = try writer.waitForLine("ready")
    #expect { try root.contents("pipe") } throws: { "\($0)".contains("not a regular file") }
    #expect(throws: DrydockError.self) { try root.read("pipe") { _ in } }
    usleep(50_000)
    writer.kill()
    #expect(try !writer.wait().output.contains("opened"))
  }
}
