import Foundation
import TestSupport
import Testing

/// The script that installs a release in a pipeline, with releases on a server on this machine.
@Suite struct InstallTests {
  private static let action = Sandbox.repository + "/.github/actions/install"

  private let directory: TemporaryDirectory
  private let server: RunningCommand
  private let url: String
  private let archive: String

  init() throws {
    directory = try TemporaryDirectory()
    let machine = try Command.run(Tools.system("uname"), ["-m"]).output.trimmingCharacters(in: .newlines)
    archive = "drydock-1.2.0-linux-\(machine).tar.gz"
    // A release whose sum is wrong, one without this machine's archive, one that is cut while it is sent, …
    let setup = """
      release() {
        mkdir -p releases/$1/1.2.0 work/files
        printf '%s\\n' "$2" > work/files/drydock
        chmod +x work/files/drydock
        tar -czf releases/$1/1.2.0/\(archive) -C work files
        (cd releases/$1/1.2.0 && sha256sum \(archive) > SHA256SUMS)
      }
      program='#!/bin/sh
      echo 1.2.0'
      release good "$program"
      release cut "$program"
      cp -R releases/good releases/changed
      sed -i 's/^[0-9a-f]\\{8\\}/00000000/' releases/changed/1.2.0/SHA256SUMS
      release other-machine "$program"
      sed -i 's/-linux-/-plan9-/' releases/other-machine/1.2.0/SHA256SUMS
      release other-version "${program/1.2.0/9.9.9}"
      release missing-library "$program"
      sed 's/libsqlite3\\.so\\.0/libsqliteX.so.0/g' "$(command -v sqlite3)" > work/files/drydock
      tar -czf releases/missing-library/1.2.0/\(archive) -C work files
      (cd releases/missing-library/1.2.0 && sha256sum \(archive) > SHA256SUMS)
      release no-archive "$program"
      rm releases/no-archive/1.2.0/\(archive)
      mkdir -p other-system
      printf '#!/bin/sh\\ncase $1 in -s) echo Darwin ;; *) echo arm64 ;; esac\\n' > other-system/uname
      chmod +x other-system/uname
      """
    let made = try Command.run(Tools.system("bash"), ["-euc", setup], directory: directory.path)
    guard made.succeeded else { throw SystemFailure("\(made)") }
    let script = """
      import http.server
      class Handler(http.server.SimpleHTTPRequestHandler):
          def copyfile(self, source, output):
              data = source.read()
              output.write(data[:len(data) // 2] if self.path.startswith("/cut/") and self.path.endswith("gz") else data)
          def log_message(self, *arguments):
              pass
      server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
      print("port", server.server_port, flush=True)
      server.serve_forever()
      """
    server = try Command.spawn(
      Tools.system("python3"), ["-c", script], input: [], directory: directory("releases"))
    url = try "http://127.0.0.1:" + server.waitForLine("port ").dropFirst("port ".count)
  }

  private func install(
    _ release: String, version: String = "1.2.0", sum: String? = nil, path: String? = nil
  ) throws -> CommandResult {
    let search =
      (path.map { $0 + ":" } ?? "") + (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")
    return try Command.run(
      Self.action + "/install",
      [version, "\(url)/\(release)", directory("target")] + (sum.map { [$0] } ?? []),
      environment: ["PATH": search, "GITHUB_PATH": directory("path"), "TMPDIR": directory.path])
  }

  private func text(_ path: String) throws -> String {
    try String(contentsOfFile: path, encoding: .utf8)
  }

  private func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: directory(name)) }

  @Test func `A release with the right checksum is installed, and added to the PATH`() throws {
    defer { server.kill() }
    let sum = try String(text(directory("releases/good/1.2.0/SHA256SUMS")).prefix(64))
    for given in [nil, sum] {
      let result = try install("good", sum: given).expect()
      #expect(result.output == "drydock 1.2.0 is installed in \(directory("target"))\n")
      #expect(try Command.run(directory("target/drydock")).output == "1.2.0\n")
      try FileManager.default.removeItem(atPath: directory("target"))
    }
    // The given sum decides, not the release's.
    #expect(try install("changed", sum: sum).succeeded)
    #expect(try text(directory("path")) == String(repeating: directory("target") + "\n", count: 3))
  }

  @Test func `What is not the released file is refused, and nothing is installed`() throws {
    defer { server.kill() }
    let wrong = String(repeating: "0", count: 64)
    let refusals: [(CommandResult, String)] = try [
      (install("changed"), "\(archive) is not the released file: its SHA-256 differs\n  expected  00000000"),
      (install("good", sum: wrong), "its SHA-256 differs\n  expected  \(wrong)\n  found     "),
      (install("cut"), "cannot download \(url)/cut/1.2.0/\(archive)"),
      (install("no-archive"), "cannot download \(url)/no-archive/1.2.0/\(archive)"),
      (install("good", version: "1.3.0"), "no release 1.3.0: cannot download \(url)/good/1.3.0/SHA256SUMS"),
      (install("other-machine"), "release 1.2.0 has no \(archive): SHA256SUMS does not list it"),
      (install("good", version: ""), "not a version, such as 0.1.0: ''"),
      (install("good", version: "1.2.0/../.."), "not a version, such as 0.1.0: '1.2.0/../..'"),
      (install("good", sum: "abc"), "not a SHA-256, 64 hexadecimal digits in lower case: 'abc'"),
      (
        install("good", path: directory("other-system")),
        "there is no released program for macOS\n  build it from its sources"
      ),
    ]
    for (result, message) in refusals {
      #expect(result.exitCode == 1 && result.errors.contains("drydock: error: "), "\(result)")
      #expect(result.errors.contains(message), "\(message)\n\(result)")
    }
    #expect(!exists("target") && !exists("path"))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == [
        "other-system", "releases", "work",
      ])
  }

  @Test func `A program that does not run, or is another version, is not added to the PATH`() throws {
    defer { server.kill() }
    try install("other-version").expect(exit: 1, errors: "the program is version 9.9.9, not 1.2.0")
    try install("missing-library").expect(
      exit: 1, errors: "missing: libsqliteX.so.0",
      "\n  on Debian and Ubuntu: apt-get install -y libarchive13 ")
    #expect(!exists("path"))
  }

  /// The lines of a block in a YAML file, from below a line to one that is indented less, or equal to the end.
  private func block(after start: String, end: String? = nil, in path: String) throws -> String {
    let lines = try text(path).split(separator: "\n", omittingEmptySubsequences: false)
    let first = try #require(lines.firstIndex { $0.contains(start) }) + 1
    let indentation = lines[first].prefix { $0 == " " }
    let inside = lines[first...].prefix { line in
      line.trimmingCharacters(in: .whitespaces) != end && (line.isEmpty || line.hasPrefix(indentation))
    }
    return inside.map { $0.dropFirst(indentation.count) + "\n" }.joined()
  }

  @Test func `The action runs the script, with the releases of its own repository by default`() throws {
    defer { server.kill() }
    let step = try block(after: "run: |", in: Self.action + "/action.yml")
    var environment: [String: String?] = [
      "GITHUB_ACTION_PATH": Self.action, "RUNNER_TEMP": directory("temp"), "VERSION": "1.2.0",
      "URL": url + "/good", "CHECKSUM": "", "GITHUB_SERVER_URL": url, "REPOSITORY": "owner/drydock",
      "GITHUB_PATH": nil,
    ]
    let result = try Command.run(
      Tools.system("bash"), ["-euo", "pipefail", "-c", step], environment: environment
    ).expect()
    #expect(exists("temp/drydock/drydock"), "\(result)")
    environment["URL"] = ""
    let absent = try Command.run(
      Tools.system("bash"), ["-euo", "pipefail", "-c", step], environment: environment)
    #expect(
      absent.errors.contains("cannot download \(url)/owner/drydock/releases/download/1.2.0/SHA256SUMS"),
      "\(absent)")
  }

  @Test func `The file for GitLab contains the script, and runs it`() throws {
    defer { server.kill() }
    let file = Sandbox.repository + "/Scripts/packaging/gitlab.yml"
    #expect(
      try block(after: "<<'INSTALL'", end: "INSTALL", in: file) == text(Self.action + "/install"),
      "copy .github/actions/install/install into Scripts/packaging/gitlab.yml")
    let step = try block(after: "    - |", in: file).replacing("$[[ inputs.version ]]", with: "1.2.0")
      .replacing("$[[ inputs.url ]]", with: url + "/good").replacing("$[[ inputs.checksum ]]", with: "")
    let result = try Command.run(
      "/bin/sh", ["-ec", step], environment: ["CI_BUILDS_DIR": directory("builds"), "GITHUB_PATH": nil]
    ).expect()
    #expect(exists("builds/drydock/drydock"), "\(result)")
  }
}
