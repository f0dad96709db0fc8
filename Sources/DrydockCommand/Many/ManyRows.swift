import Drydock
import Foundation

/// Tells the results of many containers as they come, and counts them.
struct ManyRows {
  private(set) var summary = ManySummary()
  private let nameWidth: Int
  /// The exit codes that there were, in the order of their first container.
  private var codes: [Int32] = []
  /// How often each remark came, but for the container's path in it.
  private var remarks: [String: Int] = [:]
  private static let stateWidth = ManyResult.State.allCases.map(\.rawValue.count).max() ?? 0
  private static let remarksShown = 3
  /// Whether it was said that processes cannot be seen, which is the same for all containers.
  private var hasToldUnseen = false

  private let asJSON: Bool

  init(names: [String], asJSON: Bool) {
    self.asJSON = asJSON
    nameWidth = names.map { Self.shown($0).count }.max() ?? 0
  }

  /// A name for people, on one line.
  static func shown(_ name: String) -> String { ContainerPath.printable(Array(name.utf8)) }

  mutating func tell(_ child: ContainerDirectory.Child, _ done: ManyContainers.Done) {
    summary.summary.containers += 1
    summary.summary[done.state] += 1
    if !codes.contains(done.exitCode) { codes.append(done.exitCode) }
    summary.exitCode = ManySummary.exitCode(of: codes)
    for note in done.notes { tell(note, of: child) }
    if let unseen = done.unseen, !hasToldUnseen {
      Output.note("drydock: note: \(unseen.note)")
      hasToldUnseen = true
    }
    if asJSON {
      Output.line(encoded: done.text)
      if let error = done.error { Output.note("drydock: error: \(error)") }
    } else {
      let cells = [
        Self.padded(Self.shown(child.name), nameWidth), Self.padded(done.state.rawValue, Self.stateWidth),
        (done.error == nil ? done.text : done.reason).split(separator: "\n")
          .map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "; "),
      ]
      Output.line("  " + cells.joined(separator: "  "))
    }
  }

  /// What each container has to say, such as how it was changed, is not said a thousand times.
  private mutating func tell(_ note: String, of child: ContainerDirectory.Child) {
    let kind = note.replacing(realPath(child.path) ?? child.path, with: "")
    remarks[kind, default: 0] += 1
    if remarks[kind, default: 0] <= Self.remarksShown { Output.note("\(note) (\(Self.shown(child.name)))") }
  }

  /// Tells how many remarks were not told.
  func end() {
    let more = remarks.values.reduce(0) { $0 + max(0, $1 - Self.remarksShown) }
    if more > 0 {
      Output.note("drydock: note: and \(more) more remarks like these; --json has them for each container")
    }
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
