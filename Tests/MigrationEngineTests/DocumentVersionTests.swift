import AppStores
import Formats
import Testing

@testable import MigrationEngine

@Suite struct DocumentVersionTests {
  private static let versions = """
    versions:
      2: {defaults: {colour: none, style: {size: 12}}}
      3:
        steps:
          - {op: move, from: /name, path: /title}
          - {op: test, path: /colour, value: none}
    """

  private func migrated(_ json: String, _ arguments: String, _ versions: String = versions) throws -> String {
    let node = try #require(try YAMLDocument(text: arguments + "\n" + versions, file: "test.yaml").root)
    let rule = try DocumentVersions(
      reading: YAMLReader(node, what: "the step", keys: ChangeDocuments.kinds.flatMap(\.keys)))
    var document = try StructuredDocument(bytes: Array(json.utf8))
    _ = try document.apply(rule, of: DocumentName(file: "a.json", Redactor()))
    return String(decoding: try document.encoded(), as: UTF8.self)
  }

  private static let newest: String = #"{"colour":"none","style":{"size":12},"title":1}"#

  @Test(arguments: [
    (#"{"version":1,"data":{"name":1}}"#, "", "{\"version\":3,\"data\":\(newest)}"),
    (
      #"{"data": {"name": 1.50, "style": {"x": "2026-11-21T10:00:00Z"}}, "version": 1}"#, "",
      #"{"data": {"style": {"x": "2026-11-21T10:00:00Z", "size": 12}, "colour": "none", "title": 1.50}, "#
        + "\"version\": 3}"
    ),
    (
      #"{"version":2,"data":{"name":1,"colour":"none"}}"#, "",
      #"{"version":3,"data":{"colour":"none","title":1}}"#
    ),
    (#"{"version":3,"data":[]}"#, "", #"{"version":3,"data":[]}"#),
    (#"{"v":1,"d":{"name":1}}"#, "version-key: v\ndata-key: d", "{\"v\":3,\"d\":\(newest)}"),
    (#"{"version":2,"name":1,"colour":"none"}"#, "data-key: ''", #"{"version":3,"colour":"none","title":1}"#),
    ("{\"name\":1}", "unversioned: 1", "{\"data\":\(newest),\"version\":3}"),
    ("{\"name\":1}", "unversioned: 1\ndata-key: ''", "\(newest.dropLast()),\"version\":3}"),
    (#"{"data":{"name":1}}"#, "unversioned: 1", "{\"data\":\(newest),\"version\":3}"),
  ])
  func goesToTheNewest(_ before: String, _ arguments: String, _ after: String) throws {
    #expect(try migrated(before, arguments) == after)
  }

  @Test(
    arguments: [
      (#"{"version":4,"data":{}}"#, "", "it has version 4, and the newest one known here is 3"),
      (#"{"version":0,"data":{}}"#, "", "it has version 0, and known here are 1, 2, 3"),
      (#"{"version":"1","data":{}}"#, "", "its version, `/version`, is a string, not an integer"),
      (#"{"version":1.5,"data":{}}"#, "", "not an integer"),
      (#"{"version":1e400,"data":{}}"#, "", "not an integer"),
      ("{\"data\":{}}", "", "it has no `version`: name it with `version-key`"),
      ("{\"version\":1}", "", "it has no `data`: name it with `data-key`"),
      ("[1]", "", "it has no `version`"),
      ("[1]", "unversioned: 1\ndata-key: ''", "it is an array, not a dictionary"),
      (#"{"version":1,"data":7}"#, "", "leads into a number"),
      (#"{"version":2,"data":{"name":1,"colour":"red"}}"#, "", "`/colour` is the text `red`"),
      (#"{"version":2,"data":{}}"#, "", "to version 3: `/data/name` does not exist"),
    ])
  func fails(_ before: String, _ arguments: String, _ message: String) throws {
    expectFailure(message, "test.yaml:") { try migrated(before, arguments) }
  }

  @Test(
    arguments: [
      ("versions: {}", "`versions` is empty"), ("versions: {x: {}}", "a version is an integer"),
      ("versions: {2: {step: []}}", "did you mean `steps`?"),
      ("oldest: 2, versions: {2: {}}", "`oldest` is not before"),
      ("unversioned: 7, versions: {2: {}}", "`unversioned` is none of the versions: 1, 2"),
      ("data-key: version, versions: {2: {}}", "are the same"),
      ("key: a, versions: {2: {}}", "either `key` or `path`"),
      ("suite: a, versions: {2: {}}", "leave `suite` and `file` out"),
      ("oldest: 1", "needs the key `versions`"),
      ("versions: {2: {defaults: {1: x}}}", "a field's name is text"),
    ])
  func refused(_ arguments: String, _ message: String) throws {
    try Lab.with { lab in
      try lab.write("Documents/a.json", #"{"version":1,"data":{}}"#)
      lab.expectFailing(
        "defaults.document-migrate: {path: Documents/a.json, \(arguments)}", message,
        start: "0001_test.yaml:2:")
    }
  }

  @Test func gapsBetweenVersions() throws {
    let versions = "oldest: 5\nversions: {20: {}, 10: {steps: [{op: add, path: /ten, value: 1}]}}\n"
    #expect(try migrated(#"{"version":5,"data":{}}"#, "", versions) == #"{"version":20,"data":{"ten":1}}"#)
    #expect(try migrated(#"{"version":10,"data":{}}"#, "", versions) == #"{"version":20,"data":{}}"#)
    expectFailure("known here are 5, 10, 20") { try migrated(#"{"version":9,"data":{}}"#, "", versions) }
  }

  private static let step = """
    defaults.document-migrate:
          key: state
          unversioned: 1
          versions:
            2: {defaults: {colour: none}, steps: [{op: move, from: /name, path: /title}]}
    """

  @Test func settingsAndTheWayBack() throws {
    let wrapper: PropertyListValue = ["version": 1, "data": ["name": "n"]]
    let bare: PropertyListValue = ["name": "n"]
    let wrapped: PropertyListValue = ["version": 2, "data": ["title": "n", "colour": "none"]]
    for (before, after) in [
      (wrapper, wrapped), (bare, wrapped),
      (
        #"{"version": 1, "data": {"name": "n"}}"#,
        #"{"version": 2, "data": {"colour": "none", "title": "n"}}"#
      ),
      (
        .data(Array(#"{"name":"n"}"#.utf8)),
        .data(Array(#"{"data":{"colour":"none","title":"n"},"version":2}"#.utf8))
      ),
    ] as [(PropertyListValue, PropertyListValue)] {
      try Lab.with { lab in
        try lab.set(["state": before, "x": 1])
        var stepLab = try StepLab(lab, Self.step)
        #expect(try stepLab.apply() == [])
        #expect(throws: StepFailure.self) { try stepLab.revert(withPriorValues: false) }
        #expect(try stepLab.stage.settings() == ["state": after, "x": 1])
        #expect(try stepLab.revert() == [])
        #expect(try stepLab.stage.settings() == ["state": before, "x": 1])
      }
    }
  }

  @Test func theWayBackTakesNewerData() throws {
    try Lab.with { lab in
      try lab.set(["state": ["name": "n"]])
      let stepLab = try lab.applied(Self.step)
      try stepLab.set(["state": ["version": 2, "data": ["title": "new", "colour": "red", "z": 1]]])
      #expect(
        try stepLab.revert() == [
          "the setting `state`: `/data/colour` is not what the step wrote: left unchanged"
        ])
      #expect(try stepLab.stage.settings() == ["state": ["name": "new", "colour": "red", "z": 1]])
    }
  }
}
