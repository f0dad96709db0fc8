import Foundation
import TestSupport
import Testing

@testable import AppContainer

@Suite struct DatabaseLockTests {
  @Test(arguments: ["WAL", "DELETE"]) func anotherSQLiteSeesItLocked(mode: String) throws {
    try DatabaseLab.with { lab in
      try lab.make(mode)
      let before = try lab.listing()
      var lock = try DatabaseLock.acquire(lab.main, in: lab.root)
      #expect(lock != nil)
      for statement in ["SELECT count(*) FROM account", "UPDATE account SET balance = 1"] {
        let result = try lab.sqlite(statement)
        #expect(!result.succeeded && result.errors.contains("locked"), "\(result)")
      }
      // A second one in this process is kept out too, and opening and closing the file does not end the lock.
      #expect(try DatabaseLock.acquire(lab.main, in: lab.root) == nil)
      _ = try lab.root.contents(lab.main)
      #expect(try !lab.sqlite("SELECT 1 FROM account").succeeded)
      #expect(try lab.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)

      try lock?.downgrade(path: lab.path)
      if mode == "DELETE" {
        #expect(try lab.sqlite("SELECT count(*) FROM account").output.contains("200"))
        #expect(try !lab.sqlite("UPDATE account SET balance = 1").succeeded)
      }
      lock = nil
      #expect(try lab.sqlite("UPDATE account SET balance = 1").succeeded)
    }
  }

  @Test func isRefusedWhereSomebodyHoldsOne() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let holder = try lab.open("SELECT count(*) FROM account")
      #expect(try DatabaseLock.acquire(lab.main, in: lab.root) == nil)
      holder.closeInput()
      _ = try holder.wait()
      #expect(try DatabaseLock.acquire(lab.main, in: lab.root) != nil)
    }
  }
}
