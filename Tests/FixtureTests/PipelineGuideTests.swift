import Formats
import Foundation
import TestSupport
import Testing

/// The examples are there to be pasted: they must be YAML, and the scripts in them a shell's.
@Suite("The guide on pipelines")
struct PipelineGuideTests {
  @Test("Its pipelines are YAML, and their scripts are a shell's")
  func examples() throws {
    let guide = try String(
      contentsOfFile: "\(Sample.root)/Sources/Drydock/Drydock.docc/Pipelines.md", encoding: .utf8)
    let blocks = guide.split(separator: "```yaml\n").dropFirst().map { String($0.prefix { $0 != "`" }) }
    #expect(blocks.count == 2)
    var scripts: [String] = []
    for block in blocks {
      let root = try #require(try YAMLDocument(Array(block.utf8), file: "Pipelines.md").root)
      collect(root, under: "", &scripts)
    }
    #expect(scripts.count == 10, "\(scripts)")
    for script in scripts {
      let checked = try Command.run("/bin/sh", ["-n", "-c", script])
      #expect(checked.succeeded, "\(script)\n\(checked)")
    }
  }

  private func collect(_ node: YAMLNode, under key: String, _ scripts: inout [String]) {
    for pair in node.mapping?.pairs ?? [] {
      guard case .text(let name) = pair.key.value else { continue }
      collect(pair.value, under: name, &scripts)
    }
    for value in node.sequence ?? [] { collect(value, under: key, &scripts) }
    if ["run", "script", "before_script"].contains(key), case .text(let text) = node.scalar?.value {
      scripts.append(text)
    }
  }
}
