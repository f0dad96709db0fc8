import Testing

@testable import FileSystem

@Suite struct GlobPatternTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var pattern: String, path: String, isDirectory: Bool, matches: Bool
    init(_ pattern: String, _ path: String, _ matches: Bool, directory: Bool = false) {
      (self.pattern, self.path, self.matches, isDirectory) = (pattern, path, matches, directory)
    }
    var testDescription: String { "\(pattern) \(matches ? "matches" : "does not match") \(path)" }
  }

  static let cases = [
    Case("*.part", "a.part", true), Case("*.part", "x/y/a.part", true), Case("*.part", "a.part/b", false),
    Case("*.part", ".part", true), Case("/a", "a", true), Case("/a", "b/a", false), Case("a/b", "a/b", true),
    Case("a/b", "x/a/b", false), Case("**/b", "b", true), Case("**/b", "a/c/b", true),
    Case("a/**", "a", false), Case("a/**", "a/b/c", true), Case("a/**/b", "a/b", true),
    Case("a/**/b", "a/x/y/b", true), Case("a/**/b", "a/x/y/bb", false), Case("a*", "abc", true),
    Case("a*c", "abbc", true), Case("a*c", "ab/c", false), Case("a?c", "abc", true),
    Case("a?c", "a/c", false),
    Case("?", "", false), Case("[a-c]x", "bx", true), Case("[a-c]x", "dx", false),
    Case("[!a-c]x", "dx", true),
    Case("[^a-c]x", "ax", false), Case("[]]", "]", true), Case("[a-]", "-", true), Case("[z-a]", "b", false),
    Case("[abc", "[abc", false), Case("a[", "a[", false), Case("\\[abc", "[abc", true),
    Case("a\\*", "a*", true), Case("a\\*", "ab", false), Case("a\\", "a", false), Case("[\\]x]", "]", true),
    Case("[[:digit:]]", "7", true), Case("[[:digit:]]", "x", false), Case("[[:nope:]]", "n", false),
    Case("a//b", "a/b", false), Case("a[!/]b", "axb", true), Case("a/***/b", "a/x/b", true),
    Case("a/b**", "a/bc/d", false), Case("tmp/", "tmp", false),
    Case("tmp/", "tmp", true, directory: true), Case("tmp/", "x/tmp", true, directory: true),
    Case("", "a", false), Case("/", "a", false), Case("**", "a/b", true), Case("*", "a/b", true),
    Case("Documents/**/*.part", "Documents/a.part", true), Case("Grüße*", "Grüße.txt", true),
    Case("a.b", "aXb", false), Case("*.*", "ab", false), Case("a**b", "aXXb", true),
  ]

  @Test(arguments: cases) func table(_ row: Case) throws {
    let pattern = GlobPattern(row.pattern)
    #expect(pattern.matches(try ContainerPath(row.path), isDirectory: row.isDirectory) == row.matches)
    #expect(pattern.description == row.pattern)
  }

  @Test func malformedPatternsMatchNothing() {
    #expect(GlobPattern.isPattern("a[b]") && GlobPattern.isPattern("*") && GlobPattern.isPattern("a\\*?"))
    #expect(!GlobPattern.isPattern("a[1") && !GlobPattern.isPattern("a") && !GlobPattern.isPattern("*\\"))
  }

  @Test func manyStarsTakeLinearTime() throws {
    let name = String(repeating: "a", count: 120)
    #expect(try !GlobPattern("a*a*a*a*a*a*a*a*a*b").matches(ContainerPath(name)))
    let deep = try ContainerPath(Array(repeating: "a", count: 40).joined(separator: "/"))
    #expect(!GlobPattern("**/a/**/a/**/a/**/a/**/a/**/a/**/b").matches(deep))
  }
}
