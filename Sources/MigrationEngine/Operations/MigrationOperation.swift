import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// What a step does. Operations are read from files and Swift values; a closure of a migration plan is one by itself.
protocol MigrationAction: Sendable {
  /// The word for it in messages.
  var name: String { get }
  /// Whether it opens the vault, for which the device key is needed.
  var needsVault: Bool { get }
  /// Whether its author says that it destroys data, and why.
  var isDestructive: Bool { get }
  /// What it says of the data that it destroys.
  var announcedLoss: AnnouncedLoss { get }
  /// How the step can be taken back by itself, when the transaction's undo cannot be used.
  var wayBack: WayBack { get }
  /// Whether its author wrote how it is reverted, so that it may be wrong.
  var hasWrittenDown: Bool { get }
  /// Does it on the stage.
  ///
  /// - Parameter memory: takes what ``revert(on:_:)`` has to know later.
  /// - Returns: remarks for the report: what was skipped or kept, and why.
  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String]
  /// Takes the step back on the stage. What is no longer what the step wrote stays, with a remark, unless the arguments
  /// alone say what the way back is: then newer data goes it, too.
  ///
  /// - Parameter memory: what the step wrote down; nil when the transaction's undo is gone.
  /// - Throws: ``StepFailure`` when it cannot be taken back.
  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String]
}

/// One kind of step that a migration names. Each has a file of its own here and a line in ``Operations``.
protocol MigrationOperation: MigrationAction {
  /// The word in a migration.
  static var name: String { get }
  /// The arguments that it takes.
  static var keys: [String] { get }
  /// Whether it opens the vault, for which the device key is needed.
  static var needsVault: Bool { get }
  /// Reads the arguments; unknown ones were refused already.
  init(reading reader: YAMLReader, files: MigrationFiles) throws
}

/// How a step can be taken back by itself.
enum WayBack: Sendable {
  /// Its arguments say what was there, as with a rename.
  case byArguments
  /// What it wrote down when it was applied says so.
  case byMemory
  /// It cannot: the migration needs `down` steps, or says `irreversible: true`.
  case none
}

extension MigrationOperation {
  /// Most do not.
  static var needsVault: Bool { false }

  var name: String { Self.name }

  var needsVault: Bool { Self.needsVault }
}

extension MigrationAction {
  /// Most do not.
  var isDestructive: Bool { false }

  /// What has no tables to name destroys all of what it is about, or nothing.
  var announcedLoss: AnnouncedLoss { isDestructive ? .everything : .nothing }

  /// What says nothing cannot be taken back.
  var wayBack: WayBack { .none }

  /// Most follow from their arguments, or from what they wrote down.
  var hasWrittenDown: Bool { false }

  /// What goes by memory alone puts the settings back that the step changed.
  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    guard wayBack == .byMemory else {
      throw StepFailure(
        message: "\(name) cannot be taken back by itself: the migration needs `down` steps")
    }
    return try StepMemory.required(memory).revertSettings(on: stage)
  }
}

/// The operations of this version.
enum Operations {
  static let all: [any MigrationOperation.Type] = [
    SetDefaults.self,
    SetDefaultDefaults.self,
    RenameDefaults.self,
    MoveDefaults.self,
    CopyDefaults.self,
    ConvertDefaults.self,
    DeleteDefaults.self,
    PatchDefaults.self,
    MigrateDocument.self,
    MoveDefaultsToFile.self,

    MoveDefaultsToVault.self,
    RenameVaultItems.self,
    MoveVaultItems.self,
    SetVaultAccessibility.self,
    ConvertVaultItems.self,
    DeleteVaultItems.self,

    RunSQL.self,

    MoveFiles.self,
    DeleteFiles.self,
    CopyFiles.self,
    CreateDirectory.self,
    WriteFile.self,
    SetBackupExclusion.self,
    PatchFiles.self,
    SetProtection.self,

    RunScript.self,
    Unarchive.self,
  ]

  static let named: [String: any MigrationOperation.Type] = Dictionary(
    all.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
}

/// What to do when that which an operation reads is not there.
package enum IfMissing: String, CaseIterable, Sendable { case skip, fail }

/// What to do when the database that statements are for is not there.
enum IfNoDatabase: String, CaseIterable, Sendable { case create, skip, fail }

/// What to do when that which an operation writes is there already. `keep` leaves both sides as they are.
package enum IfExists: String, CaseIterable, Sendable { case fail, keep, replace }

/// What to do with a value that has no counterpart.
package enum Unmapped: String, CaseIterable, Sendable { case fail, keep, delete }

extension YAMLReader {
  /// The argument `if-missing`.
  func ifMissing() throws -> IfMissing { try choice("if-missing") ?? .skip }

  /// The argument `if-exists`.
  func ifExists() throws -> IfExists { try choice("if-exists") ?? .fail }

  /// The reason that a destructive operation must give.
  func reason() throws -> String {
    guard let node = self["destructive"] else {
      throw position.error("\(what) destroys data: say why with `destructive: \"…\"`")
    }
    let reason = try node.text("`destructive`")
    guard !reason.isEmpty else { throw node.position.error("`destructive` says why: give a reason") }
    return reason
  }

  /// A path in the container.
  func path(_ key: String) throws -> ContainerPath? {
    guard let node = self[key] else { return nil }
    return try node.containerPath("`\(key)`")
  }
}

extension YAMLNode {
  /// A path in the container, but not its root.
  func containerPath(_ what: String) throws -> ContainerPath {
    let written = try text(what)
    guard let text = GlobPattern.literal(written) else {
      throw position.error(
        "\(what) takes no pattern, only one path; write `\(GlobPattern.escaped(written))` for that very name")
    }
    do {
      let path = try ContainerPath(text)
      guard !path.isRoot else {
        throw position.error("\(what) is the container itself: name something in it")
      }
      return path
    } catch let error as DrydockError where error.code == .badPath {
      throw position.error("\(what): \(error.message)", cause: error)
    }
  }
}

/// A step's failure, before the place in the file is known.
struct StepFailure: Error {
  var message: String
  var path: String?
  var code = DrydockError.Code.stepFailed
}
