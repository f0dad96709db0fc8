import Foundation
import GRDB

/// Makes the app's database as its versions did.
struct NotesSchema {
  let options: ContainerOptions

  func create(at path: String) throws {
    var configuration = Configuration()
    configuration.journalMode = options.rollbackJournal ? .default : .wal
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    if options.leaveWAL {
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0") }
    }
    try queue.write { database in
      try database.execute(sql: schema)
      for account in 1...NotesDatabase.accounts {
        try database.execute(
          sql: "INSERT INTO account (id, name, balance) VALUES (?, ?, ?)",
          arguments: [account, "Account \(account)", NotesDatabase.total / NotesDatabase.accounts])
      }
      for (index, name) in ["Home", "Work", "Grüße"].enumerated() {
        try database.execute(
          sql: "INSERT INTO project (id, name) VALUES (?, ?)", arguments: [index + 1, name])
      }
      for task in 0..<options.tasks {
        try database.execute(
          sql: "INSERT INTO task (id, title, \(done), projectId, dueAt) VALUES (?, ?, ?, ?, ?)",
          arguments: [
            task + 1, "Task \(task + 1): buy milk 🥛", task % 3 == 0, task % 4 == 3 ? nil : task % 4 + 1,
            task % 2 == 0 ? "2026-01-\(task % 27 + 10)" : nil,
          ])
      }
    }
    try fillBulk(queue)
    if options.leaveWAL {
      // What a killed app leaves: rows that are only in the -wal. Closing would put them into the main file.
      withExtendedLifetime(queue) { _ in }
      _ = Unmanaged.passRetained(queue)
    } else {
      try queue.close()
    }
  }

  /// Blobs, when a big database is asked for.
  private func fillBulk(_ queue: DatabaseQueue) throws {
    guard options.bulkMegabytes > 0 else { return }
    var noise = Noise(seed: 3)
    for megabyte in 0..<options.bulkMegabytes {
      try queue.write { database in
        for part in 0..<16 {
          try database.execute(
            sql: "INSERT INTO attachment (id, content) VALUES (?, ?)",
            arguments: [megabyte * 16 + part + 1, Data(noise.bytes(65_536))])
        }
      }
    }
  }

  private var done: String { options.version >= 4 ? "isCompleted" : "isDone" }

  private var schema: String {
    """
    CREATE TABLE account (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL,
      balance INTEGER NOT NULL
    );
    CREATE TABLE project (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE
    );
    CREATE TABLE task (
      id INTEGER PRIMARY KEY,
      title TEXT NOT NULL,
      \(done) INTEGER NOT NULL DEFAULT 0,
      projectId INTEGER REFERENCES project (id) ON DELETE SET NULL,
      dueAt TEXT\(options.version >= 4 ? ", notes TEXT" : "")
    );
    CREATE INDEX task_project ON task (projectId);
    CREATE INDEX task_open ON task (dueAt) WHERE \(done) = 0;
    CREATE TABLE attachment (
      id INTEGER PRIMARY KEY,
      content BLOB NOT NULL
    );
    """
  }
}
