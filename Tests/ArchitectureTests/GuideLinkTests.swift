import Foundation
import Testing

/// The guides are read in the repository as well as in DocC, where `Scripts/docs` turns their relative links into DocC's.
@Suite("Links in guides")
struct GuideLinkTests {
  private static let guides = Architecture.root.appendingPathComponent("Sources/Drydock/Drydock.docc")

  private static func guideNames() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: guides.path).filter { $0.hasSuffix(".md") }.sorted()
  }

  /// The text without its code, in which brackets and parentheses are no links.
  private func prose(of file: URL) throws -> String {
    try String(contentsOf: file, encoding: .utf8).replacing(/(?ms)^```.*?^```/, with: "")
  }

  /// The anchors that a repository's viewer gives to headings.
  private func anchors(of file: URL) throws -> Set<String> {
    Set(
      try prose(of: file).split(separator: "\n").compactMap { line -> String? in
        guard let heading = line.firstMatch(of: /^#+ (.*)$/)?.output.1 else { return nil }
        let kept = heading.lowercased().filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }
        return kept.replacing(" ", with: "-")
      })
  }

  /// The relative links of a file, without those to other sites.
  private func links(of file: URL) throws -> [String] {
    try prose(of: file).matches(of: /\]\(([^()\s]+)\)/).map { String($0.output.1) }
      .filter { !$0.contains("://") }
  }

  @Test("Every link leads to a page and a heading that exist")
  func targets() throws {
    let files =
      try ["README.md", "CONTRIBUTING.md"].map { Architecture.root.appendingPathComponent($0) }
      + Self.guideNames().map { Self.guides.appendingPathComponent($0) }
    var anchors: [URL: Set<String>] = [:]
    for file in files {
      let text = try prose(of: file)
      #expect(
        !text.contains("<doc:"), "\(file.lastPathComponent): a link for DocC only; write a relative one")
      for link in try links(of: file) {
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let target =
          parts[0].isEmpty
          ? file : file.deletingLastPathComponent().appendingPathComponent(String(parts[0]))
        guard FileManager.default.fileExists(atPath: target.path) else {
          Issue.record("\(file.lastPathComponent): \(link): there is no such page")
          continue
        }
        if parts.count > 1 {
          let known = try anchors[target] ?? self.anchors(of: target)
          anchors[target] = known
          #expect(
            known.contains(String(parts[1])),
            "\(file.lastPathComponent): \(link): the page has no such heading")
        }
      }
    }
  }

  @Test("The README and the overview list every guide", arguments: ["README.md", "Drydock.md"])
  func listed(_ list: String) throws {
    let file = (list == "README.md" ? Architecture.root : Self.guides).appendingPathComponent(list)
    let linked = Set(try links(of: file).map { ($0 as NSString).lastPathComponent })
    let missing = try Self.guideNames().filter { $0 != list && !linked.contains($0) }
    #expect(missing == [], "\(list) does not list these guides")
  }
}
