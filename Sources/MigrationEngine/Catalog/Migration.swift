import AgeEncryption
import Formats

/// One numbered change of a container, as its files describe it.
public struct Migration: Sendable {
  /// Its number; the schema version after it.
  public let number: Int
  /// Its name, without the number.
  public let name: String
  /// The file (or `migration.yaml` of the directory) for messages.
  package let file: String
  /// SHA-256 over the names and contents of all its files.
  package let checksum: SHA256.Digest
  /// What it does, in the author's words.
  public let summary: String?
  /// Whether its author says that it cannot be undone by steps.
  public let isIrreversible: Bool
  /// Whether it brings steps of its own for the way down.
  public var hasDownSteps: Bool { !down.isEmpty }
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
  public var identifier: String { Self.padded(number) + "_" + name }

  static func padded(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

/// A step that cannot be taken back by itself, in a migration that brings no `down` steps.
package struct IrreversibleStep: Sendable, Equatable, CustomStringConvertible {
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
  package var irreversibleSteps: [IrreversibleStep] {
    guard !hasDownSteps else { return [] }
    return steps.filter { $0.operation.reversal == .none }.map {
      IrreversibleStep(
        position: $0.position, operation: $0.operation.name,
        isSQLFile: ($0.operation as? RunSQL)?.language == .directives)
    }
  }

  /// Whether somebody wrote how it is reverted: `down` steps, or statements or a script of a step's own.
  package var hasExplicitDown: Bool { hasDownSteps || steps.contains { $0.operation.hasExplicitDown } }

  /// Whether it can be taken back by steps: by its own `down` steps, or because each step has a way back.
  package var isReversible: Bool { !isIrreversible && irreversibleSteps.isEmpty }
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

/// What the name of a file or directory says: `0001_name` is number 1, called `name`.
struct MigrationName {
  let number: Int
  let name: String

  /// One to nine digits, an underscore, and letters, digits, `_` or `-`; nil for anything else.
  init?(_ text: some StringProtocol) {
    guard let bar = text.firstIndex(of: "_"), text[..<bar].utf8.count <= 9,
      text[..<bar].allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text[..<bar]), number > 0
    else { return nil }
    let name = String(text[text.index(after: bar)...])
    guard Self.isName(name) else { return nil }
    (self.number, self.name) = (number, name)
  }

  /// Whether a text can be the part after the number.
  static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" }
  }
}
