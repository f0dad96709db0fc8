import AppStores
import FileSystem
import Formats
import Testing

@testable import MigrationEngine

@Suite struct DocumentPatchTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private func patched(_ json: String, _ steps: String) throws -> String {
    let node = try #require(try YAMLDocument(text: "[\(steps)]", file: "test.yaml").root)
    var document = try StructuredDocument(bytes: Array(json.utf8))
    _ = try document.apply(DocumentPatch(node, "`patch`"), of: DocumentName(file: "a.json", Redactor()))
    return String(decoding: try document.encoded(), as: UTF8.self)
  }

  @Test(
    arguments: [
      ("{\"a\":1}", "{op: add, path: /b, value: [x, null, 1.50]}", #"{"a":1,"b":["x",null,1.50]}"#),
      ("{\"a\":1}", "{op: add, path: /a, value: 2}", "{\"a\":2}"),
      ("[1, 2]", "{op: add, path: /0, value: 9}", "[9, 1, 2]"),
      ("[1, 2]", "{op: add, path: /1, value: 9}", "[1, 9, 2]"),
      ("[1, 2]", "{op: add, path: /2, value: 9}", "[1, 2, 9]"),
      ("[1, 2]", "{op: add, path: /-, value: 9}", "[1, 2, 9]"),
      ("{\"a\":1}", "{op: add, path: '', value: {z: 1}}", "{\"z\":1}"),
      ("{\"a\":1}", "{op: replace, path: '', value: x}", "\"x\""),
      (#"{"b": 1.0, "a": 2}"#, "{op: remove, path: /a}", "{\"b\": 1.0}"),
      ("[1, 2]", "{op: remove, path: /0}", "[2]"),
      (#"{"a":{"b":1e5}}"#, "{op: replace, path: /a/b, value: 1e5}", #"{"a":{"b":1e5}}"#),
      (#"{"a/b":1,"c~d":2}"#, "{op: replace, path: /a~1b, value: 3}", #"{"a/b":3,"c~d":2}"#),
      (#"{"a/b":1,"c~d":2}"#, "{op: remove, path: /c~0d}", "{\"a/b\":1}"),
      ("{\"~1\":1}", "{op: remove, path: /~01}", "{}"),
      (#"{"":{"":1}}"#, "{op: replace, path: //, value: 2}", #"{"":{"":2}}"#),
      (#"{"a":{"x":1e9},"b":[]}"#, "{op: move, from: /a/x, path: /b/-}", #"{"a":{},"b":[1e9]}"#),
      ("[1,2,3]", "{op: move, from: /0, path: /2}", "[2,3,1]"),
      ("{\"a\":1}", "{op: move, from: /a, path: /a}", "{\"a\":1}"),
      (#"{"a":{"b":1}}"#, "{op: move, from: /a/b, path: /a}", "{\"a\":1}"),
      (
        "{\"a\":[1]}", "{op: copy, from: /a, path: /b}, {op: add, path: /b/-, value: 2}",
        #"{"a":[1],"b":[1,2]}"#
      ),
      ("{\"a\":[1]}", "{op: copy, from: /a, path: /a/-}", "{\"a\":[1,[1]]}"),
      (
        #"{"a":{"y":1.0,"x":[2]}}"#, "{op: test, path: /a, value: {x: [2], y: 1}}",
        #"{"a":{"y":1.0,"x":[2]}}"#
      ),
      ("{\"a\":null}", "{op: test, path: /a, value: null}", "{\"a\":null}"),
      (#"{"1":0,"-":0}"#, "{op: remove, path: /1}, {op: replace, path: /-, value: 1}", "{\"-\":1}"),
      ("{\"a\":1}", "{op: remove, path: /z, if-missing: skip}", "{\"a\":1}"),
      ("{\"a\":1}", "{op: move, from: /z, path: /a, if-missing: skip}", "{\"a\":1}"),
      (#"{"a":1,"b":2}"#, "{op: move, from: /a, path: /b, if-exists: keep}", #"{"a":1,"b":2}"#),
      ("[1]", "{op: add, path: /0, value: 2, if-exists: fail}", "[2,1]"),
    ])
  func verbs(_ before: String, _ steps: String, _ after: String) throws {
    #expect(try patched(before, steps) == after)
  }

  @Test(
    arguments: [
      ("{\"a\":1}", "{op: remove, path: /z}", "remove in `a.json`: `/z` does not exist"),
      ("{\"a\":1}", "{op: replace, path: /z, value: 1}", "`/z` does not exist"),
      ("{\"a\":1}", "{op: add, path: /y/z, value: 1}", "`/y` does not exist"),
      ("{\"a\":1}", "{op: add, path: /a/z, value: 1}", "`z` of `/a/z` leads into a number"),
      ("[1]", "{op: add, path: /3, value: 1}", "`/3` is beyond the array's end"),
      ("[1]", "{op: add, path: /01, value: 1}", "`01` of `/01` is not an index of an array"),
      ("[1]", "{op: remove, path: /-}", "`/-` does not exist"),
      ("[1]", "{op: remove, path: /1}", "`/1` does not exist"),
      ("[1]", "{op: remove, path: /99999999999999999999}", "is not an index"),
      ("[1]", "{op: remove, path: ''}", "the whole value cannot be removed"),
      ("[1]", "{op: test, path: /0, value: 2}", "`/0` is the integer 1, not the integer 2"),
      ("[1]", "{op: test, path: /0, value: '1'}", "`/0` is the integer 1, not the text `1`"),
      (#"{"token":"hunter2"}"#, "{op: test, path: /token, value: x}", "`/token` is a string (secret,"),
      ("[1]", "{op: test, path: /5, value: 1}", "`/5` is absent, not the integer 1"),
      ("{\"a\":1}", "{op: add, path: /a, value: 2, if-exists: fail}", "`/a` exists already"),
      ("{\"a\":1}", "{op: copy, from: /z, path: /b}", "`/z` does not exist"),
      ("{\"a\":1}", "{op: add, path: /b, value: !date 2026-11-21}", "JSON cannot represent a date"),
      ("{\"a\":1}", "{op: add, path: /b, value: .nan}", "JSON has no number `.nan`"),
      ("{}", "{path: /a}", "needs `op`, one of add, remove"),
      ("{}", "{op: ad, path: /a, value: 1}", "did you mean `add`?"),
      ("{}", "{op: add, path: /a}", "needs the key `value`"),
      ("{}", "{op: move, path: /a}", "needs the key `from`"),
      ("{}", "{op: remove, path: /a, value: 1}", "`remove` takes no `value`"),
      ("{}", "{op: add, value: 1}", "needs the key `path`"),
      ("{}", "{op: remove, path: a}", "`a` is not a JSON pointer: it starts with `/`"),
      ("{}", "{op: remove, path: /a~2}", "`~` is followed by 0 (a tilde) or 1 (a slash)"),
      ("{}", "{op: move, from: /a, path: /a/b}", "`/a` cannot be moved into itself"),
      ("{}", "{op: add, path: /a, value: 1, if-missing: skip}", "`add` takes no `if-missing`"),
      ("{}", "{op: remove, path: /a, if-exists: keep}", "`remove` takes no `if-exists`"),
      ("{}", "{op: add, pth: /a, value: 1}", "did you mean `path`?"),
    ])
  func failing(_ before: String, _ steps: String, _ message: String) throws {
    let error = failure { try patched(before, steps) }.text
    #expect(error.contains(message) && error.contains("test.yaml:1:"), "\(error)")
    #expect(!error.contains("hunter2"))
  }

  @Test func dictionariesKeepTheirTypes() throws {
    let half = PropertyListValue.date(.init(timeIntervalSinceReferenceDate: 0.5))
    try lab.set(["state": .dictionary(["when": half, "data": .data([1]), "one": 1, "r": .single(0.5)])])
    let steps = """
        - defaults.patch:
            key: state
            patch:
              - {op: test, path: /one, value: 1}
              - {op: move, from: /when, path: /created}
              - {op: add, path: /list, value: [!data AAEC, !date 2026-11-21T10:00:00.5Z, true, 1, 1.0]}
      """
    let state = try lab.tried(steps) { stage, _ throws in try stage.settings()?["state"] }
    guard case .dictionary(let after)? = state, case .array(let list)? = after["list"] else {
      Issue.record("\(String(describing: state))")
      return
    }
    #expect(after["created"] == half && after["when"] == nil)
    #expect(after["data"] == .data([1]) && after["r"] == .single(0.5))
    #expect(list.count == 5 && list[0] == .data([0, 1, 2]) && list[3] == 1 && list[4] == .real(1))
    // Bool is not Int is not Real.
    for value in ["true", "1.0", "'1'"] {
      let step = "  - defaults.patch: {key: state, patch: [{op: test, path: /one, value: \(value)}]}\n"
      lab.expectFailing(step, "`/one` is the integer 1, not")
    }
    // A secret under any of its names.
    try lab.set(["authToken": ["value": "hunter2"]])
    let secret = lab.failing(
      "  - defaults.patch: {key: authToken, patch: [{op: test, path: /value, value: x}]}\n")
    #expect(secret.contains("`/value` is a string (secret, 7 characters, #") && !secret.contains("hunter2"))
    try lab.set(["state": [:]])
    lab.expectFailing(
      "defaults.patch: {key: state, patch: [{op: add, path: /a, value: null}]}", "a setting cannot be null",
      start: "0001_test.yaml:2:")
  }

  @Test func documentsInTextAndData() throws {
    let list = try PropertyListFile(root: ["n": 1]).encoded()
    try lab.set([
      "text": "{ \"z\" : 1.00, \"a\" : \"\\u00e9\" }", "data": .data(Array("{\"n\":1}\n".utf8)),
      "list": .data(list), "array": [1, 2], "number": 7, "plain": "hello",
    ])
    let steps = """
        - defaults.patch: {key: text, patch: [{op: add, path: /n, value: null}]}
        - defaults.patch: {key: data, patch: [{op: replace, path: /n, value: 2}]}
        - defaults.patch: {key: list, patch: [{op: replace, path: /n, value: !date 2026-11-21}]}
        - defaults.patch: {key: array, patch: [{op: remove, path: /0}]}
        - defaults.patch: {key: absent, patch: [{op: remove, path: /0}]}
      """
    let after = try #require(
      try lab.tried(steps) { stage, notes throws in
        #expect(notes.count == 1 && notes[0].hasSuffix("`absent` does not exist: skipped"))
        return try stage.settings()
      })
    #expect(after["text"] == "{ \"z\" : 1.00, \"a\" : \"\\u00e9\", \"n\" : null }")
    #expect(after["data"] == .data(Array("{\"n\":2}\n".utf8)))
    #expect(after["array"] == [2])
    if case .data(let bytes)? = after["list"] {
      #expect(try PropertyListFile(bytes: bytes).root["n"]?.typeName == "date")
    }
    for (key, message) in [
      ("number", "the setting `number` is an integer: neither a dictionary, nor an array, nor JSON"),
      ("plain", "the setting `plain`, a string: not valid JSON: line 1, column 1"),
      ("absent", "the setting `absent` does not exist"),
    ] {
      let step = "  - defaults.patch: {key: \(key), patch: [{op: remove, path: /0}], if-missing: fail}\n"
      lab.expectFailing(step, message)
    }
  }

  @Test func filesKeepTheirFormat() throws {
    let values: PropertyListDictionary = ["list": [1], "d": .data([1])]
    let xml = try PropertyListFile(format: .xml, root: values).encoded()
    try lab.write("Documents/x.plist", String(decoding: xml, as: UTF8.self))
    try lab.write("Documents/b.plist", settings: values)
    let patch = "patch: [{op: add, path: /list/-, value: !date 2026-11-21T10:00:00.5Z}]"
    let steps = """
        - files.patch: {path: Documents/x.plist, \(patch)}
        - files.patch: {path: Documents/b.plist, \(patch)}
        - files.patch: {path: Documents/none.json, \(patch)}
      """
    try lab.tried(steps) { stage, notes throws in
      #expect(notes.count == 2 && notes[0].contains("the file is XML, which keeps whole seconds only"))
      #expect(notes[1].hasSuffix("`Documents/none.json` does not exist: skipped"))
      #expect(try stage.text("Documents/x.plist")?.hasPrefix("<?xml") == true)
      #expect(try stage.text("Documents/b.plist")?.hasPrefix("bplist00") == true)
    }
    // An array on top is no settings file, and a property list all the same.
    let list = "<plist version=\"1.0\"><array><true/></array></plist>"
    try lab.write("Documents/x.plist", list)
    let step = "  - files.patch: {path: Documents/x.plist, patch: [{op: remove, path: /0}]}\n"
    #expect(
      try lab.tried(step) { stage, _ throws in try stage.text("Documents/x.plist") }?.contains("<array/>")
        == true)
  }

  @Test func whatCannotBeChanged() throws {
    try lab.write("Documents/cut.json", "{\"a\":1")
    try lab.write("Documents/cut.plist", "<plist>")
    for (path, message) in [
      ("Library/Application Support/.drydock/history.json", "is where Drydock keeps its history"),
      ("a.json, if-missing: fail", "`a.json` is not in the container"), ("Documents", "not a regular file"),
      ("Documents/cut.json", "Documents/cut.json: not valid JSON: line 1, column 7: unexpected end of input"),
      ("Documents/cut.plist", "Documents/cut.plist: the XML property list is corrupt"),
    ] {
      lab.expectFailing(
        "files.patch: {path: \(path), patch: [{op: remove, path: /a}]}", message,
        start: "0001_test.yaml:2:5: files.patch: ")
    }
  }

  private static let file: ContainerPath = "Documents/a.json"

  /// Patches a JSON file, writes what the app writes then, and takes the patch back.
  private func thereAndBack(
    _ before: String, _ steps: String, app: String? = nil
  ) throws -> (text: String?, notes: [String]) {
    try lab.write(Self.file, before)
    let stepLab = try lab.applied("files.patch: {path: \(Self.file), patch: [\(steps)]}")
    if let app { try stepLab.write(Self.file, app) }
    let notes = try stepLab.revert()
    return (try stepLab.stage.text(Self.file), notes)
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

  @Test func settingsGoBack() throws {
    let before: PropertyListDictionary = ["d": ["a": 1, "b": [1, 2]], "t": "{\"a\" : 1 }", "x": 1]
    try lab.set(before)
    for key in ["d", "t"] {
      let stepLab = try lab.applied(
        "defaults.patch: {key: \(key), patch: [{op: move, from: /a, path: /z}, {op: add, path: /n, value: 2}]}"
      )
      #expect(try stepLab.stage.settings() != before)
      #expect(throws: StepFailure.self) { try stepLab.revert(withPriorValues: false) }
      #expect(try stepLab.revert() == [])
      #expect(try stepLab.stage.settings() == before)
    }
    // The app has written into the same dictionary since.
    let stepLab = try lab.applied("defaults.patch: {key: d, patch: [{op: move, from: /a, path: /z}]}")
    try stepLab.set(["d": ["z": 5, "b": [1, 2], "new": true], "x": 2])
    #expect(try stepLab.revert() == [])
    #expect(try stepLab.stage.settings() == ["d": ["a": 5, "b": [1, 2], "new": true], "x": 2])
    try stepLab.set(["x": 2])
    #expect(try stepLab.revert() == ["`d` does not exist: skipped"])
  }
}
