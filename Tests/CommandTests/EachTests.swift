import Foundation
import TestSupport
import Testing

@Suite("Each migration by itself")
struct EachTests {
  @Test("That many commits take a while is said", arguments: [(20, false), (21, true)])
  func manyCommits(_ count: Int, _ isSaid: Bool) throws {
    try Lab.with { lab in
      try lab.write(
        "drydock.yaml",
        "app: com.example.each\nlayout: generic\nmigrations: Own\nversion-markers: [{defaults: v, absent: 0}]\n"
          + "defaults: {standard: settings.plist}\n")
      for number in 1...count {
        try lab.write(
          "Own/\(String(format: "%04d", number))_m.yaml",
          "steps:\n  - defaults.set: {values: {\"k\(number)\": 1}}\n")
      }
      try lab.write("Notes/Documents/readme.txt", "a container")
      let result = try lab.drydock("migrate", "Notes", "--each")
      #expect(result.succeeded, "\(result)")
      #expect(result.errors.contains("--each commits \(count) times") == isSaid, "\(result)")
    }
  }
}
