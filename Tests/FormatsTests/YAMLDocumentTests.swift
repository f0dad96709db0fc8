import Formats
import TestSupport
import Testing

@Suite struct YAMLDocumentTests {
  private func parse(_ text: String) throws -> YAMLDocument { try YAMLDocument(text: text, file: "m.yaml") }

  @Test func positionsOfKeysAndValues() throws {
    let root = try #require(try parse("# head\na: 1\nlist:\n  - x\n  - {key: ünï}\n").root?.mapping)
    #expect(root.pairs.map(\.keyPosition.description) == ["m.yaml:2:1", "m.yaml:3:1"])
    let list = try #require(root["list"]?.sequence)
    #expect(list.map(\.position.description) == ["m.yaml:4:5", "m.yaml:5:5"])
    #expect(list[1].mapping?["key"]?.position.description == "m.yaml:5:11")
  }

  @Test func emptyAndCommentsOnly() throws {
    #expect(try parse("").root == nil)
    #expect(try parse("# nothing\n").root == nil)
    #expect(try parse("---\n").root?.isNull == true)
    #expect(try YAMLDocument([0xEF, 0xBB, 0xBF] + Array("a: 1".utf8), file: "b").root?.mapping?["a"] != nil)
  }

  @Test(arguments: [
    ("a: 1\nb: 2\na: 3\n", "m.yaml:1:1: duplicate key `a`"),
    ("a: 1\n\"a\": 2\n", "m.yaml:2:1: duplicate key `a`, first in line 1"),
    ("1: x\n0x1: y\n", "m.yaml:2:1: duplicate key `0x1`"),
    ("a: 1\n---\nb: 2\n", "m.yaml:2:1: a second document starts here"),
    ("a: &x [*x]\n", "m.yaml:1:8: this alias has no anchor before it"),
    ("a: *nowhere\n", "m.yaml:1:4: this alias has no anchor"),
    ("a:\n\t- b\n", "m.yaml:2:1: a tab in the indentation"),
    ("a:\r\n  \t- b\r\n", "m.yaml:2:3: a tab in the indentation"),
    ("a: [1, 2\nb: 3\n", "not valid YAML"),
    ("a: 'open\n", "not valid YAML"),
    ("a: b: c\n", "m.yaml:1:5: not valid YAML"),
    ("[a, b]: c\n", "m.yaml:1:1: a key must be a single value"),
    ("b: &b {x: 1}\na:\n  <<: *b\n", "m.yaml:3:3: merge keys"),
    ("a: \u{1}\n", "m.yaml:1:4: not valid YAML"),
    ("line: 1\r\nb: \u{7}\n", "m.yaml:2:4: not valid YAML"),
  ])
  func refusedWithItsPlace(_ text: String, _ message: String) {
    let error = expectError(nil, message) { try parse(text) }
    #expect(error?.description.hasPrefix("m.yaml:") == true)
  }

  @Test func boolAndTextKeysDiffer() throws {
    let root = try #require(try parse("{true: dark, \"true\": light, 1: one, \"1\": text}").root?.mapping)
    #expect(root.pairs.map(\.key.value) == [.boolean(true), .string("true"), .integer(1), .string("1")])
  }

  @Test func anchorsAreCopied() throws {
    let root = try #require(try parse("a: &x {k: 1}\nb: *x\n").root?.mapping)
    #expect(root["b"]?.mapping?["k"]?.scalar?.value == .integer(1))
  }

  @Test func notUTF8() {
    for (text, place) in [("a: 1\nb: ", "2:4"), ("a: 1\r\nb: ", "2:4"), ("a\r\u{B}\u{2028}b: ", "1:8")] {
      expectError(nil, "m.yaml:\(place): this byte is not UTF-8") {
        try YAMLDocument(Array(text.utf8) + [0xFF], file: "m.yaml")
      }
    }
  }

  @Test func damagedTextNeverCrashes() {
    let text = """
      description: "wörds \\u00e9" # remark
      steps: &s
        - defaults.rename: {keys: {a: b, 'c': !date 2026-11-20}, if-exists: replace}
        - sql: {database: n, up: |
            SELECT 1;
          }
      verify: *s
      data: !!binary >-
        aGk=
      ? key
      : [1, 0x1F, .inf, ~, "x\\n"]

      """
    let bytes = Array(text.utf8)
    let odd = Array("{}[]:,&*!|>%@`'\"#-?\\\t\n\r ~\u{0}\u{FF}".utf8)
    var numbers = SeededRandom(seed: 20_261_121)
    func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }
    for _ in 0..<3000 {
      var damaged = bytes
      for _ in 0...random(4) {
        switch random(3) {
        case 0: damaged[random(damaged.count)] = odd[random(odd.count)]
        case 1: damaged.insert(odd[random(odd.count)], at: random(damaged.count))
        default: damaged.remove(at: random(damaged.count))
        }
      }
      do {
        _ = try YAMLDocument(damaged, file: "f.yaml")
      } catch {
        #expect(String(describing: error).hasPrefix("f.yaml:"))
      }
    }
  }

  @Test func bombsAndDeepNestingAreRejected() {
    var bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in 1...8 {
      let aliases = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
      bomb += "a\(level): &a\(level) [\(aliases)]\n"
    }
    expectError(nil, "more than 200000 values") { try parse(bomb) }
    for depth in [150, 5000] {
      let deep = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      expectError(nil, "nested") { try parse(deep) }
    }
  }
}
