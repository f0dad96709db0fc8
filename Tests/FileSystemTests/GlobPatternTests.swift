import Testing

@testable import FileSystem

/// What `GitIgnoreTests` does not compare with git.
@Suite struct GlobPatternTests {
  @Test func malformedPatternsMatchNothing() {
    #expect(GlobPattern.isPattern("a[b]") && GlobPattern.isPattern("*") && GlobPattern.isPattern("a\\*?"))
    #expect(!GlobPattern.isPattern("a[1") && !GlobPattern.isPattern("a") && !GlobPattern.isPattern("*\\"))
  }

  @Test func aWildcardNeedsAName() {
    #expect(!GlobPattern("?").matches(.root))
  }

  @Test func manyStarsTakeLinearTime() throws {
    let name = String(repeating: "a", count: 120)
    #expect(try !GlobPattern("a*a*a*a*a*a*a*a*a*b").matches(ContainerPath(name)))
    let deep = try ContainerPath(Array(repeating: "a", count: 40).joined(separator: "/"))
    #expect(!GlobPattern("**/a/**/a/**/a/**/a/**/a/**/a/**/b").matches(deep))
  }
}
