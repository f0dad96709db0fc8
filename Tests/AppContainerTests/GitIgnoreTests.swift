import TestSupport
import Testing

@testable import AppContainer
@testable import FileSystem

/// Patterns under `exclude:` mean what the lines of a `.gitignore` mean: git itself is asked.
@Suite struct GitIgnoreTests {
  /// What a tree's paths are decided to be, going down from the root as a scan does.
  private func excluded(_ tree: [(path: ContainerPath, isDirectory: Bool)], by list: PatternList) -> Set<
    ContainerPath
  > {
    var excluded: Set<ContainerPath> = []
    for (path, isDirectory) in tree {
      if excluded.contains(path.parent) {
        excluded.insert(path)
      } else if list.contains(path, isDirectory: isDirectory) {
        excluded.insert(path)
      }
    }
    return excluded
  }

  /// A repository with every combination of odd names, two levels deep.
  private func repository(_ folder: TemporaryDirectory) throws -> [(path: ContainerPath, isDirectory: Bool)] {
    try Command.succeed(try Tools.system("git"), ["init", "-q", folder("r")])
    let root = try Directory(folder("r"))
    let names = [
      "a", "b", "ab", "a.b", "a*", "!a", "#a", "a ", "a\\", "[a]", ".a", "a-b", "A", "7", "]", "ü", "a?b",
      "b.part",
    ]
    var tree: [(path: ContainerPath, isDirectory: Bool)] = []
    for name in names {
      try root.create(ContainerPath(name + "f"), [])
      tree.append((try ContainerPath(name + "f"), false))
      let top = try ContainerPath(name)
      try root.createDirectory(top)
      tree.append((top, true))
      for inner in ["a", "ab", "b.part", "7", " "] {
        try root.create(top.appending(inner), [])
        tree.append((try top.appending(inner), false))
      }
      let deep = try top.appending("b")
      try root.createDirectory(deep)
      tree.append((deep, true))
      for inner in ["a", "[a]", "ab"] {
        try root.create(deep.appending(inner), [])
        tree.append((try deep.appending(inner), false))
      }
    }
    return tree
  }

  private func ask(
    _ folder: TemporaryDirectory, _ lines: [String], _ tree: [(path: ContainerPath, isDirectory: Bool)]
  ) throws -> Set<ContainerPath> {
    let text = lines.joined(separator: "\n") + "\n"
    try RawFiles.write(Array(text.utf8), to: Array(folder("r/.git/info/exclude").utf8))
    let asked = try Command.run(
      try Tools.system("git"), ["-C", folder("r"), "check-ignore", "--no-index", "-z", "--stdin"],
      input: tree.flatMap { $0.path.bytes + [0] })
    guard asked.exitCode <= 1 else { throw SystemFailure("git: \(asked)") }
    return Set(try asked.outputBytes.split(separator: 0).map { try ContainerPath(bytes: $0) })
  }

  @Test func knownLinesMeanTheSameToGit() throws {
    let lists: [[String]] = [
      ["a"], ["/a"], ["a/"], ["*.part", "!b.part"], ["*", "!a"], ["a/*", "!a/b"], ["/*", "!/a"], ["**/b"],
      ["a/**"], ["a/**/b"], ["**"], ["**/"], ["a**"], ["a/**b"], ["\\!a"], ["\\#a"], ["#a"], ["!a"], ["a "],
      ["a\\ "], ["a \\ "], ["a\\\\"], ["a\\"], ["[a]"], ["\\[a]"], ["[[]a]"], ["[!a]*"], ["[^a]"], ["[]]"],
      ["[]-a]"], ["[a-]"], ["[a-"], ["a["], ["[[:alpha:]]"], ["[[:digit:]a]"], ["[[:x:]]"], ["[[:alpha]"],
      ["a\\*"], ["a\\?b"], ["a?b"], [".*"], ["ü"], ["ü*"], ["/"], ["//a"], ["a//"], ["a//b"], ["a\\/b"],
      ["a/b/"], ["*/b"], ["*/*/a"], ["***"], ["a/***/a"], ["*", "!*/", "!a"], ["a", "!a/b", "a/b/ab"],
      ["/**/a"], ["[a/]b"], ["a[!/]b"], ["[\\]]"], ["[\\]a]"], ["[a\\-z]"], ["[--7]"], ["[z-a]"], ["[z-a]*"],
      ["[b-ac]"], ["!", "a"], [" a"],
    ]
    let folder = try TemporaryDirectory()
    let tree = try repository(folder)
    for lines in lists {
      let expected = try ask(folder, lines, tree)
      let actual = excluded(tree, by: PatternList(lines))
      #expect(
        expected.symmetricDifference(actual).isEmpty,
        "\(lines): \(expected.symmetricDifference(actual).sorted())")
    }
  }

  /// Git compares the plain text before the first special character by itself, and takes `**` behind that text for
  /// one that starts the pattern: `ab**/f` matches `abf`, against git's own manual. Such lines are left out.
  private func isQuirk(_ line: String) -> Bool {
    let text = line.hasPrefix("!") ? line.dropFirst() : line[...]
    let plain = text.prefix { !"*?[\\".contains($0) }
    return text.dropFirst(plain.count).hasPrefix("**") && !plain.isEmpty && !plain.hasSuffix("/")
  }

  @Test func randomListsMeanTheSameToGit() throws {
    let pieces = [
      "a", "b", "ab", "*", "**", "?", "/", "/", "[a-c]", "[!a]", "[", "]", "\\", " ", "!", ".part", "7", "-",
      "**/",
      "/**", "[[:alnum:]]", "\\*", "#", ".",
    ]
    let folder = try TemporaryDirectory()
    let tree = try repository(folder)
    var random = SeededRandom(seed: 20_261_121)
    for _ in 0..<(TestExtent.isFull ? 300 : 60) {
      let lines = (0..<Int.random(in: 1...4, using: &random)).map { _ in
        (0..<Int.random(in: 1...5, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
          .joined()
      }
      if lines.contains(where: isQuirk) { continue }
      let expected = try ask(folder, lines, tree)
      let actual = excluded(tree, by: PatternList(lines))
      #expect(
        expected.symmetricDifference(actual).isEmpty,
        "\(lines): \(expected.symmetricDifference(actual).sorted())")
    }
  }

  /// A directory is entered for includes only when something below can match: that must never be missed.
  @Test func whatMatchesBelowADirectoryMayMatchThere() throws {
    let patterns = [
      "a/b/a", "a/*/a", "**/b", "a/**", "a/**/ab", "*.part", "/7/b/[[]a]", "a", "[!b]/b/*", "\\!a/a",
    ]
    let folder = try TemporaryDirectory()
    let tree = try repository(folder)
    for text in patterns {
      let list = PatternList([text])
      for (path, isDirectory) in tree {
        guard list.decisive(for: path, isDirectory: isDirectory) != nil else { continue }
        #expect(path.ancestors.allSatisfy { list.mayMatch(below: $0) }, "\(text): \(path)")
      }
    }
    #expect(!PatternList(["a/b/a"]).mayMatch(below: "b") && !PatternList(["/a"]).mayMatch(below: "a"))
  }
}
