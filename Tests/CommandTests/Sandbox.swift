import Foundation
import TestSupport
import Testing

/// A directory with the sample app's `drydock.yaml` and `Migrations`, in which the real program runs as a user
/// runs it: containers are its sub-directories, and the program's working directory is the sandbox. The app is that of
/// version 6, which had no group yet and released nothing: each container stands for itself, and tests edit migrations.
struct Sandbox {
  let directory: TemporaryDirectory
  let program: String
  let app: String
  /// `DRYDOCK_COMMIT` of the program under test.
  var commit: String?

  static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path
  static let settings = "Library/Preferences/com.example.notes.plist"
  static let oldDatabase = "Documents/database.sqlite"
  static let newDatabase = "Library/Application Support/database.sqlite"
  static let latest = 6
  /// What the sample app keeps in its settings up to version 4, and in its vault from version 5 on.
  static let token = "made-up-token-of-ada-lovelace"
  /// The device key of this run of the tests, as `drydock keygen` writes it.
  private static let deviceKey = Result {
    let made = try Command.run(Tools.drydock(), ["keygen"])
    guard made.succeeded else { throw SystemFailure("drydock keygen: \(made)") }
    return made.output
  }

  private init(_ directory: TemporaryDirectory) throws {
    self.directory = directory
    program = try Tools.drydock()
    app = try Tools.notesApp()
    try FileManager.default.copyItem(
      atPath: Self.repository + "/Migrations", toPath: directory("Migrations"))
    try write("drydock.yaml", Self.configuration().replacing(/(?m)^(groups|  journal): .*\n/, with: ""))
    for later in ["0007_widget", "releases.yaml"] { try remove("Migrations/" + later) }
    try FileManager.default.createDirectory(atPath: directory("tmp"), withIntermediateDirectories: false)
    try write("device.key", Self.deviceKey.get())
  }

  /// The sample app's `drydock.yaml`, with its paths as they are in a sandbox.
  private static func configuration() throws -> String {
    let same = (0...9).map { "\($0): \($0)" }.joined(separator: ", ")
    return try String(contentsOfFile: repository + "/Fixtures/drydock.yaml", encoding: .utf8)
      .replacing("migrations: ../Migrations", with: "migrations: Migrations")
      .replacing("fixtures: .\n", with: "fixtures: Fixtures\n")
      // Nothing is released: that the app counts as its migrations do has to be said.
      .replacing("{defaults: dataSchemaVersion}", with: "{defaults: dataSchemaVersion, at: {\(same)}}")
  }

  /// Runs a test with a sandbox that is removed afterwards.
  static func with<T>(_ body: (Sandbox) throws -> T) throws -> T {
    try TemporaryDirectory.with { try body(Sandbox($0)) }
  }

  /// The path of something in the sandbox.
  func callAsFunction(_ relative: String) -> String { directory(relative) }

  // MARK: Programs

  /// What the program under test finds in its environment: nothing of the caller's, and a directory for temporary
  /// files that the test can look into.
  var environment: [String: String?] {
    [
      "TMPDIR": directory("tmp"), "COLUMNS": nil, "NO_COLOR": "1", "DRYDOCK_COMMIT": commit,
      "DRYDOCK_DEVICE_KEY": directory("device.key"),
      // The tests may run in a pipeline; what a command does there is said by those that are about it.
      "CI": nil, "GITHUB_ACTIONS": nil, "GITHUB_WORKSPACE": nil, "GITHUB_STEP_SUMMARY": nil,
    ]
  }

  /// Runs `drydock`.
  func drydock(_ arguments: [String], environment extra: [String: String?] = [:]) throws -> CommandResult {
    try Command.run(
      program, arguments, environment: environment.merging(extra) { $1 }, directory: directory.path)
  }

  /// Runs `drydock`.
  func drydock(_ arguments: String...) throws -> CommandResult { try drydock(arguments) }

  /// Starts `drydock`.
  func start(_ arguments: [String], environment extra: [String: String?] = [:]) throws -> RunningCommand {
    try Command.spawn(
      program, arguments, environment: environment.merging(extra) { $1 }, input: [], directory: directory.path
    )
  }

  /// Runs `drydock`, which must succeed; gives its output.
  @discardableResult
  func succeed(_ arguments: String...) throws -> String {
    let result = try drydock(arguments)
    guard result.succeeded else {
      throw SystemFailure("drydock \(arguments.joined(separator: " ")): \(result)")
    }
    return result.output
  }

  /// Runs the sample app, or another program, which must succeed; gives its output.
  @discardableResult
  func run(_ program: String, _ arguments: String...) throws -> String {
    let result = try Command.run(program, arguments, directory: directory.path)
    guard result.succeeded else { throw SystemFailure("\(program) \(arguments): \(result)") }
    return result.output
  }

  // MARK: Containers

  /// Makes a small container as the sample app of a version leaves it.
  func create(_ name: String = "Notes", version: Int = 0, photos: Int = 1, _ options: String...) throws {
    let small = ["--tasks", "5", "--photos", String(photos), "--texts", "3", "--caches", "2"]
    let result = try Command.run(
      app, ["create", directory(name), "--version", String(version)] + small + options)
    guard result.succeeded else { throw SystemFailure("NotesApp create: \(result)") }
  }

  /// A copy with everything: hard links, attributes, times to the nanosecond.
  func copy(_ name: String, to target: String) throws {
    try run(Tools.system("cp"), "-a", "--", directory(name), directory(target))
  }

  /// All that can be seen of a tree.
  func tree(_ name: String = "Notes") throws -> TreeListing { try TreeListing(directory(name)) }

  /// Takes a snapshot into the repository `Backups`; gives the archive's full path.
  func snapshot(_ name: String = "Notes") throws -> String {
    let path = try succeed("snapshot", name, "-r", "Backups").trimmingCharacters(in: .newlines)
    guard path.hasPrefix(directory.path + "/") else { throw SystemFailure("not a full path: \(path)") }
    return path
  }

  /// The names in the sandbox or in a directory of it, sorted.
  func names(_ path: String = ".") throws -> [String] {
    try RawFiles.names(in: Array(directory(path).utf8)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Copies a fixture of the sample app into the sandbox's directory of fixtures. From then on the app is that of the newest
  /// version, with its group.
  func addFixture(_ name: String) throws {
    try write("drydock.yaml", Self.configuration())
    try run(
      Tools.system("cp"), "-a", "--", "\(Self.repository)/Migrations/0007_widget", directory("Migrations"))
    for made in ["Fixtures", "Shared/AppGroup/notes"] {
      try FileManager.default.createDirectory(atPath: directory(made), withIntermediateDirectories: true)
    }
    try run(Tools.system("cp"), "-a", "--", "\(Self.repository)/Fixtures/\(name)", directory("Fixtures"))
  }

  // MARK: Files

  /// The files in a directory of the sandbox that hold the app's token in the clear, in whatever way it is written.
  func filesWithToken(_ path: String = ".") throws -> [String] {
    let forms = [
      Data(Self.token.utf8), Data(Data(Self.token.utf8).base64EncodedString().utf8.dropLast(4)),
      Self.token.data(using: .utf16BigEndian) ?? Data(),
    ]
    return try tree(path).entries.filter { _, entry in
      forms.contains { entry.content.range(of: $0) != nil }
    }.keys.map { String(decoding: $0, as: UTF8.self) }.sorted()
  }

  func write(_ path: String, _ text: String) throws {
    try write(path, bytes: Array(text.utf8))
  }

  func write(_ path: String, bytes: [UInt8]) throws {
    let parent = (directory(path) as NSString).deletingLastPathComponent
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    try RawFiles.write(bytes, to: Array(directory(path).utf8))
  }

  func read(_ path: String) throws -> [UInt8] {
    Array(try RawFiles.read(Array(directory(path).utf8)))
  }

  func exists(_ path: String) -> Bool { RawFiles.exists(Array(directory(path).utf8)) }

  func remove(_ path: String) throws { try RawFiles.remove(Array(directory(path).utf8)) }

  /// The settings of a container as the app sees them, one `key = value` each, but for nested ones: their keys come
  /// in another order each time.
  func settings(_ name: String = "Notes") throws -> [String] {
    try run(app, "settings", directory(name)).split(separator: "\n").map(String.init)
      .filter { !$0.hasPrefix("window.frame") }
  }
}
