import ArgumentParser
import Drydock

struct NewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Write the template of a new migration, with the next free number.",
    discussion: """
      The file to edit is printed. --sql is for a database of drydock.yaml; which
      one, has to be said where there are several.

      Examples:
        drydock new task_colours
        drydock new task_colours --sql --database notes
        drydock new import_photos --directory
      """)

  @Argument(help: "What it does in a word: letters, digits, `_` and `-`.") var name: String
  @OptionGroup var migrations: CatalogOptions
  @Flag(help: "A SQL file.") var sql = false
  @Flag(help: "A directory, for a migration with files of its own.") var directory = false
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var path: String
  }

  func validate() throws {
    if sql && directory { throw ValidationError("either --sql or --directory") }
    if migrations.database != nil && !sql { throw ValidationError("--database goes with --sql") }
  }

  func run() throws {
    try refuseSecret(as: name)
    let configuration = try common.configuration()
    let folder = try migrations.requiredDirectory(configuration)
    if let tool = try migrations.tool(configuration) {
      throw UsageError(message: "the files are of \(tool.format.rawValue): make new ones as that tool does")
    }
    let path = try NewMigration.create(name, form(configuration), in: folder)
    if common.json { return Output.json(Result(path: path)) }
    Output.line(path)
  }

  private func form(_ configuration: ContainerConfiguration) throws -> NewMigration.Form {
    if directory { return .directory }
    guard sql else { return .steps }
    let known = configuration.databases.keys.sorted()
    if let database = migrations.database {
      guard known.isEmpty || known.contains(database) else {
        throw UsageError(
          message:
            "drydock.yaml has no database \(database); \(NearestWord.hint(for: database, among: known))")
      }
      return .sql(database: database)
    }
    guard known.count == 1 else {
      throw UsageError(
        message: "say with --database which database it is for"
          + (known.isEmpty ? "" : ": " + known.joined(separator: ", ")))
    }
    return .sql(database: known[0])
  }
}
