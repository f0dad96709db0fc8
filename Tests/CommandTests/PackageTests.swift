import Foundation
import TestSupport
import Testing

/// What `Scripts/package` makes of the program under test. A program for a release is built in the same way, but takes
/// minutes; that it needs none of Swift's libraries is the only difference.
@Suite struct PackageTests {
  private let directory: TemporaryDirectory
  private let version: String

  init() throws {
    directory = try TemporaryDirectory()
    version = try Self.succeed(Tools.drydock(), ["--version"]).trimmingCharacters(in: .newlines)
  }

  private static func succeed(
    _ program: String, _ arguments: [String], environment: [String: String?] = [:],
    in directory: String? = nil
  ) throws -> String {
    // The first time, the generator of man pages is built.
    let result = try Command.run(
      program, arguments, environment: environment, directory: directory, limit: 1200)
    guard result.succeeded else { throw SystemFailure("\(program) \(arguments): \(result)") }
    return result.output
  }

  /// Runs a shell script in the test's directory, which must succeed; gives its output. It ends at the first failure.
  private func shell(_ script: String, environment: [String: String?] = [:]) throws -> String {
    try Self.succeed(
      Tools.system("bash"), ["--norc", "-euo", "pipefail", "-c", script], environment: environment,
      in: directory.path)
  }

  private func makePackages(into name: String) throws {
    _ = try Self.succeed(
      Sandbox.repository + "/Scripts/package", ["--program", Tools.drydock(), directory(name)],
      environment: ["SOURCE_DATE_EPOCH": "1700000000"])
  }

  @Test func `The packages are complete and reproducible; they are installed, run and removed`() throws {
    try makePackages(into: "packages")
    #expect(try shell("cd packages; sha256sum -c SHA256SUMS").split(separator: "\n").count == 2)
    if TestExtent.isFull {
      try makePackages(into: "again")
      #expect(try shell("cat packages/SHA256SUMS") == shell("cat again/SHA256SUMS"), "the bytes differ")
    }

    try checkTarball()
    if TestExtent.isFull {
      let lint = try shell("lintian --fail-on error,warning packages/*.deb 2>&1 || true")
      #expect(lint.split(separator: "\n").filter { !$0.hasPrefix("running with root") } == [])
    }
    try install()
    try checkManual()
    // What they complete is the argument parser's.
    _ = try shell("bash -n root/usr/share/bash-completion/completions/drydock")
    _ = try shell("zsh -n root/usr/share/zsh/vendor-completions/_drydock")
    _ = try shell("fish --no-execute root/usr/share/fish/vendor_completions.d/drydock.fish")
    try remove()
  }

  private func checkTarball() throws {
    let machine = try shell("uname -m").trimmingCharacters(in: .newlines)
    let name = "drydock-\(version)-linux-\(machine)"
    let listed = try shell("tar -tzf packages/\(name).tar.gz").split(separator: "\n")
      .filter { !$0.hasSuffix("/") }.map { String($0.dropFirst(name.count + 1)) }
    let pages = listed.filter { $0.hasSuffix(".1") }
    #expect(
      listed.filter { !pages.contains($0) }.sorted()
        == [
          "CHANGELOG.md", "LICENSE", "NOTICES", "completions/_drydock", "completions/drydock.bash",
          "completions/drydock.fish", "drydock",
        ])
    for page in ["drydock", "drydock-migrate", "drydock-vault-set"] {
      #expect(pages.contains("man/man1/\(page).1"), "\(pages)")
    }
    #expect(
      try shell("tar -tvzf packages/*.gz").split(separator: "\n").allSatisfy { $0.contains(" 2023-11-1") })
    let notices = try shell("tar -xzOf packages/*.gz \(name)/NOTICES")
    for words in ["swift-argument-parser: Apache", "GRDB.swift:\n", "Gwendal", "Yams:\n", "JP Simard"] {
      #expect(notices.contains(words), "\(notices)")
    }

    // The action of GitHub installs it.
    let installed = try shell(
      """
      mkdir -p releases/\(version); cp packages/* releases/\(version)/
      \(Sandbox.repository)/.github/actions/install/install \(version) "file://$PWD/releases" "$PWD/installed"
      env -i installed/drydock --version
      """)
    #expect(installed.hasSuffix("\n\(version)\n"), "\(installed)")
  }

  /// Into a directory: dpkg installs as into the system, and finds the packages that are needed in the system's records;
  /// the system remains unchanged.
  private func install() throws {
    _ = try shell(
      """
      records=root/var/lib/dpkg
      mkdir -p $records/info $records/updates $records/triggers
      needed=$(dpkg-deb --field packages/*.deb Depends | tr ',' '\\n' | sed 's/^ *//; s/ .*//')
      dpkg-query --status $needed > $records/status
      \(dpkg) --path-include='/usr/share/*' --install packages/*.deb
      find root -path root/var -prune -o -type f -print > installed-files
      """)
    let files = try shell("sort installed-files").split(separator: "\n")
    for file in [
      "bin/drydock", "share/bash-completion/completions/drydock", "share/zsh/vendor-completions/_drydock",
      "share/fish/vendor_completions.d/drydock.fish", "share/man/man1/drydock-migrate.1.gz",
      "share/doc/drydock/copyright", "share/doc/drydock/changelog.gz",
    ] {
      #expect(files.contains("root/usr/\(file)"), "\(files)")
    }
    #expect(try shell("cd /; env -i \"$OLDPWD/root/usr/bin/drydock\" --version") == version + "\n")
    let control = try shell("dpkg-deb --field packages/*.deb Depends Version")
    #expect(control.contains("Version: \(version)\n") && control.contains(/libsqlite3-0 \(>= 3[0-9.]+\)/))
  }

  private var dpkg: String {
    (getuid() == 0 ? "" : "unshare -r ") + "env PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg --root=$PWD/root"
  }

  private func checkManual() throws {
    let manual = ["MANPATH": directory("root/usr/share/man"), "LC_ALL": "C.UTF-8"]
    #expect(
      try shell("man -w drydock-migrate", environment: manual)
        == directory("root/usr/share/man/man1/drydock-migrate.1.gz\n"))
    // Its own findings on style are that lines are long, and that pages are not installed in the system.
    #expect(
      try shell("for page in root/usr/share/man/man1/*; do mandoc -T lint -W warning $page; done") == "")
    let page = try shell("mandoc -T ascii root/usr/share/man/man1/drydock-snapshot.1.gz | sed 's/.\\x08//g'")
    for words in [
      "drydock-snapshot - Back up a container", "drydock snapshot [container] [--all directory|file]",
      "\n       drydock snapshot Notes -r Backups --recipient age1... --tag release\n",
      "(values: auto, json, none)", "November 14, 2023",
    ] {
      #expect(page.contains(words), "\(page)")
    }
  }

  private func remove() throws {
    _ = try shell("\(dpkg) --purge drydock")
    #expect(
      try shell("find root -mindepth 1 -path root/var -prune -o -print | grep -vx root/usr || true") == "")
    #expect(try shell("find root/var -name '*drydock*'") == "")
  }
}
