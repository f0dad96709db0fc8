import Foundation
import TestSupport
import Testing

/// Files that were made to do harm, or that were damaged on their way.
@Suite struct HostileForeignArchiveTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// A Python program that writes `H.tar` or `H.zip`, the exit code, and what the message says.
  struct Sample: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var script: String
    var exit: Int32 = 4
    var says: String

    static func tar(_ name: String, _ script: String, _ says: String) -> Sample {
      let start = """
        import tarfile, io
        t = tarfile.open('H', 'w')
        def add(name, type=tarfile.REGTYPE, link='', data=b'x'):
            i = tarfile.TarInfo(name); i.type = type; i.linkname = link; i.size = len(data) if type == tarfile.REGTYPE else 0
            t.addfile(i, io.BytesIO(data))
        add('N/a')

        """
      return Sample(testDescription: name, script: start + script + "\nt.close()\n", says: says)
    }

    /// A file of 300 GB without any data.
    static func hole(_ packer: String) -> Sample {
      let script = """
        import subprocess
        subprocess.run("mkdir N; truncate -s 300G N/a; \(packer)f H N; rm N/a", shell=True, check=True)
        """
      return Sample(testDescription: "hole: \(packer)", script: script, says: "--max-size")
    }

    static func zip(_ name: String, _ script: String, _ says: String) -> Sample {
      let start =
        "import zipfile, warnings\nwarnings.simplefilter('ignore')\nz = zipfile.ZipFile('H', 'w')\nz.writestr('N/a', 'aaaa')\n"
      return Sample(testDescription: name, script: start + script, says: says)
    }
  }

  static let samples: [Sample] = [
    .tar("absolute", "add('/tmp/evil')", "is absolute"),
    .tar("dots", "add('N/../../evil')", "component \"..\""),
    .tar("odd dots", "add('.//evil')", "empty component"),
    .tar(
      "through a link", "add('N/l', tarfile.SYMTYPE, '../..'); add('N/l/evil')", "which is not a directory"),
    .tar("below a file", "add('N/a/b')", "which is not a directory"),
    .tar("twice", "add('N/a')", "occurs twice"),
    .tar("file then directory", "add('N/a', tarfile.DIRTYPE)", "occurs twice"),
    .tar("hard link out", "add('N/h', tarfile.LNKTYPE, '../../etc/passwd')", "component \"..\""),
    .tar(
      "hard link to what is not there", "add('N/h', tarfile.LNKTYPE, 'etc/passwd')", "not an earlier file"),
    .tar("too deep", "add('N/' + 'd/' * 40000 + 'f')", "bytes, more than"),
    .tar(
      "cut in a member", "add('N/b', data=b'x' * 9000); t.close(); f = open('H', 'r+b'); f.truncate(4096)",
      "cut short"),
    .tar("cut between members", "t.close(); f = open('H', 'r+b'); f.truncate(1024)", "has no end"),
    .tar(
      "many members", "[add('N/%d' % n, data=b'') for n in range(3000)]; open('max', 'w').write('1MB')",
      "--max-size"),
    .zip("zip: dots", "z.writestr('N/../../evil', ''); z.close()", "component \"..\""),
    .zip("zip: absolute", "z.writestr('/tmp/evil', ''); z.close()", "is absolute"),
    .zip("zip: twice", "z.writestr('N/a', 'b'); z.close()", "occurs twice"),
    .zip(
      "zip: through a link",
      "i = zipfile.ZipInfo('N/l'); i.external_attr = 0o120777 << 16; i.create_system = 3; z.writestr(i, '../..'); z.writestr('N/l/evil', ''); z.close()",
      "which is not a directory"),
    .zip(
      "zip: wrong checksum",
      "z.close(); b = open('H', 'rb').read().replace(b'aaaa', b'aaab'); open('H', 'wb').write(b)", "CRC"),
    .zip("zip: cut", "z.close(); f = open('H', 'r+b'); f.truncate(60)", "cut short"),
    .zip(
      "zip: encrypted",
      "z.close(); b = bytearray(open('H', 'rb').read()); b[6] |= 1; b[b.index(b'PK\\x01\\x02') + 8] |= 1; open('H', 'wb').write(b)",
      "is encrypted"),
    Sample(
      testDescription: "bomb",
      script:
        "import tarfile, io, gzip\nclass Z:\n  def read(s, n): return bytes(n)\ng = gzip.open('H', 'wb', 9); t = tarfile.open(fileobj=g, mode='w|'); i = tarfile.TarInfo('N/a'); i.size = 40000000; t.addfile(i, Z()); t.close(); g.close(); open('max', 'w').write('30MB')",
      says: "--max-size"),
    .hole("tar --format=gnu -Sc"), .hole("tar --format=posix -Sc"), .hole("bsdtar --format=pax -c"),
    Sample(
      testDescription: "gzip cut",
      script:
        "import tarfile, os\nos.mkdir('N'); open('N/a', 'wb').write(os.urandom(90000)); t = tarfile.open('H', 'w:gz'); t.add('N'); t.close(); f = open('H', 'r+b'); f.truncate(40000)",
      says: "runcated"),
    Sample(
      testDescription: "empty",
      script:
        "import tarfile; open('.DS_Store', 'w'); t = tarfile.open('H', 'w'); t.add('.DS_Store'); t.close()",
      exit: 1,
      says: "an empty archive"),
    Sample(
      testDescription: "text", script: "open('H', 'w').write('hello\\n' * 100)", exit: 1,
      says: "this is a file"),
    Sample(testDescription: "nothing", script: "open('H', 'w')", exit: 1, says: "this is a file"),
  ]

  @Test(arguments: samples)
  func `Each is refused with what is wrong, and nothing is left or touched outside`(_ sample: Sample) throws {
    try sandbox.python(sample.script)
    let limit = sandbox.exists("max") ? try sandbox.text("max") : nil
    try sandbox.expectRefusal(
      "snapshot H -o A.tar.zst", exit: sample.exit, [sample.says], container: nil,
      environment: ["DRYDOCK_MAX_SIZE": limit])
    #expect(!sandbox.exists("evil") && !sandbox.exists("../evil") && !sandbox.exists("tmp/evil"))
    #expect(!RawFiles.exists(Array("/tmp/evil".utf8)))
  }

  @Test func `Devices and FIFOs are skipped and named`() throws {
    try sandbox.python(
      """
      import tarfile
      with tarfile.open("H", "w") as tar:
          for name, type in [("N/file", tarfile.REGTYPE), ("N/pipe", tarfile.FIFOTYPE), ("N/device", tarfile.CHRTYPE)]:
              entry = tarfile.TarInfo(name); entry.type = type; tar.addfile(entry)
      """)
    try sandbox.succeed("snapshot H -o A.tar.zst")
    let shown = try sandbox.succeed("show A.tar.zst")
    for part in ["file", "pipe", "device"] { #expect(shown.contains(part), "\(shown)") }
  }

  /// SQLite would look for the file, also in the working directory, and remove it.
  @Test(arguments: [false, true])
  func `No command that reads removes a file that a journal names`(isAbsolute: Bool) throws {
    try sandbox.python(
      """
      import os, sqlite3, struct, tarfile
      os.mkdir("N"); os.mkdir("N/Documents")
      db = sqlite3.connect("N/Documents/x.db"); db.execute("CREATE TABLE t(a)"); db.commit(); db.close()
      name = os.fsencode(\(isAbsolute ? "os.path.abspath('kept')" : "'kept'"))
      magic = bytes.fromhex("d9d505f920a163d7")
      journal = (magic + struct.pack(">IIIII", 0, 7, 2, 512, 4096)).ljust(512, bytes(1))
      journal += struct.pack(">I", 262145) + name + struct.pack(">II", len(name), sum(name)) + magic
      open("N/Documents/x.db-journal", "wb").write(journal)
      open("kept", "w").write("kept")
      with tarfile.open("N.tar", "w") as tar: tar.add("N")
      """)
    for arguments in [
      "inspect N", "snapshot N -o A.tar.zst", "audit N", "diff A.tar.zst N", "inspect N.tar",
      "snapshot N.tar -o B.tar.zst", "diff N N.tar",
    ] {
      let result = try sandbox.drydock(arguments)
      #expect([0, 1].contains(result.exitCode) && sandbox.exists("kept"), "\(arguments): \(result)")
    }
  }

  @Test func `A link may point anywhere, as an app's own may, and nobody goes there`() throws {
    try sandbox.python(
      """
      import os, tarfile
      os.makedirs('N/Documents'); os.makedirs('N/Library')
      os.symlink('/etc', 'N/Documents/out'); os.symlink('/etc/passwd', 'N/Documents/passwd')
      t = tarfile.open('H', 'w'); t.add('N'); t.close()
      """)
    try sandbox.succeed("snapshot H -o A.tar.zst")
    let shown = try sandbox.succeed("show A.tar.zst Documents")
    #expect(shown.contains("Documents/out → /etc\n") && shown.contains("Documents/passwd → /etc/passwd\n"))
    #expect(!shown.contains("out/"))
  }

  @Test func `A bundle whose data is a link, and a lone link, are no containers`() throws {
    try sandbox.python(
      """
      import os, tarfile
      os.makedirs('X.xcappdata'); os.symlink('/etc', 'X.xcappdata/AppData'); os.symlink('/etc', 'N')
      t = tarfile.open('B', 'w'); t.add('X.xcappdata'); t.close()
      t = tarfile.open('L', 'w'); t.add('N'); t.close()
      """)
    for file in ["B", "L"] {
      try sandbox.succeed("snapshot", file, "-o", "\(file).tar.zst", "--include-excluded")
      let shown = try sandbox.succeed("show", "\(file).tar.zst")
      #expect(shown.contains(" → /etc") && !shown.contains("passwd"), "\(shown)")
    }
  }
}
