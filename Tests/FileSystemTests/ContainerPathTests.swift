import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import FileSystem

@Suite struct ContainerPathTests {
  @Test(arguments: ["/", "/a", "a//b", "a/./b", ".", "..", "a/..", "a/../b", "a\0b", "//", "a//", "./"])
  func refuses(_ text: String) {
    do {
      let path = try ContainerPath(text)
      Issue.record("\(text.debugDescription) became \(path)")
    } catch let error as DrydockError {
      #expect(error.code == .badPath)
      #expect(error.message.contains("relative to the root"))
    } catch {
      Issue.record("\(error)")
    }
  }

  @Test func parts() throws {
    let path = try ContainerPath(String("Library/Application Support/x.sqlite/"))
    #expect(path == "Library/Application Support/x.sqlite")
    #expect(path.nameString == "x.sqlite" && path.parent == "Library/Application Support")
    #expect(path.ancestors == ["Library/Application Support", "Library", .root])
    #expect(try ContainerPath(bytes: []) == .root && ContainerPath.root.parent == .root)
    #expect(ContainerPath.root.ancestors.isEmpty && ContainerPath.root.description == ".")
    #expect(path.isInside("Library") && path.isInside(.root) && !path.isInside(path))
    #expect(!ContainerPath("Libraryx/a").isInside("Library") && !ContainerPath.root.isInside(.root))
    #expect(path.rebased(from: "Library", to: "L/M") == "L/M/Application Support/x.sqlite")
    #expect(path.rebased(from: .root, to: "R") == "R/Library/Application Support/x.sqlite")
    #expect(path.rebased(from: path, to: "R") == "R")
    #expect(ContainerPath("a/b").rebased(from: "a", to: .root) == "b")
    #expect(path.withSuffix("-wal").nameString == "x.sqlite-wal")
    #expect(throws: DrydockError.self) { try path.appending("..") }
    #expect(throws: DrydockError.self) { try path.appending("a//b") }
  }

  @Test func descriptionNeverControlsATerminal() throws {
    #expect(ContainerPath(name: [0x61, 0xff, 0x1b]).description == "a\\xff\\x1b")
    #expect(!ContainerPath("a\u{9b}2J").description.unicodeScalars.contains { $0.value == 0x9b })
    #expect(!ContainerPath("a\u{7f}").description.unicodeScalars.contains { $0.value == 0x7f })
    #expect(ContainerPath("Grüße 📝").description == "Grüße 📝")
  }

  /// Random paths over the bytes that make trouble.
  private func paths(_ count: Int, seed: UInt64) throws -> [ContainerPath] {
    var random = SeededRandom(seed: seed)
    let alphabet: [UInt8] = [0x01, 0x20, 0x2d, 0x2e, 0x30, 0x61, 0x62, 0xc3, 0xbc, 0xff]
    return try (0..<count).map { _ in
      let components = (0..<Int.random(in: 1...4, using: &random)).map { _ in
        (0..<Int.random(in: 1...3, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0x61
        }
      }
      let named = components.map { $0.allSatisfy { $0 == 0x2e } ? $0 + [0x61] : $0 }
      return try ContainerPath(bytes: named.joined(separator: [0x2f]))
    }
  }

  @Test func orderIsTotalAndPutsContentsRightAfterTheirDirectory() throws {
    let all = try paths(150, seed: 11)
    for a in all.prefix(60) {
      for b in all {
        #expect([a < b, b < a, a == b].filter { $0 }.count == 1)
        if b.isInside(a) { #expect(a < b) }
        // Component by component is the same order.
        let components = a.components.lexicographicallyPrecedes(b.components) {
          $0.lexicographicallyPrecedes($1)
        }
        #expect((a < b) == components, "\(a) \(b)")
      }
    }
    // Nothing sorts between a directory and what is in it.
    let sorted = Set(all + all.flatMap(\.ancestors)).sorted()
    for (index, path) in sorted.enumerated() {
      let below = sorted[(index + 1)...].prefix { $0.isInside(path) }.count
      #expect(below == sorted.filter { $0.isInside(path) }.count)
    }
  }

  @Test func roundTripsThroughBytesAndJSON() throws {
    for path in try paths(300, seed: 5) + [.root, "Grüße/日本", ContainerPath("e\u{301}/\u{e9}")] {
      #expect(try ContainerPath(bytes: path.bytes) == path)
      #expect(path.isRoot || path.parent.appending(name: path.name) == path)
      #expect(try JSONDecoder().decode([ContainerPath].self, from: JSONEncoder().encode([path])) == [path])
    }
    for bad in [#"["../x"]"#, #"["/x"]"#, #"[{"bytes":[46,46]}]"#, #"[{"bytes":[47]}]"#] {
      #expect(throws: (any Error).self) {
        try JSONDecoder().decode([ContainerPath].self, from: Data(bad.utf8))
      }
    }
  }
}
