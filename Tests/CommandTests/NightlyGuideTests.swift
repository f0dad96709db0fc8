import Foundation
import TestSupport
import Testing

/// What the guide on repositories shows about a backup every night, tried.
@Suite struct NightlyGuideTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// The blocks of a language in the guide, with its paths moved into a sandbox.
  private func blocks(_ language: String, in sandbox: Sandbox) throws -> [String] {
    let guide = try String(
      contentsOfFile: Sandbox.repository + "/Sources/Drydock/Drydock.docc/Repositories.md", encoding: .utf8)
    return guide.split(separator: "```\(language)\n").dropFirst().map { text in
      String(text.prefix { $0 != "`" }).replacing("/usr/local/bin/drydock", with: sandbox.program)
        .replacing("/etc/drydock", with: sandbox("etc")).replacing("/srv/notes", with: sandbox("Notes"))
        .replacing("/var/backups/notes", with: sandbox("Backups"))
        .replacing("/srv/containers", with: sandbox("Containers"))
    }
  }

  private func prepare(_ sandbox: Sandbox) throws {
    try sandbox.shell("mkdir etc Notes; echo text > Notes/file")
    try sandbox.write("etc/drydock.yaml", try #require(blocks("yaml", in: sandbox).first))
  }

  @Test func `The crontab line, in an empty environment, prints nothing; and says what is wrong`() throws {
    try prepare(sandbox)
    let line = try #require(blocks("crontab", in: sandbox).first)
    #expect(line.hasPrefix("30 2 * * * ") && !line.contains("%"), "cron ends a command at a percent sign")
    let command = line.dropFirst("30 2 * * * ".count).trimmingCharacters(in: .newlines)
    for number in 1...2 {
      let result = try Command.run(
        Tools.system("env"), ["-i", "/bin/sh", "-c", command], directory: "/"
      ).expect()
      #expect(result.output.isEmpty && result.errors.isEmpty, "\(result)")
      // Of two archives of a day the newer one is kept, and the oldest one.
      #expect(try sandbox.names("Backups").count == number)
      #expect(try sandbox.names("Backups").allSatisfy { $0.hasSuffix(".tar.zst.age") })
    }
    try sandbox.shell(
      "rm -r Notes; mkdir Notes; mkfifo Notes/pipe; sed -i 's/daily: 14/dayly: 14/' etc/drydock.yaml")
    try Command.run(Tools.system("env"), ["-i", "/bin/sh", "-c", command], directory: "/").expect(
      exit: 4, errors: "did you mean `daily`")
    #expect(try sandbox.names("Backups").count == 2)
  }

  @Test func `The script for several containers removes nothing while a snapshot fails`() throws {
    try prepare(sandbox)
    let script = try #require(blocks("sh", in: sandbox).first)
    try sandbox.shell("mkdir -p Containers/ada Containers/bob")
    for name in ["ada", "bob"] { try sandbox.write("Containers/\(name)/file", name) }
    for number in 1...2 {
      let result = try Command.run(Tools.system("env"), ["-i", "/bin/sh", "-c", script], directory: "/")
        .expect()
      #expect(result.output.isEmpty && result.errors.isEmpty, "\(result)")
      #expect(try sandbox.names("Backups").count == 2 * number)
    }
    try sandbox.shell("sed -i 's/retention: .*/retention: {last: 1}/' etc/drydock.yaml")
    let holder = try sandbox.lock("Containers/bob")
    let short = script.replacing("--lock-timeout 600", with: "--lock-timeout 0")
    try Command.run(Tools.system("env"), ["-i", "/bin/sh", "-c", short], directory: "/").expect(
      exit: 1, errors: "locked by")
    #expect(try sandbox.names("Backups").count == 5)
    try holder.finish()
    // Of archives of one second that no key opens, all are kept: they may be of a compaction.
    try sandbox.shell("sleep 1")
    #expect(try Command.run(Tools.system("env"), ["-i", "/bin/sh", "-c", script], directory: "/").succeeded)
    #expect(try sandbox.names("Backups").count == 2)
  }

  @Test func `Everything of an instance is removed after a question`() throws {
    try sandbox.shell("mkdir Notes Backups; echo text > Notes/file")
    try sandbox.succeed("snapshot Notes -r Backups --instance ada")
    let command = "\(sandbox.program) forget -r Backups --instance ada --everything"
    for (answer, count) in [("n", 1), ("", 1), ("y", 0)] {
      let result = try sandbox.shell(
        "printf '\(answer)\\n' | script -qec '\(command)' /dev/null || echo refused")
      #expect(result.contains("will be removed for good. Continue? [y/N]"), "\(result)")
      #expect(result.contains("nothing was removed") == (count == 1), "\(result)")
      #expect(try sandbox.names("Backups").count == count)
    }
  }
}
