import Foundation
import TestSupport
import Testing

@testable import FileSystem

/// Scratch directories in a place that several machines share: who may remove which.
@Suite struct ScratchDirectoryTests {
  @Test func directoriesOfOtherMachinesAreKept() throws {
    let folder = try TemporaryDirectory()
    let base = try Directory(folder.path)
    let here = MachineIdentity.current
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
    do {
      let scratch = try ScratchDirectory("s-", in: base)
      let path = scratch.directory.path
      #expect(path.contains("/s-\(here)-"))
      // A directory that is in use on the same machine is kept.
      _ = try ScratchDirectory("s-", in: base)
      _ = try scratch.directory.status()
      let present = try base.names().map { String(decoding: $0, as: UTF8.self) }
      #expect(present.contains { path.hasSuffix("/" + $0) })
    }
    let left = try base.names().map { String(decoding: $0, as: UTF8.self) }
    #expect(left == [names["foreign"], names["unknown"]].compactMap(\.self).sorted())
  }
}
