import Foundation
import TestSupport
import Testing

/// The container as one file: whatever packed it, every command that reads one takes it.
@Suite struct ForeignArchiveTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  @Test(arguments: Packing.whole)
  func `A tar gives the same snapshot as the directory, byte for byte`(_ packing: Packing) throws {
    try sandbox.create()
    // Both forms of a letter, and no letters at all.
    try sandbox.python(
      #"import unicodedata; [open(b'Notes/Documents/'+n, 'w') for n in (b'\xff\xfe', unicodedata.normalize('NFD', 'é').encode())]"#
    )
    let directory = try sandbox.document("snapshot Notes -o D.tar.zst")
    let file = try packing.pack(in: sandbox)
    let before = try sandbox.tree(file)
    let packed = try sandbox.document("snapshot", file, "-o", "P.tar.zst")
    #expect(packed["snapshot"].text == directory["snapshot"].text)
    try sandbox.tree(file).expectSame(as: before, comparing: TreeListing.untouched)
    let one = try sandbox.document("show D.tar.zst"), other = try sandbox.document("show P.tar.zst")
    for key in ["entries", "excluded", "skipped"] {
      #expect(one[key].exists && one[key].canonical == other[key].canonical, "\(key)")
    }
    for key in ["app", "instance", "layout", "schema_version"] {
      let (own, its) = (one["header"][key], other["header"][key])
      #expect(own.exists && own.canonical == its.canonical, "\(key)")
    }
    #expect(try sandbox.names("tmp") == [])
    #expect(try sandbox.names().filter { $0.hasPrefix(".drydock") } == [])
  }

  @Test(arguments: Packing.zips) func `A zip gives every file, mode and link`(_ packing: Packing) throws {
    try sandbox.create()
    try sandbox.removeOddNames()
    // The standard library of Python follows links.
    if packing == .pythonZip { try sandbox.run(Tools.system("find"), "Notes", "-type", "l", "-delete") }
    try sandbox.succeed("snapshot Notes -o D.tar.zst")
    try sandbox.succeed("snapshot", try packing.pack(in: sandbox), "-o", "P.tar.zst", "--include-excluded")
    let contents = { (name: String) in
      let entries = try sandbox.document("show", name)["entries"].list
      return Dictionary(
        entries.map { entry in
          (entry["path"].text ?? "", ["kind", "mode", "sha256", "link_target"].map { "\(entry[$0])" })
        }, uniquingKeysWith: { $1 })
    }
    let (directory, packed) = (try contents("D.tar.zst"), try contents("P.tar.zst"))
    #expect(directory.count > 15)
    for (path, entry) in directory { #expect(packed[path] == entry, "\(path)") }
  }

  @Test(arguments: Packing.tried)
  func `Every reading command takes every format, and tells the same`(_ packing: Packing) throws {
    try sandbox.create()
    try sandbox.removeOddNames()
    let file = try packing.pack(in: sandbox)
    let inspected = try sandbox.document("inspect", file)["container"]
    let own = try sandbox.document("inspect Notes")["container"]
    #expect(inspected["root"].text == sandbox(file))
    for key in ["app", "instance", "layout", "schema_version", "settings", "databases"] {
      #expect(own[key].exists && inspected[key].canonical == own[key].canonical, "\(key)")
    }
    for arguments in [["explain", "tmp"], ["status"], ["migrate", "--dry-run"]] {
      let rest = arguments.dropFirst()
      let packed = try sandbox.drydock([arguments[0], file] + rest).expect()
      let plain = try sandbox.drydock([arguments[0], "Notes"] + rest).output
      // Times, and fingerprints of secrets, are others each time.
      let varying = #/\d+(\.\d+)? ms|#[0-9a-f]{8}/#
      #expect(packed.output.replacing(varying, with: "") == plain.replacing(varying, with: ""))
    }
    let log = try sandbox.drydock("log", file).expect(errors: "has no log")
    #expect(log.output == "no transactions yet\n", "\(log)")
    try sandbox.remove("drydock.yaml")
    try sandbox.succeed("init", file)
    #expect(try sandbox.text("drydock.yaml").contains("app: \"com.example.notes\""))
    #expect(try sandbox.names("tmp") == [])
  }

  @Test func `What would change it is refused, and says what to do`() throws {
    try sandbox.create()
    try sandbox.succeed("snapshot Notes -o A.tar.zst")
    try Packing.gnuTar.pack(in: sandbox)
    let before = try sandbox.tree("Notes.tar")
    for arguments in [
      "migrate Notes.tar", "rollback Notes.tar", "recover Notes.tar", "baseline Notes.tar --to 1",
      "restore A.tar.zst Notes.tar", "restore A.tar.zst Notes.tar --dry-run",
    ] {
      try sandbox.expectRefusal(
        arguments, exit: 64, ["Notes.tar is a foreign archive", "unpack it"], container: nil)
      try sandbox.tree("Notes.tar").expectSame(as: before, comparing: TreeListing.untouched)
    }
  }

  @Test(arguments: [Packing.gnuTar, .bsdtarZip, .pythonZip])
  func `Rows that are committed and not checkpointed are there`(_ packing: Packing) throws {
    try sandbox.python(
      """
      import os, sqlite3
      os.makedirs('Notes/Documents'); os.makedirs('Notes/Library')
      c = sqlite3.connect('Notes/Documents/a.sqlite', isolation_level=None)
      c.execute('pragma journal_mode=wal'); c.execute('create table t (n)')
      c.execute('pragma wal_checkpoint(truncate)')
      c.executemany('insert into t values (?)', [(n,) for n in range(1000)])
      c.execute('begin'); c.execute('insert into t values (-1)')
      os._exit(0)
      """)
    #expect(sandbox.exists("Notes/Documents/a.sqlite-wal") && sandbox.exists("Notes/Documents/a.sqlite-shm"))
    try sandbox.succeed("snapshot", try packing.pack(in: sandbox), "-o", "A.tar.zst")
    try sandbox.run(Tools.system("bsdtar"), "-xf", "A.tar.zst")
    let count = try sandbox.python(
      "import sqlite3; print(sqlite3.connect('container/Documents/a.sqlite').execute('select count(*), min(n) from t').fetchone())"
    )
    #expect(count == "(1000, 0)\n")
    #expect(!sandbox.exists("container/Documents/a.sqlite-wal"))
  }
}
