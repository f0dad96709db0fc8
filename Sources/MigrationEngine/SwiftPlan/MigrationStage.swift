import Formats

/// One migration of a plan: what leads from the version before it to its own.
package struct MigrationStage: Sendable {
  /// A change in Swift. Whatever it throws ends the run, and nothing has changed then.
  package typealias Change = @Sendable (MigrationContext) throws -> Void

  /// The schema version after it.
  package let version: Int
  /// Its name: letters, digits, `_` and `-`.
  package let name: String
  /// What it does, in one line.
  package let description: String?

  let kind: Kind
  let checks: [Assertion]
  let verifications: [Assertion]
  let isIrreversible: Bool
  let position: YAMLPosition

  enum Kind: Sendable {
    case lightweight([Operation], down: [Operation])
    case custom(up: Change, down: Change?, revision: Int, needsVault: Bool)
  }

  /// A stage of operations, each of which mostly knows its own way back.
  ///
  /// - Parameters:
  ///   - version: the schema version after it: 1 for a plan's first stage, and so on without a gap.
  ///   - name: letters, digits, `_` and `-`.
  ///   - description: one line, which is shown when it runs.
  ///   - check: what has to be so before the first operation.
  ///   - verify: what has to be so after the last one.
  ///   - down: the way back, where the operations do not know it.
  ///   - isIrreversible: says that there is none.
  package static func lightweight(
    version: Int, _ name: String, description: String? = nil, _ operations: [Operation],
    check: [Assertion] = [], verify: [Assertion] = [], down: [Operation] = [], isIrreversible: Bool = false,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> MigrationStage {
    MigrationStage(
      version: version, name: name, description: description, kind: .lightweight(operations, down: down),
      checks: check, verifications: verify, isIrreversible: isIrreversible,
      position: YAMLPosition(file, line, column))
  }

  /// A stage in Swift.
  ///
  /// - Parameters:
  ///   - version: the schema version after it: 1 for a plan's first stage, and so on without a gap.
  ///   - name: letters, digits, `_` and `-`.
  ///   - description: one line, which is shown when it runs.
  ///   - revision: what its checksum covers in place of the code, which has none. Raise it with a change of the code that
  ///     containers which have the stage already must not miss: they are then told to be edited.
  ///   - needsVault: whether it opens the vault, so that a missing device key is known before anything begins.
  ///   - check: what has to be so before.
  ///   - verify: what has to be so after.
  ///   - isIrreversible: says that there is no way back.
  ///   - up: the change.
  ///   - down: the way back.
  package static func custom(
    version: Int, _ name: String, description: String? = nil, revision: Int = 1, needsVault: Bool = false,
    check: [Assertion] = [], verify: [Assertion] = [], isIrreversible: Bool = false,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column,
    up: @escaping Change, down: Change? = nil
  ) -> MigrationStage {
    MigrationStage(
      version: version, name: name, description: description,
      kind: .custom(up: up, down: down, revision: revision, needsVault: needsVault),
      checks: check, verifications: verify, isIrreversible: isIrreversible,
      position: YAMLPosition(file, line, column))
  }
}

extension MigrationStage {
  /// What the engine runs.
  ///
  /// - Throws: `DrydockError` with the place in the source file.
  func migration() throws -> Migration {
    guard MigrationName.isName(name) else {
      throw position.error("`\(name)` is no name of a stage: use letters, digits, `_` and `-`")
    }
    var files = MigrationFiles(directory: "", isDirectory: true)
    let (steps, down): ([MigrationStep], [MigrationStep])
    switch kind {
    case .lightweight(let operations, let back):
      (steps, down) = (
        try operations.map { try $0.entry.step(files) }, try back.map { try $0.entry.step(files) }
      )
    case .custom(let up, let back, _, let needsVault):
      let step = { (change: @escaping Change) in
        MigrationStep(
          position: position,
          operation: CustomStep(stage: name, position: position, needsVault: needsVault, change: change))
      }
      (steps, down) = ([step(up)], back.map { [step($0)] } ?? [])
    }
    let body = try MigrationBody(
      summary: description, isIrreversible: isIrreversible, steps: steps, down: down,
      checks: checks.map { try $0.entry.assertion() },
      verifications: verifications.map { try $0.entry.assertion() })
    if let problem = body.checks.lazy.compactMap(\.problemAsCheck).first { throw problem }
    files.contents = ["stage": Array(fingerprint.utf8)]
    return Migration(
      number: version, name: name, file: position.file, checksum: try files.checksum(), body)
  }

  /// What the checksum covers: everything but the places in the code, and the code of closures.
  private var fingerprint: String {
    let entries: [(String, [StageEntry])]
    var lines: [String] = []
    switch kind {
    case .lightweight(let operations, let down):
      entries = [("up", operations.map(\.entry)), ("down", down.map(\.entry))]
    case .custom(_, let down, let revision, _):
      lines.append("custom, revision \(revision)\(down == nil ? "" : ", with a way back")")
      entries = []
    }
    for (part, entries) in entries + [("check", checks.map(\.entry)), ("verify", verifications.map(\.entry))]
    {
      lines += entries.map { "\(part): \($0.fingerprint)" }
    }
    if isIrreversible { lines.append("irreversible") }
    return lines.joined(separator: "\n")
  }
}
