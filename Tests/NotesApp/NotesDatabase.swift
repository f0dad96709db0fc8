import Foundation
import GRDB

/// The app's database: tasks, and accounts whose balances always add up to the same total, so that a copy that
/// holds half a transaction gives itself away.
struct NotesDatabase {
  static let total = 200_000
  static let accounts = 200

  private let queue: DatabaseQueue

  /// The database of a container, wherever its version of the app keeps it.
  static func find(in directory: String) throws -> String {
    for place in [ContainerOptions.newPlace, ContainerOptions.oldPlace] {
      let path = directory + "/" + place
      if access(path, F_OK) == 0 { return path }
    }
    throw AppError("there is no database in \(directory)")
  }

  /// Opens a database, and keeps the mode it has.
  init(at path: String) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(10)
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = NORMAL") }
    queue = try DatabaseQueue(path: path, configuration: configuration)
    // SQLite opens its files at the first use.
    _ = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM account") }
  }

  /// Moves money from account to account, one transaction each, as fast as it goes.
  func moveMoney(until stop: StopRequest) throws {
    var commits = 0
    while !stop.isMade() {
      let from = Int.random(in: 1...Self.accounts)
      let to = Int.random(in: 1...Self.accounts)
      let amount = Int.random(in: 1...50)
      try queue.write { database in
        let change = "UPDATE account SET balance = balance + ? WHERE id = ?"
        try database.execute(sql: change, arguments: [-amount, from])
        try database.execute(sql: change, arguments: [amount, to])
      }
      commits += 1
      if commits == 1 { say("ready") }
    }
    say("\(commits) transactions")
  }

  /// Puts the log into the main file as often as it goes; with RESTART and TRUNCATE the log starts anew each time.
  func checkpoint(_ mode: String, until stop: StopRequest) throws {
    guard let mode = Database.CheckpointMode(name: mode) else { throw AppError("there is no mode \(mode)") }
    var done = 0
    while !stop.isMade() {
      do {
        _ = try queue.writeWithoutTransaction { try $0.checkpoint(mode) }
        done += 1
        if done == 1 { say("ready") }
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {}
    }
    say("\(done) checkpoints")
  }

  /// Has the database open until told to stop.
  func hold(until stop: StopRequest) throws {
    say("ready")
    while !stop.isMade(waiting: 20) {}
    // The connection must outlive the wait.
    try queue.close()
  }

  /// Looks at a database as an auditor would; throws when something is wrong.
  static func check(_ path: String) throws {
    guard access(path, R_OK) == 0 else { throw AppError(call: "open", path: path) }
    let queue = try DatabaseQueue(path: path)
    try queue.read { database in
      let integrity = try String.fetchAll(database, sql: "PRAGMA integrity_check").joined(separator: "; ")
      let orphans = try Row.fetchAll(database, sql: "PRAGMA foreign_key_check").count
      let sum = try Int.fetchOne(database, sql: "SELECT sum(balance) FROM account") ?? 0
      let tasks = try Int.fetchOne(database, sql: "SELECT count(*) FROM task") ?? 0
      print(
        "integrity \(integrity), foreign keys \(orphans == 0 ? "ok" : "broken: \(orphans)")", terminator: ", "
      )
      print("\(tasks) tasks, all accounts together \(sum)")
      if integrity != "ok" || orphans != 0 || sum != total {
        throw AppError("\(path) is not what the app wrote (accounts should add up to \(total))")
      }
    }
  }

  private func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}

extension Database.CheckpointMode {
  fileprivate init?(name: String) {
    switch name {
    case "PASSIVE": self = .passive
    case "FULL": self = .full
    case "RESTART": self = .restart
    case "TRUNCATE": self = .truncate
    default: return nil
    }
  }
}
