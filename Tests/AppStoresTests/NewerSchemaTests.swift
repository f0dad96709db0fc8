import AppStores
import Foundation
import GRDB
import TestSupport
import Testing

@Suite("A schema that this SQLite cannot read") struct NewerSchemaTests {
  /// A database of which one object is written in a language that no SQLite knows, as of a version of SQLite.
  private func database(_ change: String, version: [UInt8], _ body: (String) throws -> Void) throws {
    let folder = try TemporaryDirectory()
    let path = folder("a.sqlite")
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction {
      try $0.execute(
        sql: "CREATE TABLE t(x); CREATE VIEW v AS SELECT x FROM t; PRAGMA writable_schema = ON; \(change)")
    }
    try queue.close()
    var bytes = try [UInt8](RawFiles.read(Array(path.utf8)))
    bytes.replaceSubrange(96..<100, with: version)
    try RawFiles.write(bytes, to: Array(path.utf8))
    try body(path)
  }

  @Test(
    "It is named with its object and the versions of SQLite that read and wrote it",
    arguments: [
      ("UPDATE sqlite_schema SET sql = 'CREATE TABLE t(x) FUTURE' WHERE name = 't'", "`t`", "FUTURE"),
      (
        "UPDATE sqlite_schema SET sql = 'CREATE VIEW v AS SELECT x PIVOT y' WHERE name = 'v'", "`v`",
        "near \"y\""
      ),
    ])
  func newer(_ change: String, _ object: String, _ reason: String) throws {
    let own = try DatabaseQueue().read { try String.fetchOne($0, sql: "SELECT sqlite_version()") } ?? ""
    // 3,099,001
    try database(change, version: [0, 0x2F, 0x49, 0x79]) { path in
      for open in [{ try DatabaseQueue.alone(with: path) }, { try DatabaseQueue.untrusted(path) }] {
        #expect {
          try open()
        } throws: { error in
          let message = (error as? DatabaseError)?.plainMessage ?? ""
          return message.contains("cannot read \(object) of the schema (") && message.contains(reason)
            && message.hasPrefix("SQLite \(own) cannot")
            && message.hasSuffix("written by SQLite 3.99.1, which is newer: use a Drydock with it")
        }
      }
    }
    try database(change, version: [0, 0x2D, 0xC6, 0xC1]) { path in
      #expect {
        try DatabaseQueue.alone(with: path)
      } throws: {
        ($0 as? DatabaseError)?.plainMessage.hasSuffix("SQLite 3.0.1, so that the schema is corrupt") == true
      }
    }
  }

  @Test func `A function of the schema that this SQLite lacks is named like one of a statement`() throws {
    let change = "UPDATE sqlite_schema SET sql = 'CREATE TABLE t(x CHECK (later(x)))' WHERE name = 't'"
    try database(change, version: [0, 0x2F, 0x49, 0x79]) { path in
      let queue = try DatabaseQueue.alone(with: path)
      #expect {
        try queue.write { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
      } throws: {
        ($0 as? DatabaseError)?.plainMessage.hasPrefix("no such function: later; if the app defines it")
          == true
      }
      try queue.close()
    }
  }
}
