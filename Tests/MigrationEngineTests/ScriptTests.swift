import AppStores
import FileSystem
import Foundation
import GRDB
import TestSupport
import Testing

@testable import MigrationEngine

/// Steps that run a program on a private copy.
@Suite struct ScriptTests {
  /// What is known after a migration with one script step.
  struct Outcome: Sendable {
    var notes: [String] = []
    var error = "no error"
    var before: TreeListing
    var after: TreeListing
  }

  /// Runs a shell script as the only step of a migration.
  ///
  /// - Parameters:
  ///   - arguments: further arguments of the step, in YAML.
  ///   - fails: whether the migration must fail.
  ///   - setUp: makes the container.
  ///   - look: looks at the container that was made.
  func run(
    _ script: String, _ arguments: String = "", fails: Bool = false,
    sourceLocation: SourceLocation = #_sourceLocation,
    setUp: @escaping @Sendable (Lab) throws -> Void = { _ in },
    look: @escaping @Sendable (Lab) throws -> Void = { _ in }
  ) async throws -> Outcome {
    try await onThread {
      try Lab.with { lab in
        try lab.write("Documents/untouched.txt", "as it was")
        try setUp(lab)
        try lab.migration("0001_a/script.sh", "#!/bin/sh\nset -e\n" + script)
        try lab.migration("0001_a/migration.yaml", "steps:\n  - script:\n      run: script.sh\n" + arguments)
        try lab.baseline(0)
        let before = try lab.tree()
        var outcome = Outcome(before: before, after: before)
        let error = failure { outcome.notes = try lab.migrate().migrations.first?.notes ?? [] }
        outcome.error = error.text
        #expect((error.text != "no error") == fails, "\(error)", sourceLocation: sourceLocation)
        outcome.after = try lab.tree()
        try look(lab)
        return outcome
      }
    }
  }

  /// The paths that differ, the history and the times of directories above changes aside.
  private func changes(_ outcome: Outcome) -> [String] {
    outcome.after.without("Library/Application Support").differences(
      from: outcome.before.without("Library/Application Support"),
      comparing: TreeListing.copied.union([.inode]), ignoringTimesOf: ["", "Documents", "Library", "d", "e"]
    ).filter { !$0.contains(": inode was") || $0.contains("untouched") }
  }

  /// Whoever waits for scripts on all of Swift's threads still gets to their ends.
  @Test func asManyAsThreadsAndMore() async throws {
    try await withThrowingTaskGroup { group in
      for _ in 0..<3 * ProcessInfo.processInfo.activeProcessorCount {
        group.addTask {
          let end = try ScriptProcess(
            executable: "/bin/sh", arguments: ["-c", "exit 7"], environment: [:], directory: "/", timeout: 60
          ).run(users: { [] }).end
          #expect(end == .exit(7))
        }
      }
      try await group.waitForAll()
    }
  }

  @Test(arguments: [("1", 0), ("2", 0), ("1", 3), ("2", 3)])
  func secretsInItsOutputAreHidden(_ stream: String, _ end: Int) async throws {
    let outcome = try await run("echo 'log: X-Api-Key: hunter22' >&\(stream)\nexit \(end)", fails: end > 0)
    let text = end == 0 ? outcome.notes.joined(separator: "\n") : outcome.error
    #expect(text.contains("log: ") && text.contains("(secret, ") && !text.contains("hunter22"), "\(text)")
  }

  /// Forms of what programs write, and what stays of it.
  @Test(arguments: [
    ("Authorization: Bearer hunter22hunter22", "Authorization: "),
    ("got Basic YWRhOmh1bnRlcjI=", "got Basic "),
    (#"{"user": "ada", "access_token": "hunter22 with words"}"#, "ada"),
    (#"step {"apiKey": "hunter22", "n": 1} done"#, "\"n\": 1} done"),
    (#"{\"password\": \"hunter22\"} escaped"#, "escaped"), ("paid by 4111 1111 1111 1111 today", "paid by "),
    ("log: X-Api-Key: hunter22", "log: "), ("password = 'hunter22 hunter22'", "password = "),
    ("see https://ada:hunter22@example.com/x", "example.com/x"),
    ("[{\n  \"name\": \"api_key\",\n  \"value\": \"hunter22\"\n}]", "api_key"),
  ]) func secretsInOutput(_ written: String, _ stays: String) {
    let text = Redactor().shown(message: written)
    #expect(text.contains("(secret, ") && text.contains(stays), "\(text)")
    for secret in ["hunter22", "YWRhOmh1bnRlcjI", "with words", "1111 1111"] {
      #expect(!text.contains(secret), "\(text)")
    }
  }

  @Test func whatItChangesIsTakenOverAndAllElseStays() async throws {
    let outcome = try await run(
      """
      mv d/old d/new
      rm d/gone
      printf more >> d/grown
      chmod 600 d/mode
      ln -sf elsewhere d/link
      mkdir -p made/deep
      printf x > made/deep/file
      mv tree moved
      rm -r d/becomes-file && printf f > d/becomes-file
      rm d/becomes-directory && mkdir d/becomes-directory
      setfattr -n user.note -v new d/attribute
      setfattr -n user.directory -v 1 e
      touch -d 2020-01-01T00:00:00Z d/time
      cat d/read > /dev/null
      """
    ) { lab in
      for name in ["old", "gone", "grown", "mode", "attribute", "time", "read", "becomes-directory"] {
        try lab.write(try ContainerPath("d/\(name)"), name)
      }
      for path in ["d/becomes-file/1", "tree/a/b", "e/stays"] { try lab.write(try ContainerPath(path), path) }
      try FileManager.default.createSymbolicLink(atPath: lab.path("d/link"), withDestinationPath: "old")
    }
    #expect(outcome.notes.isEmpty)
    let told = Set(changes(outcome).map { change in String(change.prefix { $0 != ":" }) })
    let expected: Set<String> = [
      "d/old", "d/new", "d/gone", "d/grown", "d/mode", "d/link", "made", "made/deep", "made/deep/file",
      "tree", "tree/a", "tree/a/b", "moved", "moved/a", "moved/a/b", "d/becomes-file", "d/becomes-file/1",
      "d/becomes-directory", "d/attribute", "d/time", "e",
    ]
    #expect(told == expected)
    let tree = outcome.after
    #expect(
      tree["d/new"]?.content == Data("old".utf8)
        && tree["d/new"]?.modified == outcome.before["d/old"]?.modified)
    #expect(tree["d/grown"]?.content == Data("grownmore".utf8) && tree["d/mode"]?.mode == 0o600)
    #expect(tree["d/link"]?.linkTarget == Array("elsewhere".utf8))
    #expect(tree["moved/a/b"]?.content == Data("tree/a/b".utf8))
    #expect(tree["d/becomes-file"]?.kind == .file && tree["d/becomes-directory"]?.kind == .directory)
    #expect(tree["d/attribute"]?.attributes[Array("user.note".utf8)] == Array("new".utf8))
    #expect(tree["d/time"]?.modified == 1_577_836_800_000_000_000)
    #expect(tree["d/read"]?.inode == outcome.before["d/read"]?.inode)
    #expect(tree["Documents/untouched.txt"]?.inode == outcome.before["Documents/untouched.txt"]?.inode)
  }

  @Test func hardLinksStayOrAreMadeOrBroken() async throws {
    let outcome = try await run(
      "printf more >> a\nln c d\ncp f tmp && mv tmp f\n",
      setUp: { lab in
        for (name, link) in [("a", "b"), ("e", "f")] {
          try lab.write(try ContainerPath(name), name)
          try FileManager.default.linkItem(
            atPath: lab.directory("container/" + name), toPath: lab.directory("container/" + link))
        }
        try lab.write("c", "c")
      })
    let tree = outcome.after
    #expect(tree["b"]?.content == Data("amore".utf8) && tree["b"]?.hardLink == Array("a".utf8))
    #expect(tree["d"]?.hardLink == Array("c".utf8))
    #expect(tree["f"]?.content == Data("e".utf8) && tree["f"]?.hardLink == nil)
  }

  @Test func databasesAreChangedThroughSQLite() async throws {
    let outcome = try await run(
      """
      sqlite3 "$DRYDOCK_DATABASE_NOTES" "INSERT INTO t VALUES (3)"
      sqlite3 Documents/busy.sqlite "INSERT INTO t VALUES (3); SELECT count(*) FROM t"
      sqlite3 Documents/read.sqlite "SELECT count(*) FROM t"
      mv Documents/moved.sqlite Documents/there.sqlite
      sqlite3 Documents/new.sqlite "PRAGMA journal_mode=WAL; CREATE TABLE t (a); INSERT INTO t VALUES (9)"
      """,
      setUp: { lab in
        try lab.database(Lab.oldDatabase, "CREATE TABLE t (a)")
        try lab.busyDatabase("Documents/busy.sqlite")
        try lab.busyDatabase("Documents/moved.sqlite")
        try lab.database("Documents/read.sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE t (a)")
      },
      look: { (lab: Lab) throws in
        let found = { try lab.column($0, in: $1) }
        #expect(try found("SELECT a FROM t", Lab.oldDatabase) == ["3"])
        #expect(try found("SELECT a FROM t", "Documents/busy.sqlite") == ["1", "2", "3"])
        #expect(try found("SELECT count(*) FROM t", "Documents/there.sqlite") == ["2"])
        #expect(try found("SELECT a FROM t", "Documents/new.sqlite") == ["9"])
        #expect(try found("PRAGMA journal_mode", "Documents/new.sqlite") == ["wal"])
      })
    #expect(outcome.notes.map { $0.split(separator: "\n").last } == ["  wal"])
    #expect(outcome.notes.first?.contains("script: `script.sh` wrote\n  3\n  0\n  wal") == true)
    let tree = outcome.after
    #expect(tree["Documents/read.sqlite"]?.inode == outcome.before["Documents/read.sqlite"]?.inode)
    #expect(!tree.paths.contains { $0.hasSuffix("-wal") || $0.hasSuffix("-shm") })
  }

  /// What SQLite leaves when a program ends without closing it: a log with all that was committed.
  @Test func aLogThatIsLeftIsTakenIn() async throws {
    let outcome = try await run(
      """
      python3 -c '
      import os, sqlite3
      db = sqlite3.connect("Documents/database.sqlite")
      db.execute("PRAGMA journal_mode=WAL")
      db.execute("INSERT INTO t VALUES (7)")
      db.commit()
      os._exit(0)'
      test -s Documents/database.sqlite-wal
      """,
      setUp: { try $0.database(Lab.oldDatabase, "CREATE TABLE t (a)") },
      look: { (lab: Lab) throws in #expect(try lab.query(Lab.oldDatabase, "SELECT a FROM t") == [["a": 7]]) })
    #expect(!outcome.after.paths.contains { $0.hasSuffix("-wal") })
  }

  @Test func muchOutputOnBothStreamsIsReadAndCut() async throws {
    let outcome = try await run(
      """
      echo first; echo first >&2
      head -c 5000000 /dev/zero | tr '\\0' x >&2 &
      head -c 5000000 /dev/zero | tr '\\0' y
      wait
      echo; echo last; echo last >&2
      printf done > Documents/done
      """)
    #expect(outcome.after["Documents/done"] != nil && outcome.notes.count == 2)
    for (note, letter) in zip(outcome.notes, ["y", "x"]) {
      #expect(note.contains("\n  first\n  \(letter)") && note.hasSuffix("last") && note.utf8.count < 70_000)
      #expect(note.contains("bytes are left out …]"))
    }
  }

  @Test(
    arguments: [
      ("echo bad luck >&2; exit 3", "", "script: `script.sh` ended with exit code 3; it wrote\n  bad luck"),
      ("exit 1", "", "ended with exit code 1; it wrote nothing"),
      ("kill -9 $$", "", "script: `script.sh` was ended by signal 9 (Killed)"),
      ("sleep 60", "      timeout: 0.3\n", "`script.sh` was ended after 0.3 seconds"),
      ("sleep 60 &", "", "ended while what it had started went on (process "),
      (
        // It ends with the copy.
        "setsid sh -c 'while [ -d Library ]; do sleep 0.1; done' > /dev/null 2>&1 &", "",
        "ended while what it had started went on (process "
      ),
      ("mkfifo Documents/pipe", "", "Documents/pipe: the result of the script cannot be used: a socket"),
      ("rm -r Library", "", "cannot be used: the migration history"),
      ("printf x > Documents/untouched.txt; exit 9", "", "exit code 9"),
    ])
  func aFailureChangesNothing(_ script: String, _ arguments: String, _ message: String) async throws {
    let outcome = try await run(script, arguments, fails: true)
    #expect(outcome.error.hasPrefix("0001_a/migration.yaml:2:5: script: "), "\(outcome.error)")
    #expect(outcome.error.contains(message), "\(outcome.error)")
    #expect(outcome.after.differences(from: outcome.before, comparing: TreeListing.untouched) == [])
  }

  @Test func aTimeOutEndsAllThatItStarted() async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("pids-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: file) }
    let outcome = try await run(
      """
      sh -c 'trap "" TERM; sh -c "trap \\"\\" TERM; echo \\$\\$ >> \(file); while :; do sleep 1; done" & echo $$ >> \(file); wait' &
      wait
      """, "      timeout: 0.5\n", fails: true)
    #expect(outcome.error.contains("was ended after 0.5 seconds"))
    let pids = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
    #expect(pids.count == 2)
    for pid in pids {
      // A process that has ended may still be waited for by its new parent.
      let state = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
      #expect(state == nil || state?.contains(") Z ") == true, "\(state ?? "")")
    }
  }

  @Test func itsEnvironmentIsTheDocumentedOne() async throws {
    let outcome = try await run(
      """
      test "$PWD" = "$DRYDOCK_CONTAINER"
      test -f "$DRYDOCK_MIGRATION/migration.yaml"
      test -d "$TMPDIR" && printf x > "$TMPDIR/scratch"
      test "$1" = "two words" && test "$#" = 2
      test -z "$(cat)"
      env | sed 's/=.*//' | grep -v '^LC_' | sort
      """,
      """
            arguments: [two words, "$HOME"]
            environment: {MODE: fast}
      """, setUp: { try $0.database(Lab.oldDatabase, "CREATE TABLE t (a)") })
    let machine: Set<Substring> = [
      "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TZ", "USER",
      // Of the shell itself.
      "PWD", "OLDPWD", "SHLVL", "_",
    ]
    // There are others, such as a terminal's, that it does not get.
    #expect(
      ProcessInfo.processInfo.environment.keys.contains { !machine.contains($0[...]) && !$0.hasPrefix("LC_") }
    )
    let names = Set(outcome.notes.first?.split(separator: "\n").dropFirst().map { $0.dropFirst(2) } ?? [])
    #expect(
      names.subtracting(machine) == [
        "DRYDOCK_APP", "DRYDOCK_CONTAINER", "DRYDOCK_DATABASE_NOTES", "DRYDOCK_DEFAULTS", "DRYDOCK_DIRECTION",
        "DRYDOCK_INSTANCE", "DRYDOCK_LAYOUT", "DRYDOCK_MIGRATION", "MODE", "TMPDIR",
      ])
  }

  @Test func itsCopyIsFull() async throws {
    let outcome = try await run(
      """
      test "$(cat tmp/cached)" = cached
      test "$(cat staged)" = staged
      test "$(stat -c %b sparse)" -lt 64 && test "$(stat -c %s sparse)" = 8388608
      test ! -e Documents/fifo
      """,
      setUp: { lab in
        try lab.write("tmp/cached", "cached")
        try lab.write("staged", "staged")
        let file = lab.path("sparse")
        try lab.write("sparse", "start")
        #expect(truncate(file, 8 << 20) == 0)
        #expect(mkfifo(lab.path("Documents/fifo"), 0o600) == 0)
      })
    #expect(outcome.after["Documents/fifo"]?.kind == .other)
    #expect(changes(outcome) == [])
  }

  @Test func groupsAreInTheCopy() async throws {
    try await onThread {
      try Lab.with { lab in
        lab.configuration.groups = ["group.notes": "../group"]
        try RawFiles.createDirectories(lab.directory("group/Library"))
        try Data("shared".utf8).write(to: URL(fileURLWithPath: lab.directory("group/old")))
        try lab.write("own", "own")
        let script = "mv .groups/group.notes/old .groups/group.notes/new; mv own .groups/group.notes/Library"
        try lab.migration("0001_a.yaml", step: "script: {program: sh, arguments: [-c, '\(script)']}")
        try lab.baseline(0)
        try lab.migrate()
        let group = try TreeListing(lab.directory("group"))
        #expect(
          group.paths == ["Library", "Library/own", "new"] && group["new"]?.content == Data("shared".utf8))
        #expect(try !lab.tree().paths.contains("own"))
      }
    }
  }

  #if os(Linux)
    /// A file system in memory tells no time of what is written through a mapping that was read before.
    @Test func whatIsWrittenThroughAMappingIsFoundInMemoryToo() async throws {
      let memory = "/dev/shm/drydock-test-\(UUID())"
      defer { try? FileManager.default.removeItem(atPath: memory) }
      _ = try await run(
        """
        python3 -c '
        import mmap
        file = open("mapped", "r+b")
        mapping = mmap.mmap(file.fileno(), 0)
        assert mapping[0:1] == b"o"
        mapping[0:3] = b"new"'
        """,
        setUp: { lab in
          try FileManager.default.moveItem(atPath: lab.directory("container"), toPath: memory + "-made")
          try RawFiles.createDirectories(memory)
          try FileManager.default.moveItem(atPath: memory + "-made", toPath: memory + "/container")
          try FileManager.default.createSymbolicLink(
            atPath: lab.directory("container"), withDestinationPath: memory + "/container")
          try lab.write("mapped", "old")
        })
      #expect(try String(contentsOfFile: memory + "/container/mapped", encoding: .utf8) == "new")
    }
  #endif

  @Test(
    arguments: [
      ("{}", "script needs `run`, a file of the migration's directory, or `program`"),
      ("{run: script.sh, program: sh}", "name either `run` or `program`, not both"),
      ("{run: scrip.sh}", "the migration has no file `scrip.sh`; did you mean `script.sh`?"),
      ("{program: bin/sh}", "`program` is an absolute path, or a name in PATH"),
      ("{run: script.sh, timeout: 0}", "`timeout` is a number of seconds up to 86400, not the integer 0"),
      ("{run: script.sh, environment: {1A: x}}", "`1A` is not a variable's name"),
      ("{run: script.sh, environment: {DRYDOCK_APP: x}}", "variables that start with DRYDOCK_"),
      ("{run: script.sh, down: {arguments: [x]}}", "`down` needs `run`"),
      ("{program: there-is-no-such-program}", "cannot be started: the program does not exist; check PATH"),
      ("{run: not-a-program}", "`not-a-program` cannot be started: "),
      ("{run: no-interpreter}", "`no-interpreter` cannot be started: "),
    ])
  func whatCannotRunIsTold(_ arguments: String, _ message: String) async throws {
    let text = try await onThread {
      try Lab.with { lab in
        try lab.migration("0001_a/script.sh", "#!/bin/sh\n")
        try lab.migration("0001_a/not-a-program", "just text\n")
        try lab.migration("0001_a/no-interpreter", "#!/no/such/interpreter\n")
        try lab.migration("0001_a/migration.yaml", step: "script: \(arguments)")
        return failure {
          try lab.baseline(0)
          return try lab.migrate()
        }.text
      }
    }
    #expect(text.contains(message), "\(text)")
  }
}
