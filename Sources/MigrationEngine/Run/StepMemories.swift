import AppContainer
import ContainerTransaction
import DrydockErrors
import Foundation

/// What all steps of one run wrote down, as it is kept with the transaction's undo.
struct StepMemories: Codable {
  /// The version before the run.
  let from: Int
  /// By migration, in the order of its steps.
  private var steps: [Int: [StepMemory]] = [:]
  /// The settings that version markers are.
  private var markers = StepMemory()

  init(from: Int) { self.from = from }

  /// Reads what an undo has kept.
  ///
  /// - Throws: ``DrydockError`` with code `damagedHistory`.
  init(decoding bytes: [UInt8]) throws {
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(bytes))
    } catch {
      throw DrydockError(
        .damagedHistory,
        "what the steps of a transaction wrote down for their way back cannot be read: roll the whole transaction back",
        cause: error)
    }
  }

  func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return [UInt8](try encoder.encode(self))
  }

  mutating func add(_ memory: StepMemory, of migration: Int) { steps[migration, default: []].append(memory) }

  /// What the steps of a migration wrote down; nil when they were not run then.
  func steps(of migration: Int) -> [StepMemory]? { steps[migration] }

  /// What scripts wrote, in the order in which they ran.
  var output: [String] { steps.sorted { $0.key < $1.key }.flatMap { $0.value.flatMap(\.output) } }

  // MARK: Version markers

  /// Notes which markers a body makes that were not there.
  mutating func noteMarkers(on stage: StagedContainer, _ body: () throws -> [String]) throws -> [String] {
    guard let path = stage.container.standardDefaults else { return try body() }
    let before = try stage.defaults(path)?.root
    if before == nil { try markers.noteMade(path, on: stage) }
    let notes = try body()
    markers.note(settings: path, before: before ?? [:], after: try stage.defaults(path)?.root ?? [:])
    return notes
  }

  /// Removes the markers that the run had made; those that were there have the right number by now.
  func removeMadeMarkers(on stage: StagedContainer) throws {
    var made = markers
    for index in made.settings.indices.reversed() {
      if made.settings[index].before != nil {
        made.settings.remove(at: index)
      } else {
        // The number that stands there is the one of the version that was gone back to.
        let setting = made.settings[index]
        made.settings[index].after = try stage.defaults(setting.file)?.root[setting.key].map(StoredValue.init)
      }
    }
    _ = try made.revertSettings(on: stage)
    try made.removeEmptyDirectories(on: stage)
  }
}
