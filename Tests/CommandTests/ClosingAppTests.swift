import Foundation
import TestSupport
import Testing

@Suite("Apps that close") struct ClosingAppTests {
  /// A `-shm` goes when an app closes its database. The commit links what does not change, and has just listed it.
  @Test("A file that goes while the new tree is built: nothing is changed, exit 5") func removedWhileLinked()
    throws
  {
    try Sandbox.with { sandbox in
      try sandbox.create()
      let directory = "Notes/Library/Preferences/Databases/"
      let names = (0..<300).map { "\(directory)\($0).sqlite-shm" }
      for name in names { try sandbox.write(name, "x") }
      var before = try sandbox.tree()
      let running = try Command.spawn(
        Tools.system("strace"),
        Tools.tracing("linkat", "delay_enter=3000") + [sandbox.program, "migrate", "Notes", "--to", "1"],
        environment: sandbox.environment, input: [], directory: sandbox.directory.path)
      func links(_ name: String) -> UInt {
        var status = stat()
        return stat(sandbox(name), &status) == 0 ? UInt(status.st_nlink) : 0
      }
      let deadline = ContinuousClock.now + .seconds(60)
      while !names.contains(where: { links($0) > 1 }), ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.001)
      }
      let removed = try #require(names.last { links($0) == 1 })
      try sandbox.remove(removed)
      before = before.without(String(removed.dropFirst("Notes/".count)))
      try running.wait().expect(exit: 5, errors: "run it again")
      #expect(try sandbox.tree().differences(from: before, comparing: [.content, .mode]) == [])
      try sandbox.succeed("migrate Notes --to 1")
    }
  }
}
