import Foundation
import TestSupport
import Testing

/// Processes that use a container and cannot be seen, or only by other numbers than those of `stat`.
@Suite struct VisibilityTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox(creating: "Notes") }

  private static let note = "drydock: note: not all processes can be seen: "

  /// Whether the migration is done with a note, said in JSON too, and refused with `--require-visible`.
  private func expectNote(
    _ words: String, _ key: String, _ drydock: (_ arguments: [String]) throws -> CommandResult
  ) throws {
    let refused = try drydock(["migrate", "Notes", "--to", "1", "--require-visible", "--json"])
    let error = try refused.expect(exit: 5).json()["error"]
    #expect(error["code"].text == "notVisible" && error["message"].text?.contains(words) == true, "\(error)")
    let done = try drydock(["migrate", "Notes", "--to", "1", "--json"]).expect()
    let notes = done.allErrors.split(separator: "\n").filter { $0.hasPrefix(Self.note) }
    #expect(notes.count == 1 && notes.first?.contains(words) == true, "\(done)")
    #expect(try done.json()["unseen_processes"][key].flag == true)
  }

  @Test func `A PID namespace of its own`() throws {
    try expectNote("outside this PID namespace", "outside_namespace") { arguments in
      try sandbox.execute(
        Tools.system("unshare"), ["--pid", "--fork", "--mount-proc", sandbox.program] + arguments)
    }
  }

  @Test func `A PID namespace with the outer /proc: this process has another number there`() throws {
    try sandbox.execute(
      Tools.system("unshare"), ["--pid", "--fork", sandbox.program, "migrate", "Notes", "--to", "1"]
    ).expect()
  }

  @Test func `A user for whom /proc hides the processes of others`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    try sandbox.openToOthers("Migrations")
    try sandbox.giveToOther("Notes")
    let space = try Namespace(sandbox, "mount -t proc -o hidepid=2 proc /proc")
    let app = try Command.spawn(
      "/bin/sh", ["-c", "exec 5<\"$0\"; echo ready; cat", sandbox("Notes/Documents")])
    try app.waitForLine("ready")
    try expectNote("hidepid", "hidden") { arguments in
      try space.run(Tools.system("setpriv"), Sandbox.otherUser + [sandbox.program] + arguments)
    }
    try app.finish()
  }

  @Test func `Processes of users who cannot change the container are refused on demand only`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    try sandbox.openToOthers("Migrations")
    try sandbox.giveToOther("Notes")
    try sandbox.mode("", 0o777)
    func drydock(_ arguments: String...) throws -> CommandResult { try sandbox.asOther(arguments) }
    try drydock("migrate", "Notes", "--to", "1", "--require-visible").expect(
      exit: 5, errors: "cannot be inspected")
    let done = try drydock("migrate", "Notes", "--to", "1").expect()
    #expect(!done.allErrors.contains("cannot be inspected"), "\(done)")
    try sandbox.run(Tools.system("chmod"), "0777", sandbox("Notes"))
    let open = try drydock("migrate", "Notes", "--to", "2").expect()
    #expect(open.allErrors.contains(Self.note), "\(open)")
    #expect(open.allErrors.contains(#/cannot be inspected: \d+ \(.+\)/#), "\(open)")
  }

  @Test func `A first process with more capabilities runs the sandbox: it is counted, not noted`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can give capabilities up")
    let done = try sandbox.execute(
      Tools.system("unshare"),
      [
        "--pid", "--fork", "--mount-proc", "/bin/sh", "-c", "\"$@\"; exit $?", "sh", Tools.system("setpriv"),
        "--bounding-set=-sys_ptrace", sandbox.program, "migrate", "Notes", "--to", "1", "--json",
      ]
    ).expect()
    let unseen = try done.json()["unseen_processes"]
    #expect(unseen["uninvolved"].number == 1 && unseen["unreadable"].exists, "\(unseen)")
    #expect(unseen["unreadable"].list.isEmpty, "\(unseen)")
  }

  /// The lower layer is on another file system than the upper one: then the overlay shows another device in `stat` than
  /// in `/proc/PID/maps`.
  private static let overlay = """
    cd "$0"; mkdir Lower Upper Place; mv Notes Lower/Notes; mount -t tmpfs none Upper; mkdir Upper/up Upper/work
    mount -t overlay overlay -o lowerdir=Lower,upperdir=Upper/up,workdir=Upper/work Place

    """
  private static let mapping = """
    mkfifo ready; python3 map.py Place/Notes/\(Sandbox.settings) > ready & read line < "$0/ready"
    """
  private static let map = """
    import ctypes, os, signal, sys
    libc = ctypes.CDLL(None)
    libc.prctl(1, 9)  # ends with its parent
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    descriptor = os.open(sys.argv[1], os.O_RDONLY)
    libc.mmap(None, 4096, 1, 1, descriptor, 0)
    os.close(descriptor)
    print("mapped", flush=True)
    signal.pause()
    """

  @Test func `A file that is mapped and closed, on an overlay of two file systems`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root mounts an overlay of file systems")
    try sandbox.write("map.py", Self.map)
    let space = try Namespace(sandbox, Self.overlay + Self.mapping)
    try space.drydock("migrate Place/Notes --to 1").expect(
      exit: 5, errors: "has \(Sandbox.settings) mapped into memory")
  }

  @Test func `The first change of what is in a lower layer`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root mounts an overlay of file systems")
    let space = try Namespace(sandbox, Self.overlay)
    try space.drydock("migrate Place/Notes").expect(errors: "overlay")
    try space.drydock("rollback Place/Notes").expect()
  }

  @Test(arguments: ["while umount -l /proc; do :; done", "mount -t tmpfs none /proc"])
  func `Without /proc nothing is done by half`(_ setup: String) throws {
    try #require(getuid() == 0, "run as root, as CI does: only root takes /proc away")
    let archive = try sandbox.snapshot()
    let independent = [["--version"], ["verify", "--help"]]
    let expected = try independent.map { try sandbox.drydock($0) }
    let before = try sandbox.tree()
    let space = try Namespace(sandbox, setup)
    for (arguments, expected) in zip(independent, expected) {
      let result = try space.drydock(arguments).expect()
      #expect(result.output == expected.output, "\(arguments) \(result)")
    }
    try space.drydock("no-such-command").expect(exit: 64)
    for arguments in [
      ["status", "Notes"], ["inspect", "Notes"], ["migrate", "Notes"], ["migrate", "Notes", "--dry-run"],
      ["snapshot", "Notes", "-r", "Backups"], ["restore", archive, "Notes"], ["restore", archive, "New"],
      ["verify", archive, "--container", "Notes"], ["diff", archive, "Notes"], ["log", "Notes"],
      ["rollback", "Notes"], ["recover", "Notes"], ["vault", "list", "Notes"], ["list", "-r", "Backups"],
      ["show", archive], ["verify", archive], ["keygen", "-o", "key"],
    ] {
      try space.drydock(arguments).expect(exit: 1, errors: "/proc, which is needed")
    }
    try sandbox.tree().expectSame(as: before)
    #expect(try sandbox.names("Backups").count == 1)
  }
}
