import Formats
import Testing

@testable import MigrationEngine

@Suite struct DefaultsTransferTests {
  private typealias Values = PropertyListDictionary

  private let lab: Lab

  init() throws { lab = try Lab() }

  private func prepare(_ own: Values?, _ group: Values?) throws {
    lab.configuration.defaults = ["group.notes": Lab.group]
    if let own { try lab.set(own) }
    if let group { try lab.write(Lab.group, settings: group) }
  }

  private static let to = "to: {suite: group.notes}"

  @Test(
    arguments: [
      ("move: {\(to), keys: [a]}", ["a": 1, "b": 2], nil, ["b": 2], ["a": 1], nil),
      ("move: {\(to), keys: a}", ["a": 1], ["b": 2], [:], ["a": 1, "b": 2], nil),
      ("move: {\(to), keys: {a: x, b: a}}", ["a": 1, "b": 2], nil, [:], ["x": 1, "a": 2], nil),
      (
        "move: {\(to), prefix: w.}", ["w.x": 1, "w.y": 2, "wz": 3], nil, ["wz": 3], ["w.x": 1, "w.y": 2], nil
      ),
      ("move: {\(to), all: true}", ["a": 1, "b": 2], nil, [:], ["a": 1, "b": 2], nil),
      ("move: {from: {suite: group.notes}, keys: [a]}", nil, ["a": 1], ["a": 1], [:], nil),
      ("move: {from: {file: \(Lab.group)}, keys: [a]}", nil, ["a": 1], ["a": 1], [:], nil),
      // Both have it: the same value is no conflict, 1 and 1.0 are not the same.
      ("move: {\(to), keys: [a]}", ["a": 1], ["a": 1], [:], ["a": 1], nil),
      ("move: {\(to), keys: [a]}", ["a": 1], ["a": 1.0], nil, nil, "the setting `a` exists already"),
      (
        "move: {\(to), keys: [a, b], if-exists: keep}", ["a": 1, "b": 2], ["a": 9], ["a": 1],
        ["a": 9, "b": 2], nil
      ),
      ("move: {\(to), keys: [a], if-exists: replace}", ["a": 1], ["a": 9], [:], ["a": 1], nil),
      // All or nothing: `b` could go, and does not.
      ("move: {\(to), keys: [b, a]}", ["a": 1, "b": 2], ["a": 9], nil, nil, "exists already"),
      ("move: {\(to), keys: [a]}", ["b": 2], nil, ["b": 2], nil, nil),
      ("move: {\(to), keys: [a], if-missing: fail}", ["b": 2], nil, nil, nil, "`a` does not exist"),
      ("move: {\(to), prefix: z, if-missing: fail}", ["b": 2], nil, nil, nil, "no setting starts with `z`"),
      ("move: {\(to), all: true}", nil, nil, nil, nil, nil),
      ("move: {to: {file: \(Lab.settings)}, keys: {a: b}}", ["a": 1], nil, nil, nil, "the same settings"),
      ("copy: {\(to), keys: [a]}", ["a": 1, "b": 2], nil, ["a": 1, "b": 2], ["a": 1], nil),
      (
        "copy: {to: {file: \(Lab.settings)}, keys: {a: c, b: a}, if-exists: replace}", ["a": 1, "b": 2], nil,
        ["a": 2, "b": 2, "c": 1], nil, nil
      ),
      ("copy: {\(to), keys: [a]}", ["a": 1], ["a": 2], nil, nil, "exists already"),
      ("copy: {\(to), keys: [a], if-exists: keep}", ["a": 1], ["a": 2], ["a": 1], ["a": 2], nil),
    ]
      as [(
        String, PropertyListDictionary?, PropertyListDictionary?, PropertyListDictionary?,
        PropertyListDictionary?, String?
      )])
  func matrix(
    _ step: String, _ own: PropertyListDictionary?, _ group: PropertyListDictionary?,
    _ ownAfter: PropertyListDictionary?, _ groupAfter: PropertyListDictionary?, _ message: String?
  ) throws {
    try prepare(own, group)
    let steps = "  - defaults.\(step)\n"
    if let message {
      lab.expectFailing(steps, message, start: "0001_test.yaml:2:5: defaults.")
    } else {
      let after = try lab.tried(steps) { stage, _ throws in
        (try stage.settings(), try stage.settings(Lab.group))
      }
      #expect(after.0 == ownAfter && after.1 == groupAfter)
    }
  }

  @Test func typesArriveExactly() throws {
    let values: Values = [
      "a": .date(.init(timeIntervalSinceReferenceDate: 1.25)), "b": .single(0.1), "c": .unsigned(.max),
      "d": .data([0]),
      "e": .dictionary(["x": .array([.boolean(true), .integer(1), .real(1)])]),
    ]
    try prepare(values, nil)
    let after = try lab.tried("defaults.move: {\(Self.to), all: true}") { stage, _ throws in
      try stage.settings(Lab.group)
    }
    #expect(after == values)
  }

  @Test(arguments: [
    ("move: {keys: [a]}", "defaults.move needs `from` or `to`"),
    ("move: {\(to)}", "needs `keys`, a `prefix`, or `all: true`"),
    ("move: {\(to), keys: [a], all: true}", "name either `keys` or `all`, not both"),
    ("move: {\(to), all: false}", "`all` is true, or left out"),
    ("move: {\(to), prefix: ''}", "say `all: true`"),
    ("move: {\(to), keys: {a: b, c: b}}", "two settings become `b`"),
    ("move: {to: {suit: x}, keys: a}", "did you mean `suite`?"),
    ("copy: {to: x, keys: a}", "`to` is a mapping"),
    ("move: {to: {suite: grup.notes}, keys: a}", "did you mean `group.notes`?"),
    ("move: {to: {suite: a, file: b}, keys: a}", "name either `suite` or `file`"),
  ])
  func refused(_ step: String, _ message: String) throws {
    try prepare(["a": 1], nil)
    lab.expectFailing("defaults.\(step)", message, "0001_test.yaml:2:")
  }

  // MARK: Reverting

  /// The step, both files before it, what the app makes of them since, the notes of the revert, and both files after it.
  /// The app goes on in the new place: what it adds there is the old version's, too, unless it was there before.
  @Test(
    arguments: [
      (
        "move: {\(to), keys: {a: x, b: b, c: c, z: z}, if-exists: replace}", ["a": 1, "b": 2, "c": 3],
        ["c": 9, "b": 2], nil, ["x": 7, "b": 2, "c": 3, "z": 5], [], ["a": 7, "b": 2, "c": 3, "z": 5],
        ["b": 2, "c": 9]
      ),
      (
        "move: {\(to), prefix: w.}", ["w.a": 1], ["w.old": 9, "y": 2], nil,
        ["w.old": 9, "y": 2, "w.a": 2, "w.new": 3], [], ["w.a": 2, "w.new": 3], ["w.old": 9, "y": 2]
      ),
      (
        "move: {\(to), all: true}", ["w.a": 1], nil, nil, ["w.a": 2, "w.new": 3], [],
        ["w.a": 2, "w.new": 3], nil
      ),
      (
        "move: {\(to), all: true}", ["w.a": 1], ["y": 2], nil, ["y": 2, "w.a": 2, "w.new": 3],
        ["`w.new` was written since: left unchanged"], ["w.a": 2], ["y": 2, "w.new": 3]
      ),
      (
        "copy: {\(to), prefix: w.}", ["w.a": 1], ["w.old": 9], nil, ["w.a": 1, "w.old": 9, "w.new": 3],
        ["`w.new` was written since: left unchanged"], ["w.a": 1], ["w.old": 9, "w.new": 3]
      ),
      (
        "move: {\(to), keys: [a, b]}", ["a": 1, "b": 2], nil, ["a": 5], ["a": 1],
        ["`b` does not exist: skipped", "`a` exists already: kept, and `a` too"], ["a": 5], ["a": 1]
      ),
    ]
      as [(
        String, PropertyListDictionary, PropertyListDictionary?, PropertyListDictionary?,
        PropertyListDictionary, [String], PropertyListDictionary, PropertyListDictionary?
      )])
  func revert(
    _ step: String, _ own: PropertyListDictionary, _ group: PropertyListDictionary?,
    _ appOwn: PropertyListDictionary?, _ appGroup: PropertyListDictionary, _ notes: [String],
    _ ownAfter: PropertyListDictionary, _ groupAfter: PropertyListDictionary?
  ) throws {
    try prepare(own, group)
    var stepLab = try StepLab(lab, "defaults.\(step)")
    _ = try stepLab.apply()
    if let appOwn { try stepLab.set(appOwn) }
    try stepLab.set(appGroup, at: Lab.group)
    #expect(try stepLab.revert() == notes)
    #expect(try stepLab.stage.settings() == ownAfter && stepLab.stage.settings(Lab.group) == groupAfter)
  }

  @Test func moveBackWithoutMemory() throws {
    try prepare(["a": 1], nil)
    var stepLab = try StepLab(lab, "defaults.move: {\(Self.to), keys: {a: x}}")
    _ = try stepLab.apply()
    #expect(try stepLab.revert(withPriorValues: false) == [])
    #expect(try stepLab.stage.settings() == ["a": 1])
    stepLab = try StepLab(lab, "defaults.move: {\(Self.to), all: true}")
    _ = try stepLab.apply()
    #expect(throws: StepFailure.self) { try stepLab.revert(withPriorValues: false) }
    #expect(try stepLab.revert() == [])
    #expect(try stepLab.stage.settings() == ["a": 1])
    #expect(try stepLab.stage.settings(Lab.group) == nil)
  }

  @Test func copiesGoWhereTheyAreWhatWasCopied() throws {
    try prepare(["a": 1, "b": 2], nil)
    var stepLab = try StepLab(lab, "defaults.copy: {\(Self.to), keys: [a, b]}")
    _ = try stepLab.apply()
    #expect(throws: StepFailure.self) { try stepLab.revert(withPriorValues: false) }
    try stepLab.set(["a": 1, "b": 3], at: Lab.group)
    #expect(try stepLab.revert().count == 1)
    #expect(try stepLab.stage.settings(Lab.group) == ["b": 3])
  }
}
