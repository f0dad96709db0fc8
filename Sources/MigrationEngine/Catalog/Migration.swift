import AgeEncryption
import Formats

/// One numbered change of a container, as its files describe it.
package struct Migration: Sendable {
  /// Its number; the schema version after it.
  package let number: Int
  /// Its name, without the number.
  package let name: String
  /// The file (or `migration.yaml` of the directory) for messages.
  package let file: String
  /// SHA-256 over the names and contents of all its files.
  package let checksum: SHA256.Digest
  /// What it does, in the author's words.
  package let summary: String?
  /// Whether its author says that it cannot be undone by steps.
  package let isIrreversible: Bool
  /// Whether it brings steps of its own for the way down.
  package var hasDownSteps: Bool { !down.isEmpty }
  /// Remarks about scalars that mean something else in YAML 1.1.
  package let notes: [YAMLNote]

  /// What in it opens the vault, and so needs the device key, such as `vault.rename`; nil when nothing does.
  package var vaultUse: String? {
    if let step = steps.first(where: \.operation.needsVault) { return step.operation.name }
    return (checks + verifications).contains(where: \.needsVault) ? "its check of the vault" : nil
  }

  /// The checksum that it had before it got its `.down.sql`; nil when it has none.
  var checksumWithoutDown: SHA256.Digest? = nil

  /// Whether what had this checksum ran the same statements: a file for the way down may have been added since.
  func accepts(_ other: SHA256.Digest) -> Bool { other == checksum || other == checksumWithoutDown }

  let steps: [MigrationStep]
  let down: [MigrationStep]
  let checks: [Assertion]
  let verifications: [Assertion]

  /// `0002_rename_settings`.
  package var identifier: String { Self.padded(number) + "_" + name }

  static func padded(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

/// A step that cannot be taken back by itself, in a migration that brings no `down` steps.
package struct StepWithoutWayBack: Sendable, Equatable, CustomStringConvertible {
  /// Where it is.
  package let position: YAMLPosition
  /// Its operation, such as `files.delete`.
  package let operation: String
  /// Whether it is a `.sql` file, which has directives in place of keys.
  let isSQLFile: Bool

  /// `file:line:column: operation cannot be taken back …`
  package var description: String {
    isSQLFile
      ? "\(position): these statements have no way back: add a section `-- migrate:down` (or a file `.down.sql` beside a "
        + "`.up.sql`), or a line `-- drydock: irreversible`"
      : "\(position): \(operation) cannot be taken back by itself: give the migration `down` steps, or say "
        + "`irreversible: true`"
  }
}

extension Migration {
  /// The steps that keep the migration from being taken back by steps; none when it has `down` steps.
  package var stepsWithoutWayBack: [StepWithoutWayBack] {
    guard !hasDownSteps else { return [] }
    return steps.filter { $0.operation.wayBack == .none }.map {
      StepWithoutWayBack(
        position: $0.position, operation: $0.operation.name,
        isSQLFile: ($0.operation as? RunSQL)?.language == .directives)
    }
  }

  /// Whether somebody wrote how it is reverted: `down` steps, or statements or a script of a step's own.
  package var hasWrittenDown: Bool { hasDownSteps || steps.contains { $0.operation.hasWrittenDown } }

  /// Whether it can be taken back by steps: by its own `down` steps, or because each step has a way back.
  package var hasWayBack: Bool { !isIrreversible && stepsWithoutWayBack.isEmpty }
}

/// One step, as those see it who watch a run.
package struct StepOutline: Sendable, Hashable {
  /// The migration's number, and the step's place in it, from 0.
  package let migration: Int, index: Int
  /// Where it is.
  package let position: YAMLPosition
  /// Its operation, such as `files.move`.
  package let operation: String
  /// Whether its author says that it destroys data, and why.
  package let isDestructive: Bool
  /// What it says of the data that it destroys.
  package let announcedLoss: AnnouncedLoss
  /// Whether it has nothing to do, such as the file of another tool without a statement.
  package let isEmpty: Bool
}

extension Migration {
  /// The steps of the way up, in order.
  package var outline: [StepOutline] {
    steps.enumerated().map { index, step in
      StepOutline(
        migration: number, index: index, position: step.position, operation: step.operation.name,
        isDestructive: step.operation.isDestructive, announcedLoss: step.operation.announcedLoss,
        isEmpty: (step.operation as? RunToolSQL)?.up.isBlank == true)
    }
  }
}

/// One step with its place in the file.
struct MigrationStep: Sendable {
  let position: YAMLPosition
  let operation: any MigrationAction

  init(position: YAMLPosition, operation: any MigrationAction) {
    (self.position, self.operation) = (position, operation)
  }

  /// The step of an operation's word and its arguments.
  ///
  /// - Throws: `DrydockError` for an unknown word, and for arguments that make no sense.
  init(_ name: String, at position: YAMLPosition, arguments: YAMLNode, files: MigrationFiles) throws {
    guard let type = Operations.named[name] else {
      throw position.error(
        "unknown operation `\(name)`; " + NearestWord.hint(for: name, among: Array(Operations.named.keys)))
    }
    let reader = try YAMLReader(arguments, what: name, keys: type.keys)
    self.init(position: position, operation: try type.init(reading: reader, files: files))
  }
}

/// What the body of a migration says, before it gets its number.
struct MigrationBody: Sendable {
  var summary: String?
  var isIrreversible = false
  var steps: [MigrationStep] = []
  var down: [MigrationStep] = []
  var checks: [Assertion] = []
  var verifications: [Assertion] = []
  var notes: [YAMLNote] = []
}
