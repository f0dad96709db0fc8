import TestSupport
import Testing

@testable import FileSystem

@Suite struct ManyPathsTests {
  /// Names around the separator, which comes before all others.
  private static let names = ["a", "a!", "a-", "a0", "b", "\u{1}", "ab", "é"]

  private static func paths(_ random: inout SeededRandom) throws -> [ContainerPath] {
    try (0..<400).map { _ in
      let parts = (0..<Int.random(in: 0...4, using: &random)).compactMap { _ in
        names.randomElement(using: &random)
      }
      return try ContainerPath(parts.joined(separator: "/"))
    }
  }

  @Test(arguments: 1...4) func aTableIsADictionary(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var table = PathTable<UInt32>()
    var expected: [ContainerPath: UInt32] = [:]
    for (number, path) in try Self.paths(&random).enumerated() {
      let value = Int.random(in: 0..<4, using: &random) == 0 ? nil : UInt32(number)
      (table[path], expected[path]) = (value, value)
    }
    for path in try Self.paths(&random) + Array(expected.keys) { #expect(table[path] == expected[path]) }
    let sorted = expected.sorted { $0.key < $1.key }
    #expect(table.map(\.path) == sorted.map(\.key) && table.map(\.value) == sorted.map(\.value))
    #expect(table.count == expected.count && table.isEmpty == expected.isEmpty)
    var visited: [ContainerPath: UInt32] = [:]
    table.forEachPosition { position, value in
      #expect(table[position] == value)
      visited[table.path(at: position)] = value
    }
    #expect(visited == expected)
    for directory in try Self.paths(&random) {
      let children = sorted.map(\.key).filter { !$0.isRoot && $0.parent == directory }
      #expect(table.children(of: directory) == children)
      #expect(table.hasChildren(directory) == !children.isEmpty)
    }
  }

  @Test func aListIsWhatWasAdded() throws {
    var random = SeededRandom(seed: 7)
    let paths = try Self.paths(&random)
    var list = PathList(paths)
    #expect(Array(list) == paths && list == PathList(paths) && list != PathList(paths.dropLast()))
    list.sort()
    #expect(Array(list) == paths.sorted())
    let others = try Self.paths(&random).sorted()
    list.merge(PathList(others))
    #expect(Array(list) == (paths + others).sorted())
    for part in [PathList(), PathList(others)] {
      var merged = part
      merged.merge(PathList())
      #expect(merged == part)
      merged = PathList()
      merged.merge(part)
      #expect(merged == part)
    }
  }
}
