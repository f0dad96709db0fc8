import AppContainer
import DrydockErrors
import Formats

/// All migrations of an app, in order.
package struct MigrationCatalog: Sendable {
  /// The directory that they were read from, as it was named.
  package let directory: String
  /// The migrations, numbers ascending. Drydock's own start at 1 and have no gaps; other tools' numbers may be times.
  package let migrations: [Migration]
  /// The other tool whose files they are; nil for Drydock's own.
  package internal(set) var tool: MigrationTool? = nil

  /// The number of the last one; 0 when there are none.
  package var latest: Int { migrations.last?.number ?? 0 }

  /// All numbers, ascending.
  package var numbers: [Int] { migrations.map(\.number) }

  /// The migration of a number.
  package func migration(_ number: Int) -> Migration? {
    var (low, high) = (0, migrations.count)
    while low < high {
      let middle = (low + high) / 2
      if migrations[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < migrations.count && migrations[low].number == number ? migrations[low] : nil
  }

  /// Whether a container can have this version: 0, or the number of a migration.
  package func hasVersion(_ version: Int) -> Bool { version == 0 || migration(version) != nil }

  /// What in the migrations only looks like something else to readers of YAML 1.1.
  package var notes: [YAMLNote] { migrations.flatMap(\.notes) }

  /// What is odd about the directory, without being wrong.
  package var warnings: [String] {
    migrations.isEmpty && !directory.isEmpty ? ["\(directory): no migration is in this directory"] : []
  }

  /// Reads a directory of migrations: `0001_name.yaml`, `0001_name.sql`, pairs of `0001_name.up.sql` and
  /// `0001_name.down.sql`, or directories `0001_name` with a `migration.yaml`. `releases.yaml`, `README.md` and names
  /// that start with a dot are left alone.
  ///
  /// - Parameter tool: another tool, whose files the directory has.
  /// - Throws: ``DrydockError`` with code `catalog`, naming file, line and column where there is one.
  package static func load(_ directory: String, tool: MigrationTool? = nil) throws -> MigrationCatalog {
    let (catalog, problems) = try read(directory, tool: tool)
    if let problem = problems.first { throw problem }
    return catalog
  }

  /// Reads a directory of migrations as far as it can be read, with everything that is wrong in it.
  ///
  /// - Throws: ``DrydockError`` with code `catalog` when the directory itself cannot be read.
  static func read(
    _ directory: String, tool: MigrationTool? = nil
  ) throws -> (MigrationCatalog, problems: [DrydockError]) {
    do {
      if let tool {
        let folder = try ToolFolder(directory, tool)
        return (
          MigrationCatalog(directory: directory, migrations: folder.migrations, tool: tool), folder.problems
        )
      }
      let folder = try MigrationFolder(directory)
      return (MigrationCatalog(directory: directory, migrations: folder.migrations), folder.problems)
    } catch let error as DrydockError {
      throw DrydockError(reading: error)
    }
  }
}
