import Foundation
import TestSupport
import Testing

/// What a snapshot must see at one moment, and what it cannot see.
@Suite struct ConcurrentSnapshotTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// What follows from such times is in `ClockTests`.
  @Test func `Times of archives that cannot be right are warned of`() throws {
    try sandbox.write("Box/Documents/file", "1")
    let first = try sandbox.drydock("snapshot Box -r Backups").expect()
    #expect(!first.errors.contains("clock"), "\(first)")
    let path = first.output.trimmingCharacters(in: .newlines)
    // As if its clock had been a day ahead.
    try sandbox.run(Tools.system("touch"), "-d", "1 day ago", path)
    try sandbox.drydock("list -r Backups").expect(
      errors: (path as NSString).lastPathComponent + ": of 20", "and written at 20")
    try sandbox.drydock("list -r Backups --json").expect(output: "\"kind\" : \"published\"")
    try sandbox.drydock("restore latest Box -r Backups").expect(errors: "a clock was wrong")
  }

  @Test(arguments: ["EIO", "EPERM"])
  func `An attribute that cannot be read: what it may exclude is named, not stored`(_ error: String) throws {
    try sandbox.write("Box/Documents/private/diary", "not for backups")
    try sandbox.write("Box/Documents/other", "stored")
    try ExtendedAttributes.set(
      "user.xdg.robots.backup", Array("false".utf8), of: Array(sandbox("Box/Documents/private").utf8))
    try sandbox.traced("lgetxattr", "error=\(error)", ["snapshot", "Box", "-o", "Box.tar.zst"]).expect(
      exit: 3, errors: "not stored, unreadable: Documents/private")
    let names = try sandbox.run(Tools.system("bsdtar"), "-tf", sandbox("Box.tar.zst"))
    #expect(names.contains("container/Documents/other") && !names.contains("diary"))
    try sandbox.write("Box/Documents/extra", "removed")
    try sandbox.succeed("restore Box.tar.zst Box")
    #expect(sandbox.exists("Box/Documents/private/diary") && !sandbox.exists("Box/Documents/extra"))
  }

  @Test func `A cache tag that cannot be read: what it may exclude is not stored, and named`() throws {
    try sandbox.write("Box/Documents/cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    try sandbox.write("Box/Documents/cache/made", "can be made again")
    try sandbox.write("Box/Documents/other", "stored")
    try sandbox.run(Tools.system("chmod"), "0600", sandbox("Box/Documents/cache/CACHEDIR.TAG"))
    try sandbox.openToOthers("Box", "Box/Documents", "Box/Documents/cache")
    try sandbox.asOther("snapshot Box -o tmp/Box.tar.zst").expect(
      exit: 3, errors: "not stored, unreadable: Documents/cache")
    let names = try sandbox.run(Tools.system("bsdtar"), "-tf", sandbox("tmp/Box.tar.zst"))
    #expect(names.contains("container/Documents/other") && !names.contains("made"))
    try sandbox.succeed("restore tmp/Box.tar.zst Box")
    #expect(sandbox.exists("Box/Documents/cache/made"))
  }
}
