import Foundation
import TestSupport
import Testing

/// The library as a program outside this package sees it: what is `package` is not visible to it.
@Suite struct LibraryTests {
  /// Compiles files as another package's: with the modules that were built beside the tests, and without the name of
  /// this package.
  private func compile(_ sources: [String], _ arguments: String...) throws -> CommandResult {
    let built = (try Tools.drydock() as NSString).deletingLastPathComponent
    let checkouts = "\(Sandbox.repository)/.build/checkouts"
    let maps = [
      "\(built)/CPlatform.build", "\(built)/CLibCurl.build", "\(Sandbox.repository)/Sources/CLibCrypto",
      "\(Sandbox.repository)/Sources/CLibZstd", "\(Sandbox.repository)/Sources/CLibZ",
      "\(Sandbox.repository)/Sources/CLibArchive", "\(checkouts)/swift-system/Sources/CSystem/include",
      "\(checkouts)/Yams/Sources/CYaml/include", "\(checkouts)/GRDB.swift/Sources/GRDBSQLite",
      "\(checkouts)/swift-subprocess/Sources/_SubprocessCShims/include",
    ].flatMap { ["-Xcc", "-fmodule-map-file=\($0)/module.modulemap", "-Xcc", "-I\($0)"] }
    return try Command.run(
      Tools.system("swiftc"),
      ["-swift-version", "6", "-Onone", "-I", "\(built)/Modules"] + maps + arguments + sources)
  }

  /// A list of the object files of the program `drydock`, without those of the command line.
  private func objects(with modules: [String] = []) throws -> String {
    let built = (try Tools.drydock() as NSString).deletingLastPathComponent
    let list = try String(contentsOfFile: "\(built)/drydock.product/Objects.LinkFileList", encoding: .utf8)
    let others = [
      "DrydockMain", "DrydockCommand", "Reports", "DrydockTesting", "ArgumentParser",
      "ArgumentParserToolInfo",
    ].filter { !modules.contains($0) }
    return list.split(separator: "\n").filter { line in !others.contains { line.contains("/\($0).build/") } }
      .joined(separator: "\n")
  }

  private func guide(_ name: String) throws -> String {
    try String(
      contentsOfFile: "\(Sandbox.repository)/Sources/Drydock/Drydock.docc/\(name).md", encoding: .utf8)
  }

  @Test func `The program of the guide compiles without this package's name, and runs`() throws {
    let guide = try self.guide("Library")
    let program = try #require(guide.firstMatch(of: #/(?s)\n```swift\n(import Drydock\n.*?)```\n/#))
    try Sandbox.with { sandbox in
      try sandbox.create()
      let before = try sandbox.tree()
      try sandbox.write("main.swift", String(program.output.1))
      try sandbox.write("objects", objects())
      let compiled = try compile(
        [sandbox("main.swift"), "@\(sandbox("objects"))"], "-o", sandbox("program"), "-lsqlite3", "-lcrypto",
        "-lzstd",
        "-larchive")
      try #require(compiled.succeeded, "\(compiled)")
      let output = try sandbox.run(sandbox("program"))
      let expected: [Regex<Substring>] = [
        /com.example.notes: 1 database, \d+ files/, /findings of the audit: \["secret-in-settings"\]/,
        /version 0 of 6, 6 pending/, /backed up \d+ paths/,
        /would change \d+ settings/, /version 0 → 6/, /back to version 0/, /restored \d+ paths/,
        /verified \d+ paths, com.example.notes/, /kept 1, removed 0/, /refused \(usage\): .*/,
        /migrate: ran 0001_default_settings.*, undone/, /rollback: undid .*, undoable/,
      ]
      let lines = output.split(separator: "\n").map(String.init)
      #expect(lines.count == expected.count, "\(output)")
      for (line, pattern) in zip(lines, expected) {
        #expect(line.wholeMatch(of: pattern) != nil, "\(line)")
      }
      #expect(try sandbox.tree().differences(from: before, comparing: [.content, .mode]) == [])
      #expect(try sandbox.tree("Copy").entries.count > 5)
    }
  }

  @Test func `The other examples of the guides, and the tool over a plan, use public API alone`() throws {
    let guide = try self.guide("Library")
    let examples = guide.matches(of: #/(?s)\n```swift\n(var options.*?)```\n/#).map { String($0.output.1) }
    #expect(examples.count == 2)
    try TemporaryDirectory.with { directory in
      var sources = ["Plan", "Tool"].map { "\(Sandbox.repository)/Tests/NotesTool/Notes\($0).swift" }
      let readme = try String(contentsOfFile: "\(Sandbox.repository)/README.md", encoding: .utf8)
      let session = try #require(readme.firstMatch(of: #/(?s)\n```swift\nimport Drydock\n\n(.*?)```\n/#))
        .output.1
      #expect(session.split(separator: "\n").count <= 10, "the README's session in Swift is ten lines")
      let text =
        "import Drydock\n"
        + examples.enumerated().map { number, text in
          "func example\(number)(_ container: Container, _ repository: Repository) throws {\n\(text)}\n"
        }.joined() + "func session() throws {\n\(session)}\n"
      sources.append(directory("Examples.swift"))
      try Data(text.utf8).write(to: URL(fileURLWithPath: sources[2]))
      try compile(sources, "-typecheck", "-parse-as-library").expect()
    }
  }

  @Test func `The tests of the guide on fixtures compile without this package's name, and run`() throws {
    let guide = try self.guide("Fixtures")
    let program = try #require(guide.firstMatch(of: #/(?s)\n```swift\n(import DrydockTesting\n.*?)```\n/#))
    let main = """
      @main struct Main { static func main() async { await Testing.__swiftPMEntryPoint() as Never } }

      """
    try TemporaryDirectory.with { directory in
      try Data((String(program.output.1) + main).utf8).write(
        to: URL(fileURLWithPath: directory("main.swift")))
      try Data(objects(with: ["DrydockTesting"]).utf8).write(to: URL(fileURLWithPath: directory("objects")))
      let toolchain = (try Tools.system("swiftc") as NSString).resolvingSymlinksInPath as NSString
      let plugins =
        "\((toolchain.deletingLastPathComponent as NSString).deletingLastPathComponent)/lib/swift/host/plugins"
      let compiled = try compile(
        [directory("main.swift"), "@\(directory("objects"))"], "-parse-as-library", "-plugin-path", plugins,
        "-plugin-path", "\(plugins)/testing", "-o", directory("program"), "-lsqlite3", "-lcrypto", "-lzstd",
        "-larchive", "-lTesting")
      try #require(compiled.succeeded, "\(compiled)")
      let run = try Command.run(
        Tools.system("sh"), ["-c", "cd '\(Sandbox.repository)' && exec '\(directory("program"))'"]
      ).expect()
      #expect("\(run)".contains("2 tests"), "\(run)")
    }
  }

  /// Of the package's own dependencies the repositories of this build are used, without a network. All of it takes minutes
  /// to compile; that a package is refused shows before its first module is compiled.
  @Test("A package that depends on a version builds; with FULL_TESTS=1 all of it")
  func dependency() throws {
    try TemporaryDirectory.with { directory in
      // The fuzzer is a package of its own, with a build of its own. A package's name is the last part of its address.
      let script = #"""
        mkdir -p drydock/Tests mirrors Maintain/Sources/Maintain Maintain/.swiftpm/configuration
        cp -a "$0/Package.swift" "$0/Sources" drydock/
        for folder in "$0"/Tests/*; do [ "${folder##*/}" = Fuzzing ] || cp -a "$folder" drydock/Tests/; done
        git=(git -C drydock -c user.name=Drydock -c user.email=drydock@example.com)
        "${git[@]}" init --quiet; "${git[@]}" add --all --force
        "${git[@]}" commit --quiet --message "A version"; "${git[@]}" tag 1.0.0
        list=
        for repository in "$0"/.build/repositories/*; do
          url=$(git -C "$repository" config remote.origin.url); mirror=$PWD/mirrors/${url##*/}
          ln -s "$repository" "$mirror"; list+="${list:+,}{\"original\": \"$url\", \"mirror\": \"file://$mirror\"}"
        done
        echo "{\"object\": [$list], \"version\": 1}" > Maintain/.swiftpm/configuration/mirrors.json
        echo 'import Drydock' > Maintain/Sources/Maintain/Maintain.swift
        cat > Maintain/Package.swift <<END
        // swift-tools-version: 6.2
        import PackageDescription
        let package = Package(
          name: "Maintain", platforms: [.macOS(.v15)],
          dependencies: [.package(url: "file://$PWD/drydock", from: "1.0.0")],
          targets: [.target(name: "Maintain", dependencies: [.product(name: "Drydock", package: "drydock")])])
        END
        """#
      try Command.succeed(
        Tools.system("bash"), ["-euo", "pipefail", "-c", script, Sandbox.repository],
        directory: directory.path)
      try Command.run(
        Tools.system("swift"),
        [
          "build", "--package-path", directory("Maintain"), "--cache-path", directory("cache"),
          "--disable-index-store", "--target", TestExtent.isFull ? "Maintain" : "DrydockErrors",
        ], limit: 1200
      ).expect()
    }
  }
}
