import ArgumentParser
import Drydock

struct ValidateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "validate", abstract: "Check the migration files; needs no container.",
    discussion: """
      Everything that is wrong is told at once: files that cannot be read, unknown
      operations, numbers, SQL that SQLite cannot parse, steps without a way back,
      statements that destroy data without saying why, and what was edited, removed
      or inserted since it was released.

      Example: drydock validate -m Migrations
      """)

  @OptionGroup var migrations: CatalogOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    struct Entry: Encodable {
      var number: Int
      var name: String
      var summary: String?
      var checksum: String
    }
    var migrations: [Entry]
    var notes: [String]
    var warnings: [String]
    var problems: [Problem]
  }

  /// One thing that is wrong.
  struct Problem: Encodable {
    var code: String, message: String, path: String?

    init(_ error: DrydockError) {
      (code, message, path) = (error.code.rawValue, error.message, error.path)
    }
  }

  func run() throws {
    let found = try migrations.validation(common.configuration())
    let catalog = found.catalog
    if common.json {
      Output.json(
        Result(
          migrations: catalog.migrations.map {
            .init(number: $0.number, name: $0.name, summary: $0.summary, checksum: $0.checksum.hex)
          }, notes: catalog.notes.map(\.description),
          warnings: found.problems.isEmpty ? catalog.warnings : [], problems: found.problems.map(Problem.init)
        ))
    } else if found.problems.isEmpty {
      Output.line("\(Output.count(catalog.migrations.count, "migration")), in order")
      Output.table(catalog.migrations.map { [$0.identifier, $0.summary ?? ""] })
    }
    try found.throwUnlessClean()
  }
}

extension CatalogOptions {
  /// The migrations with everything that is wrong in them; remarks are told.
  func validation(_ configuration: ContainerConfiguration) throws -> MigrationValidation {
    let found =
      if let plan = try plan() { MigrationValidation.run(plan, configuration) } else {
        try MigrationValidation.run(
          requiredDirectory(configuration), tool: tool(configuration), configuration)
      }
    if found.problems.isEmpty {
      for warning in found.catalog.warnings { Output.note("drydock: warning: \(warning)") }
    }
    for note in found.catalog.notes { Output.note("drydock: note: \(note)") }
    return found
  }
}

extension MigrationValidation {
  /// Says each problem, and ends the program when there is one.
  func throwUnlessClean() throws {
    tell(problems[...])
    if !problems.isEmpty { throw ExitStatus.validation.code }
  }

  func tell(_ problems: ArraySlice<DrydockError>) {
    for failure in problems.compactMap(Failure.init) { Output.note("drydock: error: \(failure.text)") }
  }
}
