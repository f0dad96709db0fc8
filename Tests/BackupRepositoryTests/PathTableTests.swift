import FileSystem
import TestSupport
import Testing

@testable import BackupRepository

@Suite struct PathTableTests {
  @Test func everyPathIsFoundInItsOrder() throws {
    var random = SeededRandom(seed: 11)
    // Names around the separator, which comes before all others.
    let names = ["a", "a!", "a-", "a0", "b", "\u{1}", "ab", "é"]
    var paths: Set<ContainerPath> = []
    for _ in 0..<400 {
      let parts = (0..<Int.random(in: 1...4, using: &random)).compactMap { _ in
        names.randomElement(using: &random)
      }
      paths.insert(try ContainerPath(parts.joined(separator: "/")))
    }
    let sorted = paths.sorted()
    var table = PathTable<Int>()
    for (index, path) in sorted.enumerated() where index % 2 == 0 { try table.append(path, index) }
    for (index, path) in sorted.enumerated() { #expect(table[path] == (index % 2 == 0 ? index : nil)) }
    #expect(
      table[.root] == nil && table.map(\.path) == stride(from: 0, to: sorted.count, by: 2).map { sorted[$0] })
    #expect(throws: (any Error).self) { try table.append(sorted[0], 0) }
  }
}
