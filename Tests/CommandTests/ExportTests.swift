import Foundation
import TestSupport
import Testing

@Suite("Export") struct ExportTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox(creating: "Notes") }

  @Test(arguments: [false, true])
  func `The same snapshot under a new id, which stock tools open, too`(_ includesExcluded: Bool) throws {
    try sandbox.succeed(
      "snapshot", "Notes", "-o", "A.tar.zst", includesExcluded ? "--include-excluded" : "--json")
    let exported = try sandbox.document("export A.tar.zst -o B.tar.zst")
    #expect(exported["path"].text == sandbox("B.tar.zst"))
    let one = try sandbox.document("show A.tar.zst"), other = try sandbox.document("show B.tar.zst")
    for key in ["snapshot", "entries", "excluded", "skipped"] {
      #expect(one[key].exists && one[key].canonical == other[key].canonical, "\(key)")
    }
    let (header, new) = (one["header"], other["header"])
    #expect(new["exported_from"].text == header["archive"].text)
    #expect(new["archive"].text != header["archive"].text)
    for key in Set(header.keys + new.keys).subtracting(["archive", "exported_from"]) {
      #expect(header[key].canonical == new[key].canonical, "\(key)")
    }

    try sandbox.drydock("verify B.tar.zst --data").expect(output: "every byte")
    let option = includesExcluded ? "--include-excluded" : "--yes"
    try sandbox.succeed("restore", "A.tar.zst", "FromA", option)
    try sandbox.succeed("restore", "B.tar.zst", "FromB", option)
    try sandbox.tree("FromB").expectSame(as: sandbox.tree("FromA"))
    #expect(try sandbox.names("FromB").contains("Documents"))
    let list = {
      try sandbox.run(Tools.system("tar"), "--zstd", "-tvf", $0).replacing(
        #/(manifest.sqlite|drydock.json)$/#, with: "")
    }
    let plain = { (name: String) in
      try list(name).split(separator: "\n").filter { $0.contains("container") }
    }
    #expect(try plain("A.tar.zst") == plain("B.tar.zst") && plain("B.tar.zst").count > 15)
  }

  @Test func `A flipped bit anywhere leaves no file`() throws {
    try sandbox.succeed("snapshot Notes -o A.tar.zst")
    let bytes = try sandbox.read("A.tar.zst")
    var random = SeededRandom(seed: 7)
    for _ in 0..<12 {
      var damaged = bytes
      damaged[Int.random(in: 0..<bytes.count, using: &random)] ^= 0x10
      try sandbox.write("D.tar.zst", bytes: damaged)
      try sandbox.drydock("export D.tar.zst -o E.tar.zst").expect(exit: 4)
      #expect(try !sandbox.names().contains { $0 == "E.tar.zst" || $0.hasPrefix(".drydock") })
      #expect(try sandbox.names("tmp") == [])
    }
  }
}
