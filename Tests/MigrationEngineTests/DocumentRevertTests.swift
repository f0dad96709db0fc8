import FileSystem
import Formats
import Testing

@testable import MigrationEngine

@Suite struct DocumentRevertTests {
  private static let file: ContainerPath = "Documents/a.json"

  /// Patches a JSON file, writes what the app writes then, and takes the patch back.
  private func thereAndBack(
    _ before: String, _ steps: String, app: String? = nil
  ) throws -> (text: String?, notes: [String]) {
    try Lab.with { lab in
      try lab.write(Self.file, before)
      var stepLab = try StepLab(lab, "files.patch: {path: \(Self.file), patch: [\(steps)]}")
      _ = try stepLab.apply()
      if let app { try stepLab.write(Self.file, app) }
      let notes = try stepLab.revert()
      return (try stepLab.stage.text(Self.file), notes)
    }
  }

  @Test(
    arguments: [
      (#"{"a": 1, "b": [1, 2]}"#, "{op: add, path: /c, value: 3}"),
      (#"{"a": 1, "b": [1, 2]}"#, "{op: add, path: /a, value: 3}"),
      (#"{"a": 1, "b": [1, 2]}"#, "{op: add, path: /b/1, value: 3}, {op: add, path: /b/-, value: 4}"),
      (#"{"a": 1, "b": [1, 2]}"#, "{op: remove, path: /a}, {op: remove, path: /b/0}"),
      (#"{"a": 1.50, "b": [1, 2], "c": null}"#, "{op: move, from: /a, path: /b/0}, {op: remove, path: /b/1}"),
      (#"{"a": 1, "b": 2, "c": 3}"#, "{op: move, from: /b, path: /a}"),
      (
        #"{"a": 1, "b": 2, "c": 3}"#,
        "{op: copy, from: /b, path: /c}, {op: replace, path: /b, value: {x: 1}}"
      ),
      ("{\n  \"a\" : 1,\n  \"b\" : 2\n}\n", "{op: remove, path: /a}, {op: add, path: /c, value: [1]}"),
      ("[1]", "{op: replace, path: '', value: {a: 1}}"), ("{\"a\":1}", "{op: test, path: /a, value: 1}"),
    ])
  func backToTheText(_ before: String, _ steps: String) throws {
    let result = try thereAndBack(before, steps)
    #expect(result.text == before && result.notes == [])
  }

  @Test(
    arguments: [
      // What the app wrote elsewhere stays.
      ("{\"a\":1}", "{op: add, path: /b, value: 2}", #"{"a":9,"b":2,"z":0}"#, #"{"a":9,"z":0}"#, 0),
      // What the app changed of ours stays, with a remark.
      ("{\"a\":1}", "{op: add, path: /b, value: 2}", #"{"a":1,"b":7}"#, #"{"a":1,"b":7}"#, 1),
      ("{\"a\":1}", "{op: replace, path: /a, value: 2}", "{\"a\":3}", "{\"a\":3}", 1),
      ("{\"a\":1}", "{op: replace, path: /a, value: 2}", "{}", "{}", 1),
      ("{\"a\":1}", "{op: remove, path: /a}", "{\"a\":5}", "{\"a\":5}", 1),
      (#"{"a":{"b":1}}"#, "{op: remove, path: /a/b}", "{}", "{}", 1),
      // What was moved goes back as it is now.
      ("{\"a\":1}", "{op: move, from: /a, path: /b}", "{\"b\":7}", "{\"a\":7}", 0),
      (#"{"a":1,"b":2}"#, "{op: move, from: /a, path: /b}", "{\"b\":7}", #"{"a":7,"b":2}"#, 0),
      ("{\"a\":1}", "{op: move, from: /a, path: /b}", #"{"a":4,"b":7}"#, #"{"a":4,"b":7}"#, 1),
      ("{\"a\":1}", "{op: move, from: /a, path: /b}", "{}", "{}", 1),
      ("{\"a\":[]}", "{op: add, path: /a/-, value: 1}", #"{"a":{"0":1}}"#, "{\"a\":{}}", 0),
      ("{\"a\":[1]}", "{op: remove, path: /a/0}", "{\"a\":[8,9]}", "{\"a\":[1,8,9]}", 0),
    ])
  func newerDataStays(_ before: String, _ steps: String, _ app: String, _ after: String, _ remarks: Int)
    throws
  {
    let result = try thereAndBack(before, steps, app: app)
    #expect(result.text == after)
    #expect(result.notes.count == remarks, "\(result.notes)")
  }

  @Test func settings() throws {
    try Lab.with { lab in
      let before: PropertyListDictionary = ["d": ["a": 1, "b": [1, 2]], "t": "{\"a\" : 1 }", "x": 1]
      try lab.set(before)
      for key in ["d", "t"] {
        let step =
          "defaults.patch: {key: \(key), patch: [{op: move, from: /a, path: /z}, {op: add, path: /n, value: 2}]}"
        var stepLab = try StepLab(lab, step)
        _ = try stepLab.apply()
        #expect(try stepLab.stage.settings() != before)
        #expect(throws: StepFailure.self) { try stepLab.revert(withPriorValues: false) }
        #expect(try stepLab.revert() == [])
        #expect(try stepLab.stage.settings() == before)
      }
      // The app has written into the same dictionary since.
      var stepLab = try StepLab(lab, "defaults.patch: {key: d, patch: [{op: move, from: /a, path: /z}]}")
      _ = try stepLab.apply()
      try stepLab.set(["d": ["z": 5, "b": [1, 2], "new": true], "x": 2])
      #expect(try stepLab.revert() == [])
      #expect(try stepLab.stage.settings() == ["d": ["a": 5, "b": [1, 2], "new": true], "x": 2])
      try stepLab.set(["x": 2])
      #expect(try stepLab.revert() == ["`d` does not exist: skipped"])
    }
  }
}
