import Cryptography
import Formats

/// One numbered change of a container.
public struct Migration: Sendable {
  /// The schema version after it.
  public let number: Int
  /// Without the number.
  public let name: String
  /// The file (or `migration.yaml` of the directory) for messages.
  package let file: String
  private let files: MigrationFiles
  /// Its checksum, and others that count as the same.
  private let checksums: [SHA256.Digest]
  /// Those without its `.down.sql`.
  private let checksumsWithoutDown: [SHA256.Digest]
  private let body: MigrationBody

  /// The author's description.
  public var summary: String? { body.summary }
  /// Whether its author says that it cannot be reverted by steps.
  public var isIrreversible: Bool { body.isIrreversible }
  /// Whether it says itself how it is reverted.
  public var hasDownSteps: Bool { !down.isEmpty }
  package var losses: [String: String] { body.losses }
  package var downLosses: [String: String] { body.downLosses }
  /// Notes about scalars that mean something else in YAML 1.1.
  package var notes: [YAMLNote] { body.notes }
  var steps: [MigrationStep] { body.steps }
  var down: [MigrationStep] { body.down }
  var checks: [Assertion] { body.checks }
  var verifications: [Assertion] { body.verifications }

  /// The first part that opens the vault, which needs the device key, such as `vault.rename`; nil when none does.
  package var vaultUse: String? {
    if let step = steps.first(where: \.operation.effects.needsVault) { return step.name }
    return (checks + verifications).contains(where: \.body.needsVault) ? "its check of the vault" : nil
  }

  /// `0002_rename_settings`.
  public var identifier: String { Self.padded(number) + "_" + name }

  static func padded(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

extension Migration {
  init(number: Int, name: String, file: String, _ files: MigrationFiles, _ body: MigrationBody) throws {
    self.init(
      number: number, name: name, file: file, files: files, checksums: try files.checksums(),
      checksumsWithoutDown: try files.withoutDown?.checksums() ?? [], body: body)
  }

  /// SHA-256 over the names and contents of its files.
  package var checksum: SHA256.Digest { checksums[0] }

  /// Whether this checksum is of the same statements: a `.down.sql` may have been added since.
  func accepts(_ other: SHA256.Digest) -> Bool { checksums.contains(other) || lacksDown(other) }

  /// Whether this checksum is of its files before its `.down.sql` was added.
  func lacksDown(_ other: SHA256.Digest) -> Bool { checksumsWithoutDown.contains(other) }

  /// Whether a record is of these files, maybe under another number or name.
  func hasContent(of record: MigrationRecord) -> Bool {
    if number == record.number, name == record.name { return accepts(record.checksum) }
    // The checksum of a closure does not cover its code.
    if name != record.name, steps.contains(where: \.isClosure) { return false }
    let files = files.renamed(from: name, to: record.number, record.name)
    return [files, files.withoutDown].compactMap(\.self).contains { files in
      (try? files.checksums())?.contains(record.checksum) == true
    }
  }

  /// Another tool's statements; nil in Drydock's own migrations.
  var toolSQL: RunToolSQL? { steps.first?.toolSQL }

  /// Messages about the steps without an inverse. `down` steps are for all of them except another tool's statements.
  package var irreversibleSteps: [String] {
    let concerned = steps.filter { !hasDownSteps || $0.toolSQL != nil }
    return concerned.filter { $0.operation.reversal == .none }.map { step in
      let reason =
        switch step.operation.kind {
        case .toolSQL(let sql): "\(sql.tool.rawValue) has no down statements for this migration"
        case .sql(let sql) where sql.language == .directives:
          "the file has no down statements: add a section `-- migrate:down` (or a file `.down.sql` beside a `.up.sql`), "
            + "or a line `-- drydock: irreversible`"
        default:
          "\(step.name) has no inverse: give the migration `down` steps, or say `irreversible: true`"
        }
      return "\(step.position): \(reason)"
    }
  }

  /// Whether its author wrote how it is reverted: by `down` steps, or by the `down` of a step.
  package var hasExplicitDown: Bool { hasDownSteps || steps.contains { $0.operation.reversal == .explicit } }

  /// Whether it can be reverted by steps: its `down` steps, or the inverse of each step.
  package var isReversible: Bool { !isIrreversible && irreversibleSteps.isEmpty }
}

/// One step, for reports on a run.
package struct StepOutline: Sendable, Hashable {
  /// The migration's number, and the step's place in it, from 0.
  package let migration: Int, index: Int
  package let position: YAMLPosition
  /// Such as `files.move`.
  package let operation: String
  /// Whether its author gives a reason for destroying data.
  package let announcedLoss: AnnouncedLoss
  /// The setting whose value it converts under another name: both names; else empty.
  package let converted: [String]
  package let writing: StepWriting
  /// Whether it is the file of another tool without a statement.
  package let isEmpty: Bool
}

extension Migration {
  /// The steps, without the `down` steps.
  package var outline: [StepOutline] {
    steps.enumerated().map { index, step in
      let effects = step.operation.effects
      return StepOutline(
        migration: number, index: index, position: step.position, operation: step.name,
        announcedLoss: effects.announcedLoss, converted: effects.converted, writing: effects.writing,
        isEmpty: step.toolSQL?.script.up.isBlank == true)
    }
  }
}

/// One step with its place in the file.
struct MigrationStep: Sendable {
  let position: YAMLPosition
  /// In messages: that of the operation, or of the stage of a Swift plan.
  let name: String
  let operation: any MigrationAction

  /// Another tool's statements; nil for other steps.
  var toolSQL: RunToolSQL? { if case .toolSQL(let sql) = operation.kind { sql } else { nil } }
  fileprivate var isClosure: Bool { if case .closure = operation.kind { true } else { false } }
}

/// The content of a migration, without its number and name.
struct MigrationBody: Sendable {
  var summary: String?
  var isIrreversible = false
  /// Why values may be lost, by the table or `table.column`, in lower case.
  var losses: [String: String] = [:]
  /// Why reverting it by steps may lose values, by `table.column`, table, setting, vault item or path.
  var downLosses: [String: String] = [:]
  var steps: [MigrationStep] = []
  var down: [MigrationStep] = []
  var checks: [Assertion] = []
  var verifications: [Assertion] = []
  var notes: [YAMLNote] = []
}

/// The name of a migration's file or directory: `0001_name` is number 1, named `name`.
struct MigrationName {
  let number: Int
  let name: String

  /// One to nine digits, an underscore, and letters, digits, `_` or `-`; nil for anything else.
  ///
  /// - Parameter digits: the most digits.
  init?(_ text: some StringProtocol, digits: Int = 9) {
    guard let bar = text.firstIndex(of: "_"), text[..<bar].utf8.count <= digits,
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
