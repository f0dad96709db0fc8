import Formats
import TestSupport
import Testing

@Suite struct YAMLReaderTests {
  private enum Mode: String, CaseIterable { case fail, keep, replace }

  private func reader(_ text: String, _ keys: [String]) throws -> YAMLReader {
    let root = try #require(try YAMLDocument(text: text, file: "r.yaml").root)
    return try YAMLReader(root, what: "the thing", keys: keys)
  }

  @Test func unknownKeysNameTheNearest() {
    expectError(nil, "r.yaml:2:1: unknown key `kyes` in the thing; did you mean `keys`?") {
      try reader("good: 1\nkyes: 2\n", ["keys", "good"])
    }
    expectError(nil, "r.yaml:1:1: unknown key `zzz` in the thing; known here: good, keys") {
      try reader("zzz: 2\n", ["keys", "good"])
    }
    expectError(nil, "r.yaml:1:1: unknown key `true`") { try reader("true: 2\n", ["keys"]) }
    expectError(nil, "r.yaml:1:1: the thing is a mapping (`key: value`), not a list") {
      try reader("- 2\n", ["keys"])
    }
  }

  @Test func typedValues() throws {
    let keys = ["t", "b", "i", "l", "m", "absent"]
    let reader = try reader("t: x\nb: false\ni: 3\nl: [a, b]\nm: keep\n", keys)
    #expect(try reader.text("t") == "x")
    #expect(try reader.boolean("b") == false)
    #expect(try reader.integer("i") == 3)
    #expect(try reader.texts("l") == ["a", "b"])
    #expect(try reader.texts("t") == ["x"])
    #expect(try reader.choice("m", of: Mode.self) == .keep)
    #expect(try reader.text("absent") == nil)
  }

  @Test func wrongTypesSayWhatToDo() throws {
    let reader = try reader("a: yes\nb: 12\nc: replac\n", ["a", "b", "c", "d"])
    expectError(nil, "r.yaml:1:4: `a` is true or false, not the text `yes`: write true") {
      try reader.boolean("a")
    }
    expectError(nil, "r.yaml:2:4: `b` is a text, not the integer 12: quote it") { try reader.text("b") }
    expectError(
      nil,
      "r.yaml:3:4: `c` of the thing is one of fail, keep, replace, not the text `replac`; "
        + "did you mean `replace`?"
    ) { try reader.choice("c", of: Mode.self) }
    expectError(nil, "r.yaml:1:1: the thing needs the key `d`") { try reader.required("d") }
  }

  @Test func nearestWords() {
    let words = ["defaults.set", "defaults.rename", "files.move", "sql"]
    #expect(NearestWord.to("defaults.renmae", among: words) == "defaults.rename")
    #expect(NearestWord.to("file.move", among: words) == "files.move")
    #expect(NearestWord.to("SQL", among: words) == "sql")
    #expect(NearestWord.to("vault.rename", among: words) == nil)
  }
}
