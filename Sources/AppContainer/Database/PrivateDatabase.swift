import Foundation
import GRDB

extension DatabaseQueue {
  /// Opens a copy of a database, or a new one, that only this connection uses.
  ///
  /// SQLite would keep the index of its log in a file that it maps into memory, and touching a page for which the file
  /// system has no block any more ends the process (SIGBUS). Who has the database alone keeps the index in its own
  /// memory.
  ///
  /// - Parameter configure: sets up the connection; what it prepares runs after that.
  package static func alone(
    with path: String, _ configure: (inout GRDB.Configuration) -> Void = { _ in }
  ) throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    // The lock that this takes is a writer's, even to read.
    let mayWrite = access(path, W_OK) == 0 || access(path, F_OK) != 0
    configuration.readonly = !mayWrite
    if mayWrite { configuration.prepareDatabase { try $0.execute(sql: "PRAGMA locking_mode=EXCLUSIVE") } }
    configure(&configuration)
    return try DatabaseQueue(path: path, configuration: configuration)
  }
}
