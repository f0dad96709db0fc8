import Foundation
import TestSupport
import Testing

/// A sandbox with canaries in every store, in which nothing may sing: whatever a command prints and leaves on disk is
/// searched for them.
final class CanarySandbox {
  let sandbox: Sandbox
  var environment: [String: String?] = [:]
  static let containers: Set<String> = [
    "Notes", "Changed", "Empty", "Again", "Fresh", "Trial", "Template", "Fixtures", "Failed", "Phone",
    "Phone.groups", "Robot",
  ]
  /// Containers whose token is in the vault by now: it must be nowhere else.
  var moved: Set<String> = []
  private let needles: [(kind: Canary, needles: CanaryNeedles)]

  static let device = "Keys/device.txt"
  static let identity = "Keys/identity.txt"

  init(_ sandbox: Sandbox, container: String = "Notes", version: Int = 2) throws {
    self.sandbox = sandbox
    try sandbox.shell(
      """
      mkdir -m 700 Keys; cd Keys
      for name in device device2 identity other; do
        age-keygen -o $name.txt 2> made; age-keygen -y $name.txt > $name.pub
      done
      ssh-keygen -q -t ed25519 -N '' -C notes -f sign; rm made
      """)
    var keys: [String] = []
    for name in ["device", "device2", "identity", "other"] {
      let lines = try sandbox.text("Keys/\(name).txt").split(separator: "\n")
      let key = try #require(lines.first { $0.hasPrefix("AGE-SECRET-KEY-1") })
      keys.append(String(key.dropFirst("AGE-SECRET-KEY-1".count)))
    }
    // A key that signs archives; the secret part of its file is the end.
    let signing = try sandbox.text("Keys/sign").split(separator: "\n")
    keys += signing.dropFirst(3).dropLast(1).map(String.init)
    needles = Canary.allCases.map { ($0, Canary.needles($0, keys: keys)) }
    try sandbox.write("Keys/passphrase.txt", Canary.sealed.value("passphrase") + "\n")
    try sandbox.write(
      "Keys/garbage.txt", "\(Canary.sealed.value("garbage"))\n\(Canary.sealed.value("more"))\n")
    for name in ["first", "second", "third"] { try sandbox.write("Keys/\(name)", Canary.sealed.value(name)) }
    try make(container, version: version)
  }

  func make(_ name: String, version: Int) throws {
    try sandbox.create(name, version: version, "--leave-wal")
    try CanaryPlants(sandbox: sandbox, container: name).plant("a")
  }

  /// Makes a fixture of a container with canaries, from which other settings are expected than come out.
  func addFixture(_ name: String) throws {
    try sandbox.create("Template", version: 2, "--leave-wal")
    try CanaryPlants(sandbox: sandbox, container: "Template").plant("fixture")
    try sandbox.write(
      "Fixtures/\(name)/fixture.yaml",
      """
      version: 2
      expect:
        settings: {password: another, credentials: {}, header: "none", cookies: []}
        absent-settings: [lastAnswer, endpoint]
        queries:
          - {database: Library/Application Support/database.sqlite, sql: SELECT * FROM login, rows: [[1]]}

      """)
    try sandbox.run(Tools.system("mv"), sandbox("Template"), sandbox("Fixtures/\(name)/container"))
  }

  func recipient(_ name: String) throws -> String {
    try sandbox.text("Keys/\(name).pub").trimmingCharacters(in: .newlines)
  }

  // MARK: Running

  /// Runs a command and searches what it prints; nothing may be left in the directory for temporary files.
  @discardableResult
  func run(
    _ words: [String], input: [UInt8] = [], prints: Bool = false, environment extra: [String: String?] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> CommandResult {
    let variables = sandbox.environment.merging(environment) { $1 }.merging(extra) { $1 }
    let result = try Command.run(
      sandbox.program, words, environment: variables, input: input, directory: sandbox.directory.path)
    var texts = [("standard error", result.errorBytes)]
    if !prints { texts.append(("standard output", result.outputBytes)) }
    for (stream, bytes) in texts {
      for (_, needles) in needles {
        let found = needles.found(in: Data(bytes))
        #expect(
          found.isEmpty, "drydock \(words.joined(separator: " ")): \(stream) has \(found)\n\(result)",
          sourceLocation: sourceLocation)
      }
    }
    let left = try sandbox.names("tmp")
    #expect(
      left.isEmpty || result.signal != nil, "drydock \(words.joined(separator: " ")) left tmp/\(left)",
      sourceLocation: sourceLocation)
    return result
  }

  // MARK: Searching the disk

  /// Searches everything in the sandbox.
  ///
  /// - Parameter isKilled: a command was killed just now: until the next one its stage is there.
  func searchDisk(
    _ context: String, isKilled: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let found = try foundOnDisk(isKilled: isKilled)
    #expect(found.isEmpty, "\(context): \(found)", sourceLocation: sourceLocation)
  }

  /// What stands where it must not, one line for each file and canary.
  func foundOnDisk(isKilled: Bool = false) throws -> [String] {
    try files().flatMap { path, status -> [String] in
      var known = searched[path] ?? Searched(status)
      if !known.isOf(status) { known = Searched(status) }
      var bytes: Data?
      defer { searched[path] = known }
      return try needles.compactMap { kind, needles in
        guard !mayHold(kind, path, isKilled) else { return nil }
        if known.found[kind] == nil {
          let content = try bytes ?? Data(RawFiles.read(Array(sandbox(path).utf8)) + Data("\n\(path)".utf8))
          bytes = content
          known.found[kind] = needles.found(in: content)
        }
        return known.found[kind] == [] ? nil : "\(path) has \(known.found[kind] ?? [])"
      }
    }
  }

  /// What was found in a file, which is not searched again until it changes.
  private struct Searched {
    private let status: [Int]
    var found: [Canary: [String]] = [:]

    init(_ status: stat) { self.status = Self.of(status) }

    func isOf(_ status: stat) -> Bool { self.status == Self.of(status) }

    private static func of(_ status: stat) -> [Int] {
      [Int(status.st_ino), Int(status.st_size), status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
    }
  }

  private var searched: [String: Searched] = [:]

  /// Plain archives are compressed: what must not be in them is searched in what they hold.
  func searchArchives(_ kinds: [Canary], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let archives = try files().map(\.path).filter { $0.hasSuffix(".tar.zst") }
    #expect(!archives.isEmpty, sourceLocation: sourceLocation)
    for archive in archives {
      let tar = try Command.run(Tools.system("zstd"), ["-dcq", sandbox(archive)]).outputBytes
      for (kind, needles) in needles where kinds.contains(kind) {
        let found = needles.found(in: Data(tar))
        #expect(found.isEmpty, "\(archive) holds \(found)", sourceLocation: sourceLocation)
      }
    }
  }

  private func files() throws -> [(path: String, status: stat)] {
    guard let walk = FileManager.default.enumerator(atPath: sandbox.directory.path) else { return [] }
    return walk.compactMap { $0 as? String }.compactMap { path in
      (try? RawFiles.status(Array(sandbox(path).utf8))).flatMap { status in
        status.st_mode & S_IFMT == S_IFREG ? (path, status) : nil
      }
    }
  }

  /// The places where a canary lives by right, and no others.
  private func mayHold(_ kind: Canary, _ path: String, _ isKilled: Bool) -> Bool {
    let parts = path.split(separator: "/").map(String.init)
    guard let top = parts.first else { return false }
    if top == "Keys" { return true }
    if kind == .sealed { return false }
    if path.hasSuffix(".tar.zst") && !top.hasPrefix(".") { return true }
    // Beside the container, or in it.
    let inside = parts.firstIndex(of: ".drydock-state")
    if top.hasPrefix(".drydock-") || inside != nil {
      let container = inside == nil ? owner(ofState: top) : top
      let below = parts[((inside ?? 0) + 1)...]
      return mayHold(kind, stateOf: container, Array(below), isKilled)
    }
    if top == "tmp" { return isKilled }
    return Self.containers.contains(top) && parts.count > 1 && (kind == .plain || !moved.contains(top))
  }

  /// In a state directory: the replaced files themselves, and what a killed command had staged; never a record.
  private func mayHold(_ kind: Canary, stateOf container: String?, _ below: [String], _ isKilled: Bool)
    -> Bool
  {
    // `stage/<transaction>/…`, `undo/<transaction>/<number>`; what is kept of records ends in `.json` there.
    guard below.count >= 3, let folder = below.first,
      below.count > 3 || below.last?.hasSuffix(".json") == false
    else { return false }
    if folder == "stage" { return isKilled }
    return folder == "undo" && below.count == 3
      && (kind == .plain || container.map { !moved.contains($0) } == true)
  }

  /// The containers, by the names of their states: a container may be gone, and its state still there.
  private static let states = Result {
    try Dictionary(uniqueKeysWithValues: containers.map { (try Sandbox.state(of: $0), $0) })
  }

  /// Whose state a directory beside the containers is.
  private func owner(ofState name: String) -> String? { try? Self.states.get()[name] }
}
