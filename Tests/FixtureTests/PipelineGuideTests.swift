import Formats
import TestSupport
import Testing

/// The examples are there to be pasted: they must be YAML, and the scripts in them a shell's.
@Suite("The guide on pipelines") struct PipelineGuideTests {
  @Test("Its pipelines are YAML, and their scripts are a shell's")
  func examples() throws {
    let guide = try text("Sources/Drydock/Drydock.docc/Fixtures.md")
    let part = try #require(guide.components(separatedBy: "\n## Pipelines\n").last)
      .components(separatedBy: "\n## ")[0]
    let blocks = part.split(separator: "```yaml\n").dropFirst().map { String($0.prefix { $0 != "`" }) }
    #expect(blocks.count == 2)
    #expect(try scripts(of: blocks, "Fixtures.md") == 3)
    for block in blocks {
      #expect(block.contains("# OWNER: the account that publishes Drydock.\n"), "\(block)")
      #expect(block.contains(/# .*[Ww]ithout a release.* the web server's directory/), "\(block)")
    }
  }

  @Test("The files that it uses, and the workflows, are YAML, and their scripts are a shell's")
  func files() throws {
    for (file, count) in [
      (".github/actions/install/action.yml", 1), ("Scripts/packaging/gitlab.yml", 6),
      (".github/workflows/ci.yml", 6), (".github/workflows/release.yml", 3),
    ] {
      let documents = try text(file).split(separator: "\n---\n").map(String.init)
      #expect(try scripts(of: documents, file) == count, "\(file)")
    }
  }

  private func text(_ path: String) throws -> String {
    try String(contentsOfFile: "\(Sample.root)/\(path)", encoding: .utf8)
  }

  /// Checks the scripts in YAML documents; gives their number.
  private func scripts(of documents: [String], _ file: String) throws -> Int {
    var scripts: [String] = []
    for document in documents {
      let root = try #require(try YAMLDocument(Array(document.utf8), file: file).root)
      collect(root, under: "", &scripts)
    }
    for script in scripts {
      let checked = try Command.run(Tools.system("bash"), ["-n", "-c", script])
      #expect(checked.succeeded, "\(script)\n\(checked)")
    }
    return scripts.count
  }

  private func collect(_ node: YAMLNode, under key: String, _ scripts: inout [String]) {
    for pair in node.mapping?.pairs ?? [] {
      guard case .string(let name) = pair.key.value else { continue }
      collect(pair.value, under: name, &scripts)
    }
    for value in node.sequence ?? [] { collect(value, under: key, &scripts) }
    if ["run", "script", "before_script"].contains(key), case .string(let text) = node.scalar?.value {
      scripts.append(text)
    }
  }
}
