import ArchiveFile
import TestSupport
import Testing

@Suite struct AppleDoubleTests {
  /// As `copyfile` writes it: Finder information with the attributes behind it, and the resource fork.
  private func double(
    _ attributes: [(name: String, value: [UInt8])], finder: [UInt8] = [UInt8](repeating: 0, count: 32),
    fork: [UInt8] = []
  ) -> [UInt8] {
    let number = { (value: Int, size: Int) in
      (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    let entrySize = { (name: String) in (11 + name.utf8.count + 1 + 3) / 4 * 4 }
    let start = 50 + 34 + 36 + attributes.reduce(0) { $0 + entrySize($1.name) }
    var (entries, values): ([UInt8], [UInt8]) = ([], [])
    for (name, value) in attributes {
      var entry = number(start + values.count, 4) + number(value.count, 4) + number(0, 2)
      entry += number(name.utf8.count + 1, 1) + Array(name.utf8)
      entries += entry + [UInt8](repeating: 0, count: entrySize(name) - entry.count)
      values += value
    }
    let header =
      Array("ATTR".utf8) + number(0, 4) + number(start + values.count, 4) + number(start, 4)
      + number(values.count, 4) + number(0, 12) + number(0, 2) + number(attributes.count, 2)
    let information = finder + [0, 0] + header + entries + values
    return number(0x0005_1607, 4) + number(0x0002_0000, 4) + Array("Mac OS X        ".utf8) + number(2, 2)
      + number(9, 4) + number(50, 4) + number(information.count, 4) + number(2, 4)
      + number(50 + information.count, 4) + number(fork.count, 4) + information + fork
  }

  private var sample: [UInt8] {
    double([
      ("com.apple.metadata:com_apple_backup_excludeItem", Array("com.apple.backupd".utf8)), ("a", []),
      ("bc", [0, 1]),
    ])
  }

  @Test func givesEveryAttribute() throws {
    let attributes = try #require(AppleDouble.attributes(in: sample))
    #expect(attributes.map(\.name) == ["com.apple.metadata:com_apple_backup_excludeItem", "a", "bc"])
    #expect(attributes.map(\.value) == [Array("com.apple.backupd".utf8), [], [0, 1]])
    #expect(AppleDouble.attributes(in: double([])) == [])
  }

  @Test func finderInformationAndResourceForkAreAttributes() throws {
    let finder = Array("TEXTttxt".utf8) + [UInt8](repeating: 0, count: 24)
    let attributes = try #require(
      AppleDouble.attributes(in: double([("a", [1])], finder: finder, fork: [2, 3])))
    #expect(attributes.map(\.name) == ["com.apple.FinderInfo", "a", "com.apple.ResourceFork"])
    #expect(attributes.map(\.value) == [finder, [1], [2, 3]])
    // What macOS writes for a file without a fork.
    let none = [UInt8](repeating: 0, count: 16) + Array("This resource fork intentionally left blank   ".utf8)
    #expect(AppleDouble.attributes(in: double([], fork: none + [UInt8](repeating: 0, count: 224))) == [])
  }

  @Test func valuesThatOverlapDoNotExpandIt() throws {
    var bytes = double((0..<9).map { ("\($0)", []) })
    for entry in 0..<9 {
      // The whole file, for each of them.
      let place = 120 + 16 * entry
      bytes.replaceSubrange(place..<place + 8, with: [0, 0, 0, 0, 0, 0, 1, 0])
    }
    #expect(bytes.count == 264)
    #expect(AppleDouble.attributes(in: bytes)?.count == 1)
  }

  @Test func anythingElseIsNoneOrHasFewer() {
    #expect(AppleDouble.attributes(in: Array("a file of the app".utf8)) == nil)
    for length in sample.indices {
      #expect(AppleDouble.attributes(in: Array(sample[..<length]))?.count ?? 0 <= 3)
    }
    var random = SeededRandom(seed: 3)
    for place in sample.indices {
      var damaged = sample
      damaged[place] = UInt8.random(in: 0...255, using: &random)
      let attributes = AppleDouble.attributes(in: damaged) ?? []
      #expect(attributes.allSatisfy { !$0.name.isEmpty && $0.value.count <= damaged.count })
    }
  }
}
