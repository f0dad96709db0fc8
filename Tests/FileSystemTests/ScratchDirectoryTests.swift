import Foundation
import TestSupport
import Testing

@testable import FileSystem

/// Scratch directories in a place that several machines share: who may remove which.
@Suite struct ScratchDirectoryTests {
  @Test func directoriesOfOtherMachinesAreKept() throws {
    try TemporaryDirectory.with { folder in
      let base = try Directory(folder.path)
      let here = ScratchOwner.current
      #expect(here.host.count == 8 && here.boot.count == 8)
      let random = String(repeating: "0", count: 32)
      let names = [
        "own": "s-\(here)-\(random)", "ended": "s-\(here.host)-00000000-\(random)",
        "foreign": "s-00000000-00000000-\(random)", "old": "s-00000001-00000000-\(random)",
        "unknown": "s-\(random)",
      ]
      for name in names.values { try base.createDirectories(ContainerPath(name + "/in")) }
      let month = Int64((Date().timeIntervalSince1970 - 31 * 24 * 3600) * 1e9)
      try base.setModified(month, of: ContainerPath(#require(names["old"])))
      try ScratchDirectory.with("s-", in: base) { scratch in
        #expect(scratch.path.contains("/s-\(here)-"))
        // One that is at work on the same machine keeps its own.
        try ScratchDirectory.with("s-", in: base) { _ in _ = try scratch.status() }
        let names = try base.names().map { String(decoding: $0, as: UTF8.self) }
        #expect(names.contains { scratch.path.hasSuffix("/" + $0) })
      }
      let left = try base.names().map { String(decoding: $0, as: UTF8.self) }
      #expect(left == [names["foreign"], names["unknown"]].compactMap(\.self).sorted())
    }
  }
}
