import Foundation
import TestSupport
import Testing

/// A container that changes at random.
struct RandomContainer {
  static let flag = "user.com.apple.metadata:com_apple_backup_excludeItem"
  private static let database = ["db.sqlite", "db.sqlite-wal", "db.sqlite-shm", "db.sqlite-journal"]

  let lab: Lab
  var random: SeededRandom

  init(seed: UInt64) throws {
    lab = try Lab()
    try lab.make(lab.directory("saved"))
    random = SeededRandom(seed: seed)
    try lab.directory(in: "d0/d1/d2")
    // Some dozens of pages, so that a few rows are less than half of them.
    try lab.sql(
      "db.sqlite",
      """
      PRAGMA journal_mode=WAL; CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
      WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 300)
      INSERT INTO t(b) SELECT hex(randomblob(500)) FROM r
      """)
  }

  mutating func name() -> String {
    let directory = ["", "d0/", "d0/d1/", "d0/d1/d2/", "e/"].randomElement(using: &random) ?? ""
    return directory + "f\(Int.random(in: 0..<12, using: &random))"
  }

  mutating func change() throws {
    let (name, other) = (name(), name())
    let size = [0, 1, 700, 40_000, 1_200_000].randomElement(using: &random) ?? 0
    switch Int.random(in: 0..<23, using: &random) {
    case 0...2:
      _ = try? lab.shell("[ -d \(name) ] || rm -f \(name)", in: lab.root)
      try? lab.write(name, random.bytes(size))
    case 3: script("printf more >> \(name)")
    case 4: script("truncate -s \(size) \(name)")
    case 5: script("mv \(name) \(other)")
    case 6: script("rm -rf \(name); ln -s \(other) \(name)")
    case 7: script("rm -rf \(name); mkdir -p \(name)/inner; echo x > \(name)/inner/y")
    case 8: script("rm -f \(other); ln \(name) \(other)")
    case 9: script("chmod 6\(Int.random(in: 0..<8, using: &random))4 \(name)")
    case 10: script("setfattr -n user.test -v \(size) \(name)")
    case 11: script("cp -a \(name) \(other)")
    // A few blocks of a large file.
    case 12...13:
      let offset = Int.random(in: 0..<1_200_000, using: &random)
      script(
        "[ ! -f \(name) ] || printf changed | dd of=\(name) bs=1 seek=\(offset) conv=notrunc status=none")
    // Without the log of an earlier one, which does not belong to it.
    case 14: script("rm -f \(lab.directory("saved"))/*; cp -a db.sqlite* \(lab.directory("saved"))")
    // As after a crash, the log lacks its last transactions; or all of them.
    case 15:
      script(
        "cmp -s db.sqlite \(lab.directory("saved"))/db.sqlite && cat \(lab.directory("saved"))/db.sqlite-wal > db.sqlite-wal"
      )
    case 16: script("rm -f db.sqlite-wal db.sqlite-shm")
    case 17:
      try lab.sql(
        "db.sqlite",
        "INSERT INTO t(b) SELECT hex(randomblob(200)) FROM (SELECT 1 UNION SELECT 2), (SELECT 1 UNION SELECT 2)"
      )
    // Changed, and its old time set again.
    case 19...20:
      script(
        "t=$(stat -c %y \(name)); [ ! -f \(name) ] || printf now | dd of=\(name) conv=notrunc status=none; touch -d \"$t\" \(name)"
      )
    case 18:
      let path = [name, name, "d0/d1", "d0/d1/d2", "e"].randomElement(using: &random) ?? name
      if Int.random(in: 0..<3, using: &random) == 0 { return unflag() }
      script("setfattr -n \(Self.flag) -v com.apple.backupd \(path)")
    default:
      let statement: String? =
        [
          nil, nil, nil, nil, nil, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE",
          "PRAGMA journal_mode=WAL", "DELETE FROM t WHERE a % 3 = 0",
          "PRAGMA journal_mode=DELETE; PRAGMA page_size=\(512 << Int.random(in: 0...7, using: &random)); VACUUM",
        ].randomElement(using: &random) ?? nil
      if let statement {
        try lab.sql("db.sqlite", statement)
      } else {
        try lab.shell(
          Lab.leavingTheLog(
            "UPDATE t SET b = b || 'x' WHERE a % \(Int.random(in: 2...90, using: &random)) = 0"),
          in: lab.root)
      }
    }
  }

  /// Nothing is excluded any more.
  func unflag() { script("find . -mindepth 1 -print0 | xargs -0 setfattr -h -x \(Self.flag)") }

  private func script(_ text: String) { _ = try? lab.shell(text, in: lab.root) }

  /// What a snapshot has of the container, without the database: its rows are compared.
  static func tree(_ root: String) throws -> TreeListing {
    try TreeListing(root, leavingOut: flag).without(database)
  }
}
