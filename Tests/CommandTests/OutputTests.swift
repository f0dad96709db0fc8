import Foundation
import TestSupport
import Testing

@Suite("Output that cannot be written") struct OutputTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox(creating: "Notes") }

  private static let device = "cannot write standard output: No space left on device"

  /// Runs `drydock` with a redirection of the shell's.
  private func drydock(_ arguments: [String], _ redirection: String) throws
    -> CommandResult
  {
    try sandbox.execute("/bin/sh", ["-c", "exec \"$0\" \"$@\" \(redirection)", sandbox.program] + arguments)
  }

  @Test func `Every command on a full device does its work, says what is missing, and exits with 1`() throws {
    try sandbox.addFixture("v0")
    let archive = try sandbox.snapshot()
    try sandbox.write("results.jsonl", sandbox.drydock("status --all . --json").output)
    let silent = ["vault get Notes s/a --output value.txt", "keygen -o key.txt"].map(\.words)
    let others = [
      "log Notes --json", "status Notes --json", "vault list Notes --json", "status Notes --exit-code",
      "migrate --all . --dry-run", "keygen", "migrate Again --dry-run --json", "help", "help migrate",
      "--help", "--version", "--generate-completion-script bash",
    ].map(\.words)
    // What prints a document prints a text, too: `JSONTests` keeps the list complete.
    let documents = JSONTests.commands(archive).filter {
      $0[0] != "defaults" && (TestExtent.isFull || $0.last != "--record")
    }
    for words in documents + others {
      let result = try drydock(words, "> /dev/full")
      if silent.contains(words) {
        #expect(result.succeeded, "\(words) \(result)")
      } else {
        #expect(result.exitCode == 1 && result.errors.contains(Self.device), "\(words) \(result)")
        #expect(!result.errors.contains("nothing was changed"), "\(words) \(result)")
      }
      #expect(!result.errors.contains("Public key") || silent.contains(words), "\(words) \(result)")
    }
    // The work was done, each time.
    // Two archives, and the tags of one.
    #expect(try sandbox.names("Backups").count == 3)
    try sandbox.succeed("verify Copy.tar.zst --data")
    #expect(try sandbox.succeed("log Notes").split(separator: "\n").count > 5)
    #expect(try sandbox.names("tmp") == [])
    // Whatever failed before keeps its code and its message.
    try drydock(["show", "drydock.yaml", "--json"], "> /dev/full").expect(exit: 4, errors: "not an archive")
  }

  @Test func `A value that does not fit on the disk is an error, not a part of a value`() throws {
    let value = Array(String(repeating: "made-up ", count: 25_000).utf8)
    try sandbox.succeed("vault set Notes s/big", input: value)
    try sandbox.shell("mkdir small")
    let small = try Namespace(sandbox, #"mount -t tmpfs -o size=64k tmpfs "$0/small""#)
    let get = #"exec "$0" vault get Notes s/big --device-key device.key > small/value"#
    try small.run("/bin/sh", ["-c", get, sandbox.program]).expect(exit: 1, errors: Self.device)

    // A pipe that its owner made non-blocking is slow, and no error.
    let reader = """
      import os, subprocess, sys
      reading, writing = os.pipe()
      os.set_blocking(writing, False)
      with subprocess.Popen(sys.argv[1:], stdout=writing) as command:
        os.close(writing)
        total = 0
        while part := os.read(reading, 1000): total += len(part)
      print(total, command.wait())
      """
    #expect(
      try sandbox.run(
        Tools.system("python3"), "-c", reader, sandbox.program, "vault", "get", "Notes", "s/big",
        "--device-key",
        "device.key") == "\(value.count) 0\n")
  }

  @Test func `A closed standard output is an error, and no file takes its place`() throws {
    for words in [["snapshot", "Notes", "-o", "A"], ["migrate", "Notes"], ["log", "Notes"]] {
      try drydock(words, "<&- >&-").expect(
        exit: 1, errors: "cannot write standard output: Bad file descriptor")
    }
    try sandbox.succeed("verify A --data")
    try sandbox.drydock("status Notes").expect(output: "version \(Sandbox.latest)")
    // Nobody hears it, but it is done.
    let silent = try drydock(["rollback", "Notes"], "2>&-").expect()
    #expect(silent.errors.isEmpty, "\(silent)")
    try sandbox.succeed("verify A --container Notes")
  }

  @Test func `A reader that has gone ends the command by the usual signal, its work done`() throws {
    try sandbox.encrypted("A", to: sandbox.key("key"))
    try sandbox.shell("mkfifo pipe")
    let gone = "3<>pipe 1>pipe 3<&-"
    for words in [
      ["migrate", "Notes", "--to", "3"], ["migrate", "--all", ".", "--jobs", "2"], ["log", "Notes"],
      ["diff", "A", "Notes", "--identity", "key"], ["--help"],
    ] {
      let result = try drydock(words, gone)
      #expect(result.signal == SIGPIPE && !result.errors.contains("error"), "\(words) \(result)")
      #expect(try sandbox.names("tmp") == [], "\(words)")
    }
    try sandbox.drydock("status Notes").expect(output: "version \(Sandbox.latest)")
    #expect(try sandbox.succeed("recover Notes") == "nothing was interrupted\n")
    // A script of a migration has the signal as it is in a shell.
    try sandbox.write("Migrations/0007_piped/migration.yaml", "steps:\n  - script: {run: piped}\n")
    try sandbox.write("Migrations/0007_piped/piped", "#!/bin/sh\nkill -PIPE $$\necho deaf >&2\n")
    try sandbox.shell("chmod +x Migrations/0007_piped/piped")
    let script = try sandbox.drydock("migrate Notes").expect(exit: 1, errors: "signal")
    #expect(!script.errors.contains("deaf"), "\(script)")
  }
}
