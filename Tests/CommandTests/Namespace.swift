import Foundation
import TestSupport
import Testing

/// A mount namespace of its own for one test: what is mounted in it is seen by nobody else, and is gone with the
/// process that holds it, even when the test crashes.
final class Namespace {
  private let holder: RunningCommand
  private let sandbox: Sandbox

  /// - Parameter setup: shell commands that mount; `$0` is the sandbox.
  init(_ sandbox: Sandbox, _ setup: String) throws {
    self.sandbox = sandbox
    let unshare = getuid() == 0 ? ["-m"] : ["-rm"]
    // `exec cat`: the holder lives until its input ends.
    holder = try Command.spawn(
      Tools.system("unshare"),
      unshare + ["/bin/sh", "-ec", setup + "\necho mounted\nexec cat", sandbox.directory.path])
    try holder.waitForLine("mounted")
  }

  deinit { holder.kill() }

  /// One with a tmpfs at `Disk` in the sandbox.
  ///
  /// - Parameter setup: shell commands in the sandbox's directory, such as copies of what is to be on the disk.
  static func disk(_ sandbox: Sandbox, megabytes: Int, _ setup: String = "") throws -> Namespace {
    try Namespace(sandbox, "cd \"$0\"; mkdir Disk; mount -t tmpfs -o size=\(megabytes)m none Disk\n" + setup)
  }

  /// Leaves so many kilobytes of `Disk` free.
  func fill(leaving free: Int) throws {
    try empty()
    var status = statvfs()
    try #require(statvfs(self("Disk"), &status) == 0)
    let size = Int(status.f_bavail) * Int(status.f_frsize) - free * 1024
    try #require(size >= 0, "so much is missing")
    try RawFiles.write([UInt8](repeating: 0, count: size), to: Array(self("Disk/filler").utf8))
  }

  /// Removes what fills `Disk`.
  func empty() throws {
    let filler = Array(self("Disk/filler").utf8)
    guard RawFiles.exists(filler) else { return }
    // A program that another test starts has the descriptors of this process until it runs: the space is free at once without it.
    try RawFiles.write([], to: filler)
    try RawFiles.remove(filler)
  }

  /// A path of the sandbox as it is in the namespace, for this process to look at.
  func callAsFunction(_ path: String) -> String { "/proc/\(holder.process)/root" + sandbox(path) }

  func tree(_ path: String = "Notes") throws -> TreeListing { try TreeListing(self(path)) }

  /// Runs a program in the namespace, in the sandbox's directory.
  func run(_ program: String, _ arguments: [String]) throws -> CommandResult {
    let user = getuid() == 0 ? [] : ["-U", "--preserve-credentials"]
    let enter = ["-t", String(holder.process), "-m"] + user
    return try Command.run(
      Tools.system("nsenter"),
      enter + ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", sandbox.directory.path, program] + arguments,
      environment: sandbox.environment)
  }

  /// Runs `drydock`.
  func drydock(_ line: some CommandWords) throws -> CommandResult { try run(sandbox.program, line.words) }

  func drydock(_ first: String, _ second: String, _ others: String...) throws -> CommandResult {
    try run(sandbox.program, [first, second] + others)
  }
}
