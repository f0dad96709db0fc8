import Foundation
import TestSupport
import Testing

@testable import AppStores

@Suite struct DatabaseLockTests {
  private let sandbox: DatabaseSandbox
  init() throws { sandbox = try DatabaseSandbox() }

  @Test(arguments: ["WAL", "DELETE"]) func anotherSQLiteSeesItLocked(mode: String) throws {
    try sandbox.make(mode)
    let before = try sandbox.listing()
    var lock = try DatabaseLock.acquire(sandbox.main, in: sandbox.root)
    #expect(lock != nil)
    for statement in ["SELECT count(*) FROM account", "UPDATE account SET balance = 1"] {
      let result = try sandbox.sqlite(statement)
      #expect(!result.succeeded && result.errors.contains("locked"), "\(result)")
    }
    // A second one in this process is kept out too, and opening and closing the file does not end the lock.
    #expect(try DatabaseLock.acquire(sandbox.main, in: sandbox.root) == nil)
    _ = try sandbox.root.contents(sandbox.main)
    #expect(try !sandbox.sqlite("SELECT 1 FROM account").succeeded)
    #expect(try sandbox.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)

    try lock?.downgrade(path: sandbox.path)
    if mode == "DELETE" {
      #expect(try sandbox.sqlite("SELECT count(*) FROM account").output.contains("200"))
      #expect(try !sandbox.sqlite("UPDATE account SET balance = 1").succeeded)
    }
    lock = nil
    #expect(try sandbox.sqlite("UPDATE account SET balance = 1").succeeded)
  }

  /// As when another thread starts a program: that has copies of all descriptors until it runs.
  @Test func isReleasedAlsoWhileACopyOfItsDescriptorIsOpen() throws {
    try sandbox.make("WAL")
    var lock = try DatabaseLock.acquire(sandbox.main, in: sandbox.root)
    let copy = dup(try #require(lock).file.rawValue)
    defer { close(copy) }
    #expect(try !sandbox.sqlite("SELECT 1 FROM account").succeeded)
    lock = nil
    #expect(try sandbox.sqlite("UPDATE account SET balance = 1").succeeded)
  }

  @Test func isRefusedWhileAnotherProcessHoldsOne() throws {
    try sandbox.make("WAL")
    let holder = try sandbox.open("SELECT count(*) FROM account")
    #expect(try DatabaseLock.acquire(sandbox.main, in: sandbox.root) == nil)
    try holder.finish()
    #expect(try DatabaseLock.acquire(sandbox.main, in: sandbox.root) != nil)
  }
}
