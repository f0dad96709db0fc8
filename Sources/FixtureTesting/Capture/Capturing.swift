import AppContainer
import BackupRepository
import ContainerTransaction
import DrydockErrors
import FileSystem
import Drydock
import MigrationEngine

/// Makes fixtures from containers and archives.
package enum Capturing {
  /// Captures what was named.
  ///
  /// - Parameters:
  ///   - operand: a container or an archive.
  ///   - name: the fixture's name.
  ///   - fixtures: the directory of fixtures.
  ///   - tool: the other tool whose files the migrations are.
  ///   - transaction: its device keys open the vault.
  /// - Throws: as ``FixtureCapture/run(_:)``; for an archive what restoring it throws.
  package static func run(
    _ operand: Comparing.Operand, as name: String, in fixtures: String, configuration: Configuration,
    tool: MigrationTool? = nil, options: CaptureOptions = CaptureOptions(),
    transaction: TransactionOptions = TransactionOptions()
  ) throws -> CaptureReport {
    switch operand {
    case .golden(let golden):
      throw DrydockError(
        .notCaptured, "a golden is no container: its databases and files are not all in it",
        path: golden.directory)
    case .container(let container):
      return try FixtureCapture(of: container, as: name, in: fixtures, tool: tool, options: options).run(
        transaction)
    case .archive(let archive):
      return try ScratchDirectory.withTemporary { scratch in
        let container = try restored(archive, in: scratch, configuration, transaction)
        return try FixtureCapture(
          of: container, as: name, in: fixtures, tool: tool, configuration: configuration, options: options
        ).run(transaction)
      }
    }
  }

  /// A private copy of what an archive holds.
  private static func restored(
    _ archive: Archive, in scratch: Directory, _ configuration: Configuration,
    _ transaction: TransactionOptions
  ) throws -> Container {
    var configuration = configuration
    configuration.app = configuration.app ?? archive.header.app
    configuration.groups = [:]
    for (number, id) in (archive.header.groups ?? []).enumerated() {
      let name = try ContainerPath("group-\(number)")
      try scratch.createDirectory(name)
      configuration.groups[id] = scratch.full(name)
    }
    let whole = Container(
      planned: scratch.path + "/whole", layout: configuration.layout ?? archive.header.layout,
      app: archive.header.app, instance: archive.header.instance, configuration: configuration)
    var options = RestoreOptions()
    options.transaction = transaction
    _ = try Restore.run(archive, .absent(whole), options.forCopy())
    configuration.layout = whole.layout
    return try Container(at: whole.root, configuration: configuration, instance: archive.header.instance)
  }
}
