import ArgumentParser
import Drydock

struct ReleaseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Note the migrations as released: from then on they must not change.",
    discussion: """
      Appends the release's name, its schema version and the checksums of the
      migrations that are new in it to releases.yaml beside them. `drydock validate`
      then fails when one of them is edited or removed, or another inserted.

      Example: drydock release 2.5.0 -m Migrations
      """)

  @Argument(help: "The release, such as 2.5.0.") var name: String
  @OptionGroup var migrations: CatalogOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var release: String
    var version: Int
    var migrations: [Int]
  }

  func run() throws {
    try refuseSecret(as: name)
    let configuration = try common.configuration()
    _ = try migrations.requiredDirectory(configuration)
    let found = try migrations.validation(configuration)
    if let first = found.problems.first {
      found.tell(found.problems.dropFirst())
      throw first
    }
    var releases = try Releases.read(found.catalog.directory)
    let release = try releases.add(name, found.catalog)
    let numbers = release.migrations.map(\.number)
    if common.json {
      return Output.json(Result(release: release.name, version: release.version, migrations: numbers))
    }
    Output.line(
      "release \(release.name) has version \(release.version), with \(Output.count(numbers.count, "new migration"))"
    )
  }
}
