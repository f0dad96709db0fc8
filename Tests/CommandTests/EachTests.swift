import Foundation
import TestSupport
import Testing

@Suite("Each migration by itself")
struct EachTests {
  @Test("That many commits take a while is said", arguments: [(20, false), (21, true)])
  func manyCommits(_ count: Int, _ isSaid: Bool) throws {
    try Sandbox.with { sandbox in
      try sandbox.write(
        "drydock.yaml",
        "app: com.example.each\nlayout: generic\nmigrations: Own\nversion-markers: [{defaults: v, absent: 0}]\n"
          + "defaults: {standard: settings.plist}\n")
      for number in 1...count {
        try sandbox.write(
          "Own/\(String(format: "%04d", number))_m.yaml",
          "steps:\n  - defaults.set: {values: {\"k\(number)\": 1}}\n")
      }
      try sandbox.write("Notes/Documents/readme.txt", "a container")
      let result = try sandbox.drydock("migrate Notes --each").expect()
      #expect(result.errors.contains("--each commits \(count) times") == isSaid, "\(result)")
    }
  }
}
