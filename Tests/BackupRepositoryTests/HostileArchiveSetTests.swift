import ArchiveFile
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// The committed set, through the library: each refused for its reason, and nothing but its target ever touched.
@Suite struct HostileArchiveSetTests {
  /// A directory with a place to restore to among things that must stay as they are, and links that lead to them.
  private func sentinels() throws -> Lab {
    let lab = try Lab()
    try lab.make(lab.directory("outside"))
    try RawFiles.write(Array("untouched".utf8), to: Array(lab.directory("outside/file").utf8))
    try lab.write("file", "older")
    try lab.shell("ln -s ../outside out; mkdir sub; ln -s ../../outside/file sub/file", in: lab.root)
    return lab
  }

  @Test func theTableIsTheDirectory() throws {
    let files = try RawFiles.names(in: Array(HostileArchive.directory.utf8)).map {
      String(decoding: $0, as: UTF8.self)
    }
    let names = try HostileArchive.all().map { $0.description + ".tar.zst" }
    #expect(Set(names) == Set(files.filter { $0.hasSuffix(".tar.zst") }))
    #expect(names.count > 150)
  }

  @Test func eachIsRefusedForItsReason() throws {
    for archive in try HostileArchive.all() {
      let path = archive.path
      let opened = failure { _ = try Archive(path: path) }
      // What cannot be opened cannot be looked at either.
      let structure = opened ?? failure { _ = try Verification.run(Archive(path: path), data: false) }
      let data = failure { _ = try Verification.run(Archive(path: path), data: true) }
      #expect((opened != nil) == (archive.noticed == .open), "\(archive): \(String(describing: opened))")
      let isStructure = archive.noticed == .open || archive.noticed == .structure
      #expect((structure != nil) == isStructure, "\(archive): \(String(describing: structure))")
      #expect(code(data) == archive.code, "\(archive): \(String(describing: data))")
      guard let data else { continue }
      // Which file, and why.
      #expect("\(data)".hasPrefix(path + ": "), "\(archive): \(data)")
      #expect("\(data)".count > path.count + 20, "\(archive): \(data)")
    }
  }

  @Test func nothingOutsideIsTouched() throws {
    let lab = try sentinels()
    let outside = try TreeListing(lab.directory("outside"))
    let box = try TreeListing(lab.root)
    for archive in try HostileArchive.all() where archive.isRefusedByRestore {
      let error = failure { try lab.restore(archive.path) }
      // What a restore compares first is the manifest, where a walk over all looks at names.
      #expect(
        [archive.code, "damaged", "truncated"].contains(code(error)),
        "\(archive): \(String(describing: error))")
      expectSame(try TreeListing(lab.root), as: box, comparing: TreeListing.unread)
      #expect(failure { try lab.restore(archive.path, to: lab.directory("new")) } != nil, "\(archive)")
      #expect(!RawFiles.exists(Array(lab.directory("new").utf8)), "\(archive)")
    }
    expectSame(try TreeListing(lab.directory("outside")), as: outside)
  }

  /// What is wrong in these is not what a restore reads: it gives just what the manifest says.
  @Test func whatIsRestoredIsWhatTheManifestSays() throws {
    let lab = try sentinels()
    let outside = try TreeListing(lab.directory("outside"))
    for archive in try HostileArchive.all() where !archive.isRefusedByRestore {
      let new = lab.directory("new-" + archive.description)
      try lab.restore(archive.path, to: new)
      let paths = try TreeListing(new).paths.filter { !$0.hasPrefix(".drydock") }
      #expect(paths == ["file", "link", "sub", "sub/file"], "\(archive)")
      #expect(try lab.read("file", in: new) == "content\n", "\(archive)")
    }
    // Links that are there already: what is below them in the archive replaces them.
    for script in ["true", "rm -r sub; ln -s ../outside sub"] {
      try lab.shell(script, in: lab.root)
      try lab.restore(HostileArchive.directory + "/good.tar.zst")
      #expect(try lab.read("sub/file") == "more\n")
    }
    expectSame(try TreeListing(lab.directory("outside")), as: outside)
  }

  @Test func theLimitCanBeMoved() throws {
    let path = HostileArchive.directory + "/good.tar.zst"
    expectError(.limit) { try Archive(path: path, limit: ExpansionLimit(bytes: 1000)) }
    let bomb = HostileArchive.directory + "/bomb.tar.zst"
    // Neither is it compared.
    expectError(.limit) { try ArchiveSide(Archive(path: bomb)) }
    // Then it is read, and its made-up hash is what is wrong.
    expectError(.damaged) {
      try Verification.run(Archive(path: bomb, limit: ExpansionLimit(bytes: 2 << 30)), data: true)
    }
  }
}
