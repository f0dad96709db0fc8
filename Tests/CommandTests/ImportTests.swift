import Foundation
import TestSupport
import Testing

/// `drydock import` on the samples that make_device_backup.py wrote, and on hostile ones that it writes here.
@Suite struct ImportTests {
  private let sandbox: Sandbox
  init() throws {
    sandbox = try Sandbox()
    try sandbox.write("password", "correct horse\n")
  }

  static let app = "com.example.notes"
  static let folder = Sandbox.repository + "/Tests/DeviceBackupsTests"

  static func sample(_ name: String) -> String { folder + "/Samples/" + name }

  /// Runs a script that has the module of make_device_backup.py as `m`.
  static func make(_ script: String, in sandbox: Sandbox) throws {
    let start =
      "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, '\(folder)'); import make_device_backup as m\n"
    // The system's own, which has the system's packages.
    let result = try Command.run(
      "/usr/bin/python3", ["-c", start + script], directory: sandbox.directory.path)
    guard result.succeeded else { throw SystemFailure("\(result)") }
  }

  private func make(_ script: String) throws { try Self.make(script, in: sandbox) }

  private func run(_ backup: String, _ more: String..., to target: [String] = ["Notes"]) throws
    -> CommandResult
  {
    try sandbox.drydock(["import", backup, "--app", Self.app, "--password-file", "password"] + target + more)
  }

  static let contents: [String: String] = [
    "Documents/empty.txt": "", "Documents/zwölf ü.txt": "größer\n",
    "Library/Preferences/com.example.notes.plist": "bplist00",
  ]

  @Test(arguments: ["plain", "encrypted"])
  func `Contents, modes, times, links and attributes come out, plain and encrypted`(_ name: String) throws {
    let before = try TreeListing(Self.sample(name))
    let result = try run(Self.sample(name), "--json")
    #expect(result.exitCode == (name == "plain" ? 0 : 3), "\(result)")
    let tree = try sandbox.tree("Notes").without("Library/Vault")
    #expect(
      tree.paths.sorted() == [
        "Documents", "Documents/Empty", "Documents/Photos", "Documents/Photos/a.jpg", "Documents/block.bin",
        "Documents/empty.txt", "Documents/link", "Documents/zwölf ü.txt", "Library",
        "Library/Application Support", "Library/Application Support/notes.sqlite", "Library/Preferences",
        "Library/Preferences/com.example.notes.plist",
      ])
    for (path, text) in Self.contents {
      #expect(try sandbox.read("Notes/" + path).starts(with: text.utf8), "\(path)")
    }
    try make(
      """
      import os, plistlib, sqlite3
      check = lambda path: open("Notes/" + path, "rb").read()
      assert check("Documents/Photos/a.jpg") == m.secret("photo", 20001)
      assert check("Documents/block.bin") == m.secret("block", 4096)
      assert plistlib.loads(check("Library/Preferences/com.example.notes.plist")) == {"theme": "dark", "launches": 41}
      db = sqlite3.connect("file:Notes/Library/Application Support/notes.sqlite?immutable=1", uri=True)
      assert db.execute("SELECT * FROM note").fetchall() == [(1, "made up")]
      status = lambda path: (oct(os.lstat("Notes/" + path).st_mode), os.lstat("Notes/" + path).st_mtime_ns)
      time = lambda seconds: (m.DAY + seconds) * 10**9
      assert status("Documents/Photos/a.jpg") == ("0o100644", time(3)), status("Documents/Photos/a.jpg")
      assert status("Documents/zwölf ü.txt") == ("0o100444", time(0))
      assert status("Documents/Empty") == ("0o40700", time(-100))
      assert status("Documents") == ("0o40755", time(9))
      assert status("Library/Preferences/com.example.notes.plist") == ("0o100600", time(1))
      for place in ("Notes", "Notes.groups", "Notes.groups/group.example.shared"):
          assert oct(os.stat(place).st_mode) == "0o40700", place
      assert os.readlink("Notes/Documents/link") == "Photos/a.jpg" and status("Documents/link")[1] == time(0)
      names = {name: os.getxattr("Notes/Documents/Photos/a.jpg", name) for name in os.listxattr("Notes/Documents/Photos/a.jpg")}
      assert names == {"user.com.example.tag": b"red", "user.com.apple.metadata:kMDItemWhereFroms": b"bplist00",
                       "user.drydock.protection-class": b"NSFileProtectionComplete"}, names
      assert open("Notes.groups/group.example.shared/shared.txt", "rb").read() == b"of two apps\\n"
      assert os.listdir("Notes.groups/group.com.example.notes/Library/Preferences") == ["group.com.example.notes.plist"]
      """)
    #expect(try sandbox.names("Notes.groups") == ["group.com.example.notes", "group.example.shared"])
    #expect(try sandbox.names("tmp") == [])
    try TreeListing(Self.sample(name)).expectSame(as: before, comparing: TreeListing.untouched)
  }

  @Test func `The keychain items of the app's access groups come into the vault, value for value`() throws {
    try run(
      Self.sample("encrypted"), "--access-group",
      "A1B2C3D4E5.com.example.billing"
    ).expect(exit: 3, errors: "com.example.notes/local", "2 keychain items of the device")
    // Their attributes are in the session `import.txt`.
    #expect(try sandbox.itemNames().count == 7)
    for (name, value) in [
      ("com.example.notes/auth", "made-up-token-of-ada"), ("com.example.notes/sync", "pässword"),
      ("shared/widget", "of the group"), ("billing/key", "of a named access group"),
      ("imap://ada@mail.example.com:143/", "mail"),
    ] { #expect(try sandbox.succeed("vault", "get", "Notes", name) == value, "\(name)") }
    // What a vault has no name for is kept in its document.
    #expect(try sandbox.openedVault().contains(#""keychain_gena": "AP8=""#))
  }

  /// `AndroidBackupTests` compares the forms of backups.
  @Test func `An Android backup becomes the app's directory`() throws {
    let result = try run(Self.sample("encrypted-5.ab")).expect(exit: 3)
    #expect(result.errors.contains("key-value") == false, "\(result)")
    #expect(
      try sandbox.tree("Notes").paths.sorted() == [
        "app_webview", "app_webview/x.bin", "databases", "databases/notes.db", "files", "files/empty",
        "files/photos", "files/photos/a.jpg", "no_backup", "no_backup/token", "shared_prefs",
        "shared_prefs/com.example.notes_preferences.xml",
      ])
    try make(
      """
      import os
      assert open("Notes/files/photos/a.jpg", "rb").read() == m.secret("photo", 20001)
      status = lambda path: (oct(os.lstat("Notes/" + path).st_mode), os.lstat("Notes/" + path).st_mtime_ns)
      assert status("files/photos/a.jpg") == ("0o100600", (m.DAY + 9) * 10**9)
      assert status("files/photos") == ("0o40700", (m.DAY + 8) * 10**9)
      assert status("shared_prefs/com.example.notes_preferences.xml")[0] == "0o100660"
      assert open("Notes.groups/external-files/export.txt").read() == "on shared storage"
      assert open("Notes.groups/device-protected/files/early.txt").read() == "before the first unlock"
      """)
  }

  @Test(arguments: ["plain", "plain-5.ab"])
  func `Straight into an archive with the container's content, no copy left on disk`(_ name: String) throws {
    _ = try run(Self.sample(name))
    let groups = try sandbox.names("Notes.groups").filter { !$0.hasPrefix(".") }
    let layout = name == "plain" ? "ios" : "android"
    try sandbox.write(
      "own.yaml",
      "app: \(Self.app)\nlayout: \(layout)\ngroups:\n"
        + groups.map { "  \($0): ../Notes.groups/\($0)\n" }.joined())
    try sandbox.succeed("snapshot Notes -o own.tar.zst --config own.yaml")
    let paths = { (archive: JSONNode) in archive["entries"].list.map { $0["path"].text } }
    let wanted = try paths(sandbox.document("show own.tar.zst"))
    for target in [["-o", "made.tar.zst"], ["-r", "Backups"]] {
      let result = try run(Self.sample(name), "--json", "--instance", "phone", to: target)
      #expect([0, 3].contains(result.exitCode), "\(result)")
      let shown = try sandbox.document("show", #require(result.json()["path"].text))
      #expect(paths(shown) == wanted && !wanted.isEmpty)
      let header = shown["header"]
      #expect(header["instance"].text == "phone" && header["app"].text == Self.app)
    }
    #expect(try sandbox.names("tmp") == [])
    let restored = try sandbox.drydock("restore made.tar.zst Restored")
    #expect([0, 3].contains(restored.exitCode), "\(restored)")
    // What a rule excludes is not in an archive.
    try sandbox.tree("Restored").expectSame(
      as: sandbox.tree("Notes").without("no_backup"), comparing: TreeListing.timeless)
  }

  @Test func `A target in the backup is refused`() throws {
    try sandbox.run(Tools.system("cp"), "-a", Self.sample("plain"), sandbox("B"))
    let before = try sandbox.tree("B")
    for target in [["B/Notes"], ["-o", "B/x.tar.zst"], ["-r", "B/Repository"], ["-r", "B"]] {
      try run("B", to: target).expect(exit: 1, errors: "is in the backup")
    }
    try sandbox.tree("B").expectSame(as: before, comparing: TreeListing.untouched)
  }

  @Test func `An empty directory is filled; one with data is refused, and so are the groups'`() throws {
    try RawFiles.createDirectories(sandbox("Notes"))
    #expect(try run(Self.sample("plain")).succeeded)
    let before = try sandbox.tree(".").without("tmp")
    try run(Self.sample("plain")).expect(exit: 1, errors: "has data already")
    try sandbox.write("Other.groups/group.example.shared/x", "here")
    try run(Self.sample("plain"), to: ["Other"]).expect(exit: 1, errors: "has data already")
    #expect(!sandbox.exists("Other") && !sandbox.exists("Other.groups/group.com.example.notes"))
    try sandbox.tree(".").without("tmp", "Other.groups").without(states()).expectSame(
      as: before.without(states()), comparing: TreeListing.timeless)
  }

  private func states() throws -> [String] {
    try sandbox.names().filter { $0.hasPrefix(".drydock-") }
  }

  /// A backup with one hostile path, by a line of Python; `RecordTests` has more.
  static let hostile: [(line: String, message: String)] = [
    ("b.add(m.APP, '../../outside.txt', b'x')", "not a path below a container"),
    ("b.add(m.APP, 'x', b'x'); b.add(m.APP, 'x/y', b'y')", "a file exists at this path"),
    ("b.add(m.APP, 'x', flags=4, target='/tmp'); b.add(m.APP, 'x/y', b'y')", "exists at this path"),
    ("b.add('AppDomainGroup-group.com.example.notes./../../x', 'y', b'y')", "a group whose id is not a name"),
  ]

  @Test(arguments: TestExtent.isFull ? [0, 1] : [0])
  func `A hostile backup is refused, and nothing is left`(_ offset: Int) throws {
    let scripts = Self.hostile.enumerated().map { number, hostile in
      let keybag = (number + offset).isMultiple(of: 2) ? "m.Keybag()" : "None"
      return
        "b = m.IPhoneBackup('B\(number)', \(keybag)); b.add(m.APP, 'Documents/a', b'a')\n\(hostile.line)\nb.finish()\n"
    }
    try make(scripts.joined())
    for (number, (_, message)) in Self.hostile.enumerated() {
      try expectRefusal("B\(number)", message, 4, isAlso: 1)
    }
  }

  /// Runs an import that must fail without a trace.
  private func expectRefusal(
    _ backup: String, _ message: String, _ code: Int32, isAlso other: Int32? = nil
  ) throws {
    let outside = try sandbox.tree(".").without("tmp")
    for target in [["Notes"], ["-o", "x.tar.zst"]] {
      let result = try run(backup, to: target)
      #expect(result.exitCode == code || result.exitCode == other, "\(message)\n\(result)")
      #expect(result.errors.contains(message), "\(message)\n\(result)")
      #expect(result.signal == nil && !sandbox.exists("Notes") && !sandbox.exists("x.tar.zst"))
    }
    #expect(try sandbox.names("tmp") == [])
    let states = try states()
    try sandbox.tree(".").without("tmp").without(states).expectSame(
      as: outside.without(states), comparing: TreeListing.timeless)
    #expect(!FileManager.default.fileExists(atPath: "/tmp/outside.txt"))
  }

  static let damaged: [(script: String, message: String, code: Int32)] = [
    ("import os; os.remove('B/Manifest.db')", "it has no Manifest.db;", 1),
    ("import os; os.remove('B/Manifest.plist')", "it has no Manifest.plist;", 1),
    ("open('B/Manifest.db', 'w').close()", "is not a database", 4),
    ("open('B/Manifest.plist', 'w').write('x')", "cannot be read", 4),
    ("b.finish(manifest={'IsEncrypted': 'yes'})", "`IsEncrypted`", 4),
    ("b.finish(manifest={'IsEncrypted': True})", "no keybag", 4),
    (
      "b = m.IPhoneBackup('B', m.Keybag()); b.finish(manifest={'IsEncrypted': False})", "is not a database", 4
    ),
    (
      "b = m.IPhoneBackup('B', m.Keybag()); k = m.Keybag().bytes.replace(b'DPIC\\0\\0\\0\\4\\0\\0\\0\\5', b'DPIC\\0\\0\\0\\4\\xff\\xff\\xff\\xff'); b.finish(manifest={'BackupKeyBag': k})",
      "4294967295 rounds", 4
    ),
    ("b = m.IPhoneBackup('B', m.Keybag(b'another')); b.finish()", "the password does not open", 4),
    (
      "b = m.IPhoneBackup('B', m.Keybag()); b.finish(manifest={'ManifestKey': bytes(44)})",
      "the key of its index", 4
    ),
    (
      "b.finish(schema=\"CREATE VIEW Files AS SELECT '' fileID, '' domain, '' relativePath, 1 flags, '' file\")",
      "no table `Files`", 4
    ),
    (
      "b.finish(schema=\"CREATE TABLE Files (fileID, domain, relativePath, flags, file AS (hex(zeroblob(100000000))))\")",
      "computed columns", 4
    ),
    ("b.finish(schema='CREATE TABLE Files (fileID, domain)')", "lacks a column", 4),
    ("b = m.IPhoneBackup('B'); b.finish()", "no data of com.example.notes", 1),
    (
      "b = m.IPhoneBackup('B', m.Keybag()); b.add(m.APP, 'Documents/a', b'x' * 40); b.finish(); f = __import__('glob').glob('B/??/*')[0]; open(f, 'r+b').truncate(40)",
      "its content cannot be decrypted, or was cut", 3
    ),
    (
      "import os, glob; f = glob.glob('B/??/*')[0]; os.remove(f); os.symlink('/etc/passwd', f)",
      "the backup does not have its content", 3
    ),
    (
      "import os, glob; f = glob.glob('B/??/*')[0]; os.remove(f); os.mkfifo(f)",
      "the backup does not have its content", 3
    ),
  ]

  @Test func `A damaged backup is refused, or the file left out`() throws {
    let scripts = Self.damaged.enumerated().map { number, damaged in
      "import os; os.mkdir('\(number)'); os.chdir('\(number)')\n"
        + "b = m.IPhoneBackup('B'); b.add(m.APP, 'Documents/a', b'a' * 100); b.finish()\n\(damaged.script)\n"
        + "os.chdir('..')\n"
    }
    try make(scripts.joined())
    for (number, (_, message, code)) in Self.damaged.enumerated() {
      let backup = "\(number)/B"
      if code != 3 {
        try expectRefusal(backup, message, code)
        continue
      }
      try run(backup, to: ["Part\(number)"]).expect(exit: 3, errors: "Documents/a: \(message)")
      #expect(!sandbox.exists("Part\(number)/Documents/a"))
    }
  }

  @Test func `Sizes and flags of single files that lie are reported, and everything else comes`() throws {
    try make(
      """
      b = m.IPhoneBackup('B', m.Keybag())
      b.add(m.APP, 'good', b'good')
      b.add(m.APP, 'longer', b'0123456789', size=3)
      b.add(m.APP, 'shorter', b'0123456789', size=1 << 60)
      b.add(m.APP, 'gone', size=10)
      b.add(m.APP, 'empty', size=0)
      b.add(m.GROUP, 'longer', b'0123456789', size=3)
      b.add(m.GROUP, 'odd', flags=8)
      b.rows.append((__import__('hashlib').sha1((m.APP + '-plain').encode()).hexdigest(), m.APP, 'plain', 1, m.record('plain', 0o100644, 4, m.DAY, 3)))
      b.finish()
      name = __import__('hashlib').sha1((m.APP + '-plain').encode()).hexdigest()
      import os; os.makedirs('B/' + name[:2], exist_ok=True); open('B/' + name[:2] + '/' + name, 'w').write('nope')
      """)
    let result = try run("B").expect(exit: 3)
    for line in [
      "note: files that have another size than the backup's index says, as databases often do, were imported as they are: 3\n",
      "warning: 2 of 7 files missing\n", ".groups/group.com.example.notes/odd: neither a file nor",
      "gone: the backup does not have its content", "plain: it has no key, in an encrypted backup",
    ] { #expect(result.errors.contains(line), "\(result)") }
    #expect(try sandbox.tree("Notes").paths.sorted() == ["empty", "good", "longer", "shorter"])
  }

  @Test func `A backup of an iPhone becomes a bundle with its groups beside it`() throws {
    try run(Self.sample("plain"), to: ["Ada.xcappdata"]).expect(
      output: "    group.example.shared: ../../Ada.xcappdata.groups/group.example.shared\n")
    #expect(try sandbox.names("Ada.xcappdata") == ["AppData", "AppDataInfo.plist"])
    _ = try run(Self.sample("plain"))
    try sandbox.tree("Ada.xcappdata/AppData").expectSame(
      as: sandbox.tree("Notes"), comparing: TreeListing.timeless)
    try sandbox.tree("Ada.xcappdata.groups").expectSame(
      as: sandbox.tree("Notes.groups"), comparing: TreeListing.timeless)
  }

  @Test func `Another app's damage, a row without domain, and iOS 10.0's index prevent no import`() throws {
    try make(
      """
      b = m.IPhoneBackup('Other'); b.add(m.APP, 'a', b'a')
      b.add('AppDomain-com.example.other', 'x', b'x', id='0' * 40); b.finish()
      b = m.IPhoneBackup('Row'); b.add(m.APP, 'a', b'a'); b.rows.append(('a' * 40, None, 'x', 1, b'')); b.finish()
      keybag = m.Keybag(); b = m.IPhoneBackup('Plain', keybag); b.add(m.APP, 'a', b'a'); b.keybag = None
      b.finish(manifest={'IsEncrypted': True, 'BackupKeyBag': keybag.bytes})
      """)
    try sandbox.drydock("import Other --list").expect(output: "1 damaged")
    for backup in ["Other", "Row", "Plain"] {
      let imported = try run(backup, to: ["Of" + backup]).expect()
      #expect(imported.errors.contains("any app's, were skipped: 1") == (backup == "Row"), "\(imported)")
      #expect(try sandbox.tree("Of" + backup).paths == ["a"] && sandbox.text("Of\(backup)/a") == "a")
    }
  }

  static let hostileMembers: [(arguments: String, message: String)] = [
    ("name='apps/com.example.notes/f/../../../x', content=b'x'", "has the component"),
    ("name='/apps/com.example.notes/f/x', content=b'x'", "is absolute"),
    ("name='apps/com.example.notes/f/empty', content=b'x'", "occurs twice"),
    ("name='apps/com.example.notes/r/files/empty', content=b'x'", "has the path twice"),
    ("name='apps/com.example.notes/f/h', type=b'1', link='apps/com.example.notes/f/empty'", "a hard link"),
    ("name='apps/com.example.notes/f/h', type=b'1', link='/etc/passwd'", "is absolute"),
    ("name='apps/com.example.notes/f/l/x', content=b'x'", "which is not a directory"),
    ("name='apps/com.example.notes/r/.drydock-state/journal', content=b'x'", "Drydock uses itself"),
    ("name='apps/com.example.notes/r/.groups/x/y', content=b'x'", "Drydock uses itself"),
    ("name='apps/com.example.notes/ef', content=b'x'", "exists"),
  ]

  @Test func `A hostile member, a cut file and billions of rounds are refused; nothing is left`() throws {
    let scripts = Self.hostileMembers.enumerated().map { number, member in
      "m.android('\(number).ab', tar=m.android_tar([link, dict(\(member.arguments))]))\n"
    }
    try make(
      """
      link = dict(name='apps/com.example.notes/f/l', type=b'2', link='/tmp')
      \(scripts.joined())
      m.android('cut.ab', cut=9000)
      m.android('rounds.ab', password=m.PASSWORD)
      d = open('rounds.ab', 'rb').read().replace(b'\\n7\\n', b'\\n4000000000\\n', 1); open('rounds.ab', 'wb').write(d)
      """)
    for (number, (_, message)) in Self.hostileMembers.enumerated() where message != "exists" {
      try expectRefusal("\(number).ab", message, 4)
    }
    try expectRefusal("cut.ab", "cut short", 4)
    try expectRefusal("rounds.ab", "4000000000 rounds", 4)
    // A token alone is no path: it is left out.
    for (number, member) in Self.hostileMembers.enumerated() where member.message == "exists" {
      let result = try run("\(number).ab")
      #expect(result.exitCode == 4 || result.exitCode == 3, "\(result)")
    }
  }

  @Test func `A device is left out and named`() throws {
    try make("m.android('B.ab', tar=m.android_tar([dict(name='apps/com.example.notes/f/d', type=b'3')]))")
    let result = try run("B.ab").expect(exit: 3)
    #expect("\(result)".contains("f/d: a device, FIFO or socket"), "\(result)")
  }

  @Test func `A killed import leaves no part of a container, and the next one completes it`() throws {
    let words = ["import", Self.sample("plain"), "--app", Self.app]
    try sandbox.succeed(words + ["Whole"])
    let whole = try sandbox.tree("Whole")
    // A commit is killed at each of its steps by `KillTests`.
    for point in ["staged", "committed", "partly-exchanged", "exchanged"] {
      try sandbox.kill(words + ["Notes"], at: point)
      if sandbox.exists("Notes") {
        try sandbox.tree("Notes").expectSame(as: whole, comparing: TreeListing.timeless, point)
      } else {
        let paths = try sandbox.tree("Notes.groups").paths.filter { !$0.hasPrefix(".drydock-") }
        #expect(paths.allSatisfy { !$0.contains("/") }, "\(point): \(paths)")
      }
      let again = try sandbox.drydock(words + ["Notes"])
      #expect(again.succeeded || again.errors.contains("has data already"), "\(point): \(again)")
      try sandbox.tree("Notes").expectSame(as: whole, comparing: TreeListing.timeless, point)
      for group in ["group.com.example.notes", "group.example.shared"] {
        try sandbox.tree("Notes.groups/" + group).expectSame(
          as: sandbox.tree("Whole.groups/" + group), comparing: TreeListing.timeless, point)
      }
      try sandbox.shell("rm -rf Notes Notes.groups .drydock-*")
    }
  }

  @Test func `A tar of adb exec-out run-as is a container without an import`() throws {
    _ = try run(Self.sample("plain-5.ab"))
    // As `run-as com.example.notes tar c .` writes it, in the app's directory.
    try sandbox.run(
      Tools.system("tar"), "--format=ustar", "-C", sandbox("Notes"), "-cf", sandbox("notes.tar"), ".")
    try sandbox.remove("drydock.yaml")
    try sandbox.drydock("inspect notes.tar").expect(output: "(android)")
    #expect(try sandbox.succeed("snapshot notes.tar -o x.tar.zst").hasSuffix("x.tar.zst\n"))
  }
}
