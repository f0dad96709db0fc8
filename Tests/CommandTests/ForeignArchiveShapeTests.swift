import Foundation
import TestSupport
import Testing

/// Where the container is in a foreign archive, whose it is, and what macOS packs beside it.
@Suite struct ForeignArchiveShapeTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  private static let info = """
    <?xml version="1.0" encoding="UTF-8"?>
    <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>com.example.notes</string></dict></plist>
    """

  private func detecting() throws {
    let text = try sandbox.text("drydock.yaml")
    try sandbox.write("drydock.yaml", text.replacing(/(?m)^(app|layout|defaults):.*\n/, with: ""))
  }

  @Test(arguments: [
    (["Ada.xcappdata"], "x.zip", "Ada"),
    (["-C", "Ada.xcappdata", "AppData", "AppDataInfo.plist"], "Bea.xcappdata.zip", "Bea"),
    (["-C", "Ada.xcappdata", "AppData", "AppDataInfo.plist"], "Cleo.zip", "Cleo"),
  ])
  func `A bundle inside a zip, whole or not`(_ names: [String], _ file: String, _ instance: String) throws {
    try sandbox.create("Ada.xcappdata/AppData")
    try sandbox.remove("Ada.xcappdata/AppData/.com.apple.mobile_container_manager.metadata.plist")
    try sandbox.write("Ada.xcappdata/AppDataInfo.plist", Self.info)
    try sandbox.removeOddNames("Ada.xcappdata")
    try detecting()
    try Command.run(
      Tools.system("bsdtar"), ["--format", "zip", "-cf", file] + names, environment: ["LC_ALL": "C.UTF-8"],
      directory: sandbox.directory.path
    ).expect()
    let container = try sandbox.document("inspect", file)["container"]
    #expect(container["app"].text == "com.example.notes")
    #expect(container["instance"].text == instance)
    #expect(container["layout"].text == "ios")
  }

  @Test(
    "A directory names its instance, else the file does",
    arguments: [
      ("Notes", ["Data"], "Data"), ("My notes.tar", ["-C", "Data", "."], "My notes"),
      ("Odd.tar.gz", ["-C", "Data", "files"], "Odd"), ("Two.tar", ["-C", "Data", "files", "more"], "Two"),
    ])
  func names(_ file: String, _ arguments: [String], _ instance: String) throws {
    try sandbox.remove("drydock.yaml")
    try sandbox.write("Data/files/a.txt", "a")
    try sandbox.write("Data/more/b.txt", "b")
    try Command.run(
      Tools.system("tar"), ["-cf", file] + arguments, directory: sandbox.directory.path
    ).expect()
    let container = try sandbox.document("inspect", file)["container"]
    #expect(container["instance"].text == instance)
    let given = try sandbox.document("inspect", file, "--instance", "Mine")["container"]
    #expect(given["instance"].text == "Mine")
  }

  /// An AppleDouble file with one attribute, Finder information and a resource fork, as `copyfile` writes it.
  private static let double = """
    import struct, zipfile
    def double(name, value, finder=bytes(32), fork=b''):
        name = name.encode() + b'\\0'
        entry = struct.pack('>IIHB', 120 + 64, len(value), 0, len(name)) + name
        header = b'ATTR' + struct.pack('>III', 0, 120 + 64 + len(value), 120 + 64) + struct.pack('>I', len(value))
        header += bytes(12) + struct.pack('>HH', 0, 1) + entry
        info = finder + b'\\0\\0' + header
        info += bytes(120 + 64 - 50 - len(info)) + value
        head = struct.pack('>II', 0x00051607, 0x00020000) + b'Mac OS X        ' + struct.pack('>H', 2)
        return head + struct.pack('>III', 9, 50, len(info)) + struct.pack('>III', 2, 50 + len(info), len(fork)) + info + fork

    """

  @Test(arguments: ["__MACOSX/Notes/Documents/._flagged.txt", "Notes/Documents/._flagged.txt"])
  func `What macOS packs beside files becomes their attributes, also a flag`(_ name: String) throws {
    try sandbox.python(
      Self.double + """
        z = zipfile.ZipFile('Notes.zip', 'w')
        z.writestr('\(name)',
                   double('com.apple.metadata:com_apple_backup_excludeItem', b'com.apple.backupd'))
        z.writestr('Notes/Documents/flagged.txt', 'f'); z.writestr('Notes/Documents/kept.txt', 'k')
        z.writestr('Notes/Documents/._own', 'a file of the app that is called so')
        z.writestr('Notes/Library/x', ''); z.writestr('Notes/.DS_Store', '')
        z.close()
        """)
    let shown = try sandbox.document("snapshot Notes.zip -o A.tar.zst")
    let excluded = shown["excluded"].list
    #expect(excluded.compactMap { $0["path"].text }.contains("Documents/flagged.txt"), "\(shown)")
    let text = try sandbox.succeed("show A.tar.zst")
    #expect(text.contains("Documents/kept.txt") && text.contains("Documents/._own"))
    #expect(!text.contains("__MACOSX") && !text.contains("._flagged"))
  }

  @Test func `A resource fork and Finder information become attributes; what does not fit is named`() throws {
    try sandbox.python(
      Self.double + """
        z = zipfile.ZipFile('Notes.zip', 'w')
        for name in ('Documents/a', 'Documents/b', 'Library/x'): z.writestr('Notes/' + name, name)
        z.writestr('__MACOSX/Notes/Documents/._a', double('own', b'1', b'TEXT' + bytes(28), b'fork'))
        z.writestr('Notes/Documents/._b', double('own', b'2', fork=bytes(70000)))
        z.close()
        """)
    try sandbox.drydock("snapshot Notes.zip -o A.tar.zst").expect(
      exit: 3, errors: "file system below TMPDIR: Documents/._b\n")
    try sandbox.drydock("show A.tar.zst").expect(output: "Documents/._b")
    try sandbox.succeed("restore A.tar.zst Back")
    try sandbox.python(
      """
      import os
      have = lambda path: {name: os.getxattr(path, name) for name in os.listxattr(path)}
      assert have('Back/Documents/a') == {'user.own': b'1', 'user.com.apple.FinderInfo': b'TEXT' + bytes(28),
                                          'user.com.apple.ResourceFork': b'fork'}, have('Back/Documents/a')
      assert have('Back/Documents/b') == {'user.own': b'2'}, have('Back/Documents/b')
      assert sorted(os.listdir('Back/Documents')) == ['a', 'b']
      """)
  }
}
