import Foundation
import TestSupport
import Testing

/// The question before a restore removes something, at a real terminal.
@Suite struct RestoreConfirmationTests {
  private let sandbox: Sandbox, archive: String

  /// A container that has changed since its archive was made.
  init() throws {
    sandbox = try Sandbox(creating: "Notes")
    archive = try sandbox.snapshot()
    try sandbox.write("Notes/Documents/extra.txt", "extra")
    try sandbox.remove("Notes/Documents/empty.txt")
  }

  @Test func `A user who says no: nothing has changed, and nothing is left to recover`() throws {
    let before = try sandbox.tree("Notes")
    let refused = try sandbox.atTerminal("n", ["restore", archive, "Notes"]).expect(exit: 1)
    let asked = try sandbox.shell(
      "printf 'n\\n' | script -qec '\(sandbox.program) restore \(archive) Notes' /dev/null || true")
    #expect(asked.contains("1 path that the archive does not have will be removed. Continue? [y/N]"))
    #expect(refused.errors.contains("nothing was changed; --keep-extra leaves them"), "\(refused)")
    try sandbox.tree("Notes").expectSame(as: before)
    try sandbox.drydock("recover Notes").expect(output: "nothing was interrupted")
  }

  @Test func `The question is asked under the lock`() throws {
    let meanwhile = """
      \(sandbox.program) restore \(archive) Notes --yes >/dev/null 2>other.txt; echo "exit $?" >>other.txt
      """
    try sandbox.atTerminal("y", ["restore", archive, "Notes"], before: meanwhile).expect()
    let other = try sandbox.text("other.txt")
    #expect(other.contains("locked by process") && other.contains("exit 5"), "\(other)")
    #expect(!sandbox.exists("Notes/Documents/extra.txt") && sandbox.exists("Notes/Documents/empty.txt"))
  }

  @Test func `What is not what the question showed is not removed: the restore is refused`() throws {
    try sandbox.atTerminal(
      "y", ["restore", archive, "Notes"], before: "echo late >Notes/Documents/late.txt"
    ).expect(exit: 5, errors: "nothing was changed")
    for name in ["extra", "late"] { #expect(sandbox.exists("Notes/Documents/\(name).txt")) }
    #expect(!sandbox.exists("Notes/Documents/empty.txt"))
  }

  @Test(arguments: [["--keep-extra"], ["--yes"]])
  func `Without a removal, or with --yes, nothing is asked`(_ options: [String]) throws {
    let done = try sandbox.atTerminal("n", ["restore", archive, "Notes"] + options).expect()
    #expect(!done.errors.contains("[y/N]"), "\(done)")
    #expect(sandbox.exists("Notes/Documents/extra.txt") == (options == ["--keep-extra"]))
    #expect(sandbox.exists("Notes/Documents/empty.txt"))
  }
}
