import Foundation

/// A pretend iOS app, `com.example.notes`: the second process that the tests and the demo need. It makes
/// containers as such an app leaves them, keeps its database open, writes to it, and checks what comes back.
@main
enum NotesApp {
  static let usage = """
    notes-app create DIR [--version 0…7] [--tasks N] [--photos N] [--texts N] [--caches N] [--bulk-mb N]
                         [--uuid UUID] [--rollback-journal] [--leave-wal] [--token TEXT] [--signed-out]
                         [--as-shipped] [--group DIR]
    notes-app write DIR [--seconds S]          moves money until SIGTERM, or the end of a piped standard input
    notes-app checkpoint DIR [--mode PASSIVE|FULL|RESTART|TRUNCATE] [--seconds S]
                                               puts the log into the database, again and again
    notes-app hold DIR [--seconds S]           has the database open and does nothing
    notes-app touch-settings DIR KEY VALUE     writes a setting as an app does, and a new note
    notes-app settings DIR                     prints the settings, one a line
    notes-app check DATABASE                   integrity, foreign keys, and the sum over all accounts

    """

  static func main() {
    // Before any other thread starts, so that none of them takes the signal's default action.
    StopRequest.prepare()
    do {
      var arguments = Arguments(CommandLine.arguments.dropFirst())
      switch try arguments.next("a command") {
      case "create":
        try ContainerMaker(options: ContainerOptions(&arguments)).make()
      case "write":
        let directory = try arguments.next("a container")
        let seconds = try arguments.number("--seconds")
        try arguments.finish()
        try NotesDatabase(at: NotesDatabase.find(in: directory)).moveMoney(until: StopRequest(after: seconds))
      case "checkpoint":
        let directory = try arguments.next("a container")
        let mode = try arguments.value("--mode") ?? "TRUNCATE"
        let seconds = try arguments.number("--seconds")
        try arguments.finish()
        try NotesDatabase(at: NotesDatabase.find(in: directory)).checkpoint(
          mode, until: StopRequest(after: seconds))
      case "hold":
        let directory = try arguments.next("a container")
        let seconds = try arguments.number("--seconds")
        try arguments.finish()
        try NotesDatabase(at: NotesDatabase.find(in: directory)).hold(until: StopRequest(after: seconds))
      case "touch-settings":
        let directory = try arguments.next("a container")
        let (key, value) = (try arguments.next("a key"), try arguments.next("a value"))
        try arguments.finish()
        try AppSettings.change(key, to: value, in: directory)
      case "settings":
        let directory = try arguments.next("a container")
        try arguments.finish()
        try AppSettings.printAll(of: directory)
      case "check":
        let database = try arguments.next("a database")
        try arguments.finish()
        try NotesDatabase.check(database)
      case let other:
        throw AppError("unknown command \(other)\n\(usage)")
      }
    } catch {
      FileHandle.standardError.write(Data("notes-app: \(error)\n".utf8))
      exit(1)
    }
  }
}

/// What went wrong, in words.
struct AppError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }

  init(call: String, path: String) {
    description = "\(call) of \(path): \(String(cString: strerror(errno)))"
  }
}
