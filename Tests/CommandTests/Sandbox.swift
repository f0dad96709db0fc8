import AgeEncryption
import Cryptography
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
  /// `DRYDOCK_COMMIT` and `DRYDOCK_DEVICE_KEY` of the program under test.
  private(set) var commit: String?
  private var deviceKey: String?

  static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path
  static let settings = "Library/Preferences/com.example.notes.plist"
  static let oldDatabase = "Documents/database.sqlite"
  static let newDatabase = "Library/Application Support/database.sqlite"
  static let latest = 6
  /// What the sample app keeps in its settings up to version 4, and in its vault from version 5 on.
  static let token = "made-up-token-of-ada-lovelace"
  /// The device key of this run of the tests, as `drydock keygen` writes it.
  private static let newKey = Result {
    let made = try Command.run(Tools.drydock(), ["keygen"])
    guard made.succeeded else { throw SystemFailure("drydock keygen: \(made)") }
    return made.output
  }

  /// A sandbox that is removed with the test's suite, or with the last that has it.
  init() throws {
    directory = try TemporaryDirectory()
    deviceKey = directory("device.key")
    program = try Tools.drydock()
    app = try Tools.notesApp()
    try FileManager.default.copyItem(atPath: Self.repository + "/Migrations", toPath: directory("Migrations"))
    try write("drydock.yaml", Self.configuration().replacing(/(?m)^(groups|  journal): .*\n/, with: ""))
    for later in ["0007_widget", "releases.yaml"] { try remove("Migrations/" + later) }
    try RawFiles.createDirectories(directory("tmp"))
    try write("device.key", Self.newKey.get())
  }

  init(creating name: String, version: Int = 0, photos: Int = 1, _ options: String...) throws {
    try self.init()
    try create(name, version: version, photos: photos, options)
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
  static func with<T>(commit: String? = nil, _ body: (Sandbox) throws -> T) throws -> T {
    let sandbox = try Sandbox()
    return try withExtendedLifetime(sandbox.directory) { try body(sandbox.with(commit: commit)) }
  }

  /// The same with another commit strategy.
  func with(commit: String?) -> Sandbox {
    var sandbox = self
    sandbox.commit = commit
    return sandbox
  }

  /// The same with another device key, or none.
  func with(key: String?) -> Sandbox {
    var sandbox = self
    sandbox.deviceKey = key
    return sandbox
  }

  /// The path of something in the sandbox.
  func callAsFunction(_ relative: String) -> String { directory(relative) }

  // MARK: Programs

  /// What the program under test finds in its environment: nothing of the caller's, and a directory for temporary
  /// files that the test can look into.
  var environment: [String: String?] {
    [
      "TMPDIR": directory("tmp"), "COLUMNS": nil, "NO_COLOR": "1", "DRYDOCK_COMMIT": commit,
      "DRYDOCK_DEVICE_KEY": deviceKey,
      // The tests may run in a pipeline; what a command does there is said by those that are about it.
      "CI": nil, "GITHUB_ACTIONS": nil, "GITHUB_WORKSPACE": nil, "GITHUB_STEP_SUMMARY": nil,
    ]
  }

  /// Runs `drydock`.
  func drydock(
    _ line: some CommandWords, environment extra: [String: String?] = [:], input: [UInt8] = []
  ) throws -> CommandResult {
    try Command.run(
      program, line.words, environment: environment.merging(extra) { $1 }, input: input,
      directory: directory.path)
  }

  /// Runs `drydock` with words that may have spaces.
  func drydock(_ first: String, _ second: String, _ others: String...) throws -> CommandResult {
    try drydock([first, second] + others)
  }

  /// Starts `drydock`.
  func start(_ line: some CommandWords, environment extra: [String: String?] = [:]) throws -> RunningCommand {
    try Command.spawn(
      program, line.words, environment: environment.merging(extra) { $1 }, input: [],
      directory: directory.path
    )
  }

  /// Runs `drydock`, which must succeed; gives its output.
  @discardableResult
  func succeed(
    _ line: some CommandWords, environment extra: [String: String?] = [:], input: [UInt8] = []
  ) throws -> String {
    let result = try drydock(line, environment: extra, input: input)
    guard result.succeeded else {
      throw SystemFailure("drydock \(line.words.joined(separator: " ")): \(result)")
    }
    return result.output
  }

  @discardableResult
  func succeed(_ first: String, _ second: String, _ others: String...) throws -> String {
    try succeed([first, second] + others)
  }

  /// The document of a command that must succeed.
  func document(_ line: String) throws -> JSONNode { try JSONNode(succeed(line.words + ["--json"])) }

  func document(_ first: String, _ second: String, _ others: String...) throws -> JSONNode {
    try JSONNode(succeed([first, second] + others + ["--json"]))
  }

  /// Runs `drydock`, which kills itself at a step.
  func kill(
    _ line: some CommandWords, at step: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let killed = try drydock(line, environment: ["DRYDOCK_KILL_AT": step])
    #expect(killed.signal == SIGKILL, "\(step): \(killed)", sourceLocation: sourceLocation)
  }

  /// Runs `drydock` under `strace`; see `Tools.tracing`.
  func traced(
    _ calls: String, _ change: String? = nil, log: String = "/dev/null", _ arguments: [String]
  ) throws -> CommandResult {
    try execute(Tools.system("strace"), Tools.tracing(calls, change, log: log) + [program] + arguments)
  }

  /// The arguments of `setpriv` for another user.
  static let otherUser = ["--reuid=65534", "--regid=65534", "--clear-groups"]

  /// Runs `drydock` as another user.
  func asOther(_ line: some CommandWords) throws -> CommandResult {
    try execute(Tools.system("setpriv"), Self.otherUser + [program] + line.words)
  }

  /// Lets another user enter the sandbox and these directories of it, and write temporary files.
  func openToOthers(_ directories: String...) throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    for path in [""] + directories { try mode(path, 0o755) }
    try mode("tmp", 0o777)
  }

  /// Gives a path to the other user, with all below it.
  func giveToOther(_ path: String) throws {
    try run(Tools.system("chown"), "-Rh", "65534:65534", directory(path))
  }

  func mode(_ path: String, _ mode: mode_t) throws {
    try #require(chmod(directory(path), mode) == 0, "\(path)")
  }

  /// Runs `drydock` at a terminal, where each of its questions gets this answer, after a shell command.
  func atTerminal(
    _ answer: String, _ arguments: [String], before command: String? = nil,
    environment extra: [String: String?] = [:]
  ) throws -> CommandResult {
    let script = Self.repository + "/Tests/AgeEncryptionTests/at_terminal.py"
    return try Command.run(
      Tools.system("python3"), [script, answer, program] + arguments,
      environment: environment.merging(["BEFORE_ANSWER": command]) { $1 }.merging(extra) { $1 },
      directory: directory.path, limit: 60)
  }

  /// Somebody who holds the lock of a file or directory until `finish()`, as another command would.
  func lock(_ path: String, shared: Bool = false) throws -> RunningCommand {
    let script = """
      import fcntl, os, sys
      fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.\(shared ? "LOCK_SH" : "LOCK_EX"))
      print("locked", flush=True)
      sys.stdin.read()
      """
    let holder = try Command.spawn(Tools.system("python3"), ["-c", script, directory(path)])
    try holder.waitForLine("locked")
    return holder
  }

  /// The sample app, with a container open until `finish()`.
  func hold(_ container: String = "Notes") throws -> RunningCommand {
    let holder = try Command.spawn(app, ["hold", directory(container)])
    try holder.waitForLine("ready")
    return holder
  }

  /// Runs another program as the program under test is run.
  func execute(
    _ program: String, _ arguments: [String], environment extra: [String: String?] = [:]
  ) throws -> CommandResult {
    try Command.run(
      program, arguments, environment: environment.merging(extra) { $1 }, directory: directory.path)
  }

  /// Runs the sample app, or another program, which must succeed; gives its output.
  @discardableResult
  func run(_ program: String, _ arguments: String...) throws -> String {
    let result = try Command.run(program, arguments, directory: directory.path)
    guard result.succeeded else { throw SystemFailure("\(program) \(arguments): \(result)") }
    return result.output
  }

  /// Runs a shell script in the sandbox, which must succeed; gives its output.
  @discardableResult
  func shell(_ script: String) throws -> String {
    let result = try Command.run(
      "/bin/bash", ["-euo", "pipefail", "-c", script], environment: environment, directory: directory.path)
    guard result.succeeded else { throw SystemFailure("\(script): \(result)") }
    return result.output
  }

  /// Runs a Python program in the sandbox, which must succeed.
  @discardableResult
  func python(_ script: String) throws -> String { try run(Tools.system("python3"), "-c", script) }

  /// Runs SQL on a database of the sandbox; gives the rows.
  @discardableResult
  func sqlite(_ path: String, _ sql: String) throws -> String {
    try run(Tools.system("sqlite3"), directory(path), sql)
  }

  // MARK: Containers

  /// Makes a small container as the sample app of a version leaves it.
  func create(_ name: String = "Notes", version: Int = 0, photos: Int = 1, _ options: String...) throws {
    try create(name, version: version, photos: photos, options)
  }

  private func create(_ name: String, version: Int, photos: Int, _ options: [String]) throws {
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

  /// The name of the state beside a container.
  static func state(of container: String) throws -> String {
    let sum = try Command.run(Tools.system("sha256sum"), input: Array(container.utf8)).output
    return ".drydock-" + sum.prefix(16)
  }

  /// The state beside the only container that has one.
  func state() throws -> String { try #require(try names().first { $0.hasPrefix(".drydock-") }) }

  /// Copies a fixture of the sample app into the sandbox's directory of fixtures. From then on the app is that of the newest
  /// version, with its group.
  func addFixture(_ name: String) throws {
    try write("drydock.yaml", Self.configuration())
    try run(
      Tools.system("cp"), "-a", "--", "\(Self.repository)/Migrations/0007_widget", directory("Migrations"))
    for made in ["Fixtures", "Shared/AppGroup/notes"] {
      try RawFiles.createDirectories(directory(made))
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
      forms.contains { entry.content.holds($0) }
    }.keys.map { String(decoding: $0, as: UTF8.self) }.sorted()
  }

  func write(_ path: String, _ text: String) throws {
    try write(path, bytes: Array(text.utf8))
  }

  func write(_ path: String, bytes: [UInt8]) throws {
    let parent = (directory(path) as NSString).deletingLastPathComponent
    try RawFiles.createDirectories(parent)
    try RawFiles.write(bytes, to: Array(directory(path).utf8))
  }

  func read(_ path: String) throws -> [UInt8] {
    Array(try RawFiles.read(Array(directory(path).utf8)))
  }

  func text(_ path: String) throws -> String { String(decoding: try read(path), as: UTF8.self) }

  /// Changes a text.
  func edit(_ path: String, _ change: (String) throws -> String) throws {
    try write(path, change(text(path)))
  }

  func exists(_ path: String) -> Bool { RawFiles.exists(Array(directory(path).utf8)) }

  func remove(_ path: String) throws { try RawFiles.remove(Array(directory(path).utf8)) }

  /// The settings of a container as the app sees them, one `key = value` each, but for nested ones: their keys come
  /// in another order each time.
  func settings(_ name: String = "Notes") throws -> [String] {
    try run(app, "settings", directory(name)).split(separator: "\n").map(String.init)
      .filter { !$0.hasPrefix("window.frame") }
  }

  // MARK: Encryption

  /// Makes a key file with age's own program; gives its public key.
  func key(_ file: String) throws -> String {
    try run(Tools.system("age-keygen"), "-o", directory(file))
    return try recipient(of: file)
  }

  func recipient(of file: String) throws -> String {
    try run(Tools.system("age-keygen"), "-y", directory(file)).trimmingCharacters(in: .newlines)
  }

  /// Takes an encrypted snapshot as a file in the sandbox.
  func encrypted(_ file: String, to recipients: String..., container: String = "Notes") throws {
    try succeed(["snapshot", container, "-o", file] + recipients.flatMap { ["--recipient", $0] })
  }

  /// Replaces a plain archive, by its full path, with one for a passphrase that opens in no time: the program's own take a
  /// second for each try.
  func seal(_ archive: String, passphrase: String) throws {
    let plain = try RawFiles.read(Array(archive.utf8))
    let target = AgeTarget.passphrase(SecretBytes(Array(passphrase.utf8)), workFactor: 4)
    let sealed = try plain.withUnsafeBytes { try Age.seal($0, to: target) }
    try RawFiles.write(sealed, to: Array((archive + ".age").utf8))
    try RawFiles.remove(Array(archive.utf8))
  }

  /// The files of the sandbox, hidden ones too, that have a text in their content or name; containers aside.
  func files(with text: String, except containers: [String]) throws -> [String] {
    let skipped = containers.map { "-path ./\($0) -prune -o" }.joined(separator: " ")
    return try shell(
      """
      find . \(skipped) -name '*\(text)*' -print
      find . \(skipped) -type f -print0 | xargs -0 --no-run-if-empty grep -laF -- '\(text)' || true
      """
    ).split(separator: "\n").map(String.init)
  }
}

/// The arguments of a program: words, or a line of them.
protocol CommandWords {
  var words: [String] { get }
}

extension String: CommandWords {
  var words: [String] { split(separator: " ").map(String.init) }
}

extension [String]: CommandWords {
  var words: [String] { self }
}
