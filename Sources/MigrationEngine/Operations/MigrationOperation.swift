import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// What a step does: an operation, a closure of a Swift plan, or the statements of another tool's migration.
protocol MigrationAction: Sendable {
  /// What it does to data.
  var effects: StepEffects { get }
  /// The step that reverts it on the current data, where its arguments alone say it.
  var inverse: (any MigrationAction)? { get }
  /// How it can be reverted when the whole transaction cannot be undone.
  var reversal: Reversal { get }
  /// What there is to examine in it without a container, or to treat apart.
  var kind: StepKind { get }
  /// Runs the step on the stage.
  ///
  /// - Parameter recorded: takes the values that ``revert(on:_:)`` needs later.
  /// - Returns: notes for the report: what was skipped or kept, and why.
  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String]
  /// Reverts the step on the stage. What was changed since stays, with a note, unless the arguments alone say what the
  /// inverse is: then newer data is reverted, too.
  ///
  /// - Parameter recorded: the values of the step; nil when the transaction's undo entry was removed.
  /// - Returns: notes for the report.
  /// - Throws: ``StepFailure`` when it cannot be reverted.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String]
}

/// Steps that migrations name. Operations that differ in little share one type.
protocol MigrationOperation: MigrationAction {
  /// Each with all that there is to say about it.
  static var kinds: [OperationKind] { get }
}

/// What a step does to data, as far as it can be said without a container.
struct StepEffects: Sendable {
  /// Databases that may have another schema after a step: it changes the schema, or puts another file at their places.
  enum Databases: Sendable {
    case none, all
    case named(String)
    /// By their places; without places every path may be one.
    case at(@Sendable ([ContainerPath]) -> Bool)
  }

  /// What it puts in the place of values.
  var writing = StepWriting.conversion
  var databases = Databases.none
  /// The data that the author says it destroys.
  var announcedLoss = AnnouncedLoss.nothing
  /// The setting whose value it converts under another name: both names; else empty.
  var converted: [String] = []
  /// Whether it opens the vault, which needs the device key.
  var needsVault = false

  func mayReplace(_ database: String, at places: [ContainerPath]) -> Bool {
    switch databases {
    case .none: false
    case .all: true
    case .named(let name): database == name
    case .at(let mayReplace): mayReplace(places)
    }
  }
}

/// What a step puts in the place of values, for `drydock test`, which follows them.
package enum StepWriting: Sendable, Hashable {
  /// The same, elsewhere or in another form.
  case conversion
  /// Values that the migration has.
  case given
  /// Something else.
  case replacement
  /// The same document with parts changed, of which those that are gone were not converted.
  case patch
}

/// The kinds of steps that `validate` and reports treat apart.
enum StepKind: Sendable {
  case sql(RunSQL)
  case toolSQL(RunToolSQL)
  /// It evaluates expressions, with the values of their parameters.
  case computing([SQLExpression], ExpressionParameters)
  /// It works on the rows of a column.
  case column(ColumnFiles)
  /// A closure of a Swift plan, of which nothing is known.
  case closure
  case other

  /// The database that the step names; that of another tool is named in `drydock.yaml`.
  var database: NamedDatabase? {
    switch self {
    case .sql(let sql): sql.database
    case .column(let files): files.place.database
    case .toolSQL, .computing, .closure, .other: nil
    }
  }
}

/// How a step can be reverted.
enum Reversal: Sendable {
  /// Its arguments or the recorded values say how.
  case derived
  /// Its author wrote the down step, which may be wrong.
  case explicit
  /// It cannot: the migration needs `down` steps, or says `irreversible: true`.
  case none
}

extension MigrationAction {
  var inverse: (any MigrationAction)? { nil }
  var reversal: Reversal { .derived }
  var kind: StepKind { .other }

  /// Runs it without recording what was there before.
  func apply(to stage: StagedContainer) throws -> [String] {
    var unused = PriorValues()
    return try apply(to: stage, &unused)
  }

  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    if let inverse { return recorded?.skipped.isEmpty == false ? [] : try inverse.apply(to: stage) }
    guard reversal == .derived else {
      throw StepFailure("the step has no inverse: the migration needs `down` steps")
    }
    return try PriorValues.required(recorded).revert(on: stage)
  }
}

enum Operations {
  private static let types: [any MigrationOperation.Type] = [
    SetDefaults.self, TransferDefaults.self, ConvertDefaults.self, ComputeDefaults.self, DeleteDefaults.self,
    ChangeDocuments.self, MoveDefaultsToFile.self, MoveDefaultsToVault.self, ChangeVaultItems.self,
    ComputeVaultItems.self, ConvertVaultItems.self, TransferFiles.self, DeleteFiles.self, Unarchive.self,
    ExportColumn.self, ImportColumn.self, CreateDirectory.self, WriteFile.self, SetAttributes.self,
    RunScript.self, RunSQL.self, ChangeCoreData.self, ConvertCoreData.self,
  ]

  static let all = types.flatMap { $0.kinds }
  private static let named = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

  /// The operation of nearly this name; else those with its verb in all stores: `rename` may be that of settings or of items.
  private static func hint(for name: String) -> String {
    let verb = name.split(separator: ".").last ?? ""
    let near = named.keys.filter { $0.split(separator: ".").last?.hasPrefix(verb) == true }.sorted()
    guard NearestWord.to(name, among: Array(named.keys)) == nil, !verb.isEmpty, !near.isEmpty else {
      return NearestWord.hint(for: name, among: Array(named.keys))
    }
    return "did you mean \(near.map { "`\($0)`" }.joined(separator: " or "))?"
  }

  /// - Throws: `DrydockError` for an unknown name, and for invalid arguments.
  static func step(
    _ name: String, at position: YAMLPosition, arguments: YAMLNode, files: MigrationFiles
  ) throws -> MigrationStep {
    guard let kind = named[name] else {
      throw position.error("unknown operation `\(name)`; \(hint(for: name))")
    }
    return MigrationStep(
      position: position, name: name, operation: try kind.action(arguments, files: files))
  }
}

/// What to do when the source of an operation does not exist.
public enum IfMissing: String, CaseIterable, Sendable {
  case skip, fail

  static let argument = Argument("if-missing", default: Self.skip)

  /// The note of what is skipped; when it must exist, the step fails.
  func skipped(_ what: String, or failure: String? = nil, path: ContainerPath? = nil) throws -> String {
    if self == .fail { throw StepFailure(failure ?? what, at: path) }
    return what + ": skipped"
  }
}

/// What to do when the database of statements does not exist.
enum IfNoDatabase: String, CaseIterable, ArgumentValue { case create, skip, fail }

/// What to do when the target of an operation exists already. `keep` leaves both sides unchanged.
public enum IfExists: String, CaseIterable, Sendable {
  case fail, keep, replace

  static let argument = Argument("if-exists", default: Self.fail)

  /// Whether what exists is replaced; else it is kept, or the step fails.
  ///
  /// - Parameter problem: the beginning of the message.
  func replaces(or problem: String, path: ContainerPath) throws -> Bool {
    if self == .fail {
      throw StepFailure(problem + ": say `if-exists: keep` or `if-exists: replace`", at: path)
    }
    return self == .replace
  }
}

/// What to do with a value that cannot be converted, or whose expression gives NULL.
enum Unmapped: String, CaseIterable, ArgumentValue {
  case fail, keep, delete

  /// What becomes of such a value: it fails the step, or it stays or goes, with a note.
  ///
  /// - Parameter failure: gets what to say to go on.
  func outcome(
    _ what: String, _ argument: String = "unmapped", or failure: (String) -> StepFailure
  ) throws -> (note: String, isDeleted: Bool) {
    switch self {
    case .fail: throw failure("`\(argument): keep` or `\(argument): delete`")
    case .keep: return ("\(what): left unchanged", false)
    case .delete: return ("\(what): deleted", true)
    }
  }
}

/// A step's failure, before the source location is added.
struct StepFailure: Error {
  let message: String
  let path: ContainerPath?
  let code: DrydockError.Code

  init(_ message: String, at path: ContainerPath? = nil, code: DrydockError.Code = .stepFailed) {
    (self.message, self.path, self.code) = (message, path, code)
  }
}

extension StagedContainer {
  /// Whether a path is in the directory of Drydock's history, which no step may change.
  func isHistory(_ path: ContainerPath) -> Bool { container.isHistory(path) }

  /// - Throws: ``StepFailure`` when a path is in the directory of the history, or is a directory that contains it, or is the log
  ///   of a database, which may have committed rows.
  func requireChangeable(_ path: ContainerPath) throws {
    if try isSidecar(path), let main = DatabaseUnit.main(ofSidecar: path) {
      throw StepFailure(
        "`\(path)` belongs to the database `\(main)`, and may have data of it: name the database", at: path)
    }
    if isHistory(path) {
      throw StepFailure("`\(path)` is where Drydock keeps its history: choose another path", at: path)
    }
    // Also where there is none yet: each container that was migrated has one.
    guard container.historyPath.isInside(path) else { return }
    throw StepFailure("`\(path)` contains Drydock's history: name its other contents instead", at: path)
  }
}
