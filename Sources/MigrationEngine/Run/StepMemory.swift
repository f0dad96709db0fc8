import FileSystem
import Formats
import Foundation

/// What one step of a migration writes down when it is applied, so that it can be taken back by itself later. It is kept
/// with the transaction's undo, and goes with it; secrets that a vault holds are never in it.
package struct StepMemory: Sendable, Codable, Equatable {
  /// A setting that the step changed.
  struct Setting: Sendable, Codable, Equatable {
    var file: ContainerPath
    @ExactText var key: String
    /// Nil where there was none, or is none now.
    var before, after: StoredValue?
  }

  /// Sorted by key, file after file.
  var settings: [Setting] = []
  /// What was changed inside of JSON and property lists, in order.
  var documents: [DocumentMemory] = []
  /// What the step left alone, under the name that it had: a setting, a path. The way back leaves it, too.
  var skipped: [String] = []
  /// Files and directories that were not there before, such as the directory that a moved file went to, parents first.
  /// On the way back those go that are empty then.
  var made: [ContainerPath] = []
  /// What the step took away as a whole. The transaction's undo has it, and `stage.kept` puts it back.
  var removed: [ContainerPath] = []
  /// What the step put somewhere, in order.
  var written: [Written] = []
  var attributes: [Attribute] = []
  /// What a script wrote, kept as the log of it; what has a secret's form is hidden.
  var output: [String] = []
  /// What the step took away after an earlier one of the same transaction had changed it: nothing keeps it.
  var lost: [ContainerPath] = []
  /// The vault items that the step changed.
  var items: SealedItems?
  /// Of settings that became vault items: their types, in the order of `items`.
  var types: [SettingType] = []
  /// Files that became others, such as archives that became JSON, in order.
  var converted: [Converted] = []
  /// What a pattern matched and went elsewhere, in order; nil as in records of steps that move nothing by a pattern.
  var moved: [Moved]?

  /// A path that went elsewhere.
  struct Moved: Sendable, Codable, Equatable {
    var from, to: ContainerPath
  }

  /// What a step wrote down, for an operation that needs it.
  ///
  /// - Throws: ``StepFailure`` when it is gone.
  static func required(_ memory: StepMemory?) throws -> StepMemory {
    guard let memory else {
      throw StepFailure(
        message:
          "what the step replaced is not known any more: the transaction's undo is gone; the migration needs "
          + "`down` steps for this")
    }
    return memory
  }

  /// Notes the settings of a file that differ.
  mutating func note(
    settings file: ContainerPath, before: PropertyListDictionary, after: PropertyListDictionary
  ) {
    for key in before.differingKeys(from: after) {
      settings.append(
        Setting(
          file: file, key: key.text, before: before[key].map(StoredValue.init),
          after: after[key].map(StoredValue.init)))
    }
  }
}

/// A value as records hold it: a binary property list in base64, which keeps every type exactly.
struct StoredValue: Sendable, Codable, Equatable {
  let value: PropertyListValue

  init(_ value: PropertyListValue) { self.value = value }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let bytes = [UInt8](try container.decode(Data.self))
    guard let value = try PropertyListFile(bytes: bytes).root["value"] else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no value")
    }
    self.value = value
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Data(try PropertyListFile(root: ["value": value]).encoded()))
  }
}
