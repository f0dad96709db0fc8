import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats
import Foundation
import GRDB

/// A closure of a plan as a step. Its way back is another one, which stands in the migration's `down`.
struct CustomStep: MigrationAction {
  /// The stage's name.
  let stage: String
  let position: YAMLPosition
  let needsVault: Bool
  let change: MigrationStage.Change

  var name: String { stage }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    let context = MigrationContext(stage: stage, name: name, position: position)
    do {
      try change(context)
      try context.finish()
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw StepFailure(
        message: context.hidingSecrets(in: error.plainMessage + Self.statement(of: error)))
    } catch  where Self.isUnknown(error) {
      throw StepFailure(message: context.hidingSecrets(in: Self.text(of: error)))
    }
    return context.notes
  }

  /// Whether an error is the plan's own, of which nothing is known but its text.
  private static func isUnknown(_ error: any Error) -> Bool {
    !(error is StepFailure || error is DrydockError)
  }

  private static func text(of error: any Error) -> String {
    (error as? any LocalizedError)?.errorDescription ?? String(describing: error)
  }

  /// The SQL of a failed statement without its arguments, in one line.
  private static func statement(of error: DatabaseError) -> String {
    guard let sql = error.sql else { return "" }
    let line = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return " in `\(line.prefix(200))\(line.count > 200 ? "…" : "")`"
  }
}
