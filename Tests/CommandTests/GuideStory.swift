import Foundation
import TestSupport
import Testing

/// A guide, or a part of one, that a reader can follow from the first line to the last: commands with what they print,
/// and files to write.
struct GuideStory {
  enum Part {
    case session([Transcript.Step])
    /// A block whose first line is a comment with its path, such as `# Migrations/0001_theme.yaml`.
    case file(path: String, text: String)
  }

  let parts: [Part]

  /// - Parameter name: the guide's file, without `.md`; with `#Heading` only the part below that heading.
  init(_ name: String) throws {
    let place = name.components(separatedBy: "#")
    var text = try String(
      contentsOfFile: "\(Sandbox.repository)/Sources/Drydock/Drydock.docc/\(place[0]).md", encoding: .utf8)
    if let heading = place.dropFirst().first {
      let start = try #require(text.firstRange(of: "\n## \(heading)\n"), "no heading `\(heading)`").upperBound
      text = text[start...].components(separatedBy: "\n## ")[0]
    }
    parts = text.components(separatedBy: "\n```").enumerated().compactMap { index, block in
      // Every second piece is inside a fence.
      guard index % 2 == 1, let end = block.firstIndex(of: "\n") else { return nil }
      let body = String(block[block.index(after: end)...]) + "\n"
      if block[..<end] == "console" { return .session(Transcript(body).steps) }
      let first = body.prefix { $0 != "\n" }
      guard let path = first.firstMatch(of: #/^(?:#|--) ([\w./-]+\.(?:yaml|yml|sql))$/#)?.output.1 else {
        return nil
      }
      return .file(path: String(path), text: body)
    }
  }

  /// Runs all of it in a directory of the sandbox, and returns each command whose output is not as it is written.
  ///
  /// - Parameter home: what the guide calls the sandbox's directory.
  func differences(in sandbox: Sandbox, at directory: String, home: String) throws -> [String] {
    let programs = (sandbox.program as NSString).deletingLastPathComponent
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let environment = sandbox.environment.merging([
      "PATH": "\(programs):\(path)", "DRYDOCK_DEVICE_KEY": nil, "HOME": sandbox.directory.path,
    ]) { $1 }
    var found: [String] = []
    for part in parts {
      switch part {
      case .file(let path, let text): try sandbox.write(directory + "/" + path, text)
      case .session(let steps):
        for step in steps {
          let result = try Command.run(
            "/bin/sh", ["-c", "exec 2>&1; \(step.command)"], environment: environment,
            directory: sandbox(directory))
          let got = result.output.replacing(sandbox.directory.path, with: home)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            // It depends on what else runs on the machine.
            .filter { !$0.hasPrefix("drydock: note: not all processes can be seen") }
          let lines = got.last == "" ? got.dropLast() : got[...]
          if !Self.matches(step.output[...], lines) {
            found.append("$ \(step.command)\n" + lines.joined(separator: "\n"))
          }
        }
      }
    }
    return found
  }

  /// A line `…` is for any lines, and `…` in a line for any text.
  static func matches(_ wanted: ArraySlice<String>, _ got: ArraySlice<String>) -> Bool {
    guard let first = wanted.first else { return got.isEmpty }
    let rest = wanted.dropFirst()
    if first.trimmingCharacters(in: .whitespaces) == "…" {
      return (got.startIndex...got.endIndex).contains { matches(rest, got[$0...]) }
    }
    return got.first.map { isLine($0, first) } == true && matches(rest, got.dropFirst())
  }

  private static func isLine(_ line: String, _ pattern: String) -> Bool {
    // Times in milliseconds and seconds differ from run to run.
    let timed = { (text: String) in
      text.replacing(/\b\d+ ms\b/, with: "0 ms").replacing(/\b\d+\.\d\d s\b/, with: "0.00 s")
    }
    var rest = timed(line)[...]
    let pieces = timed(pattern).components(separatedBy: "…")
    guard let first = pieces.first, rest.hasPrefix(first) else { return false }
    rest = rest.dropFirst(first.count)
    for (index, piece) in pieces.enumerated().dropFirst() {
      if index == pieces.count - 1 { return rest.hasSuffix(piece) }
      guard let range = rest.firstRange(of: piece) else { return false }
      rest = rest[range.upperBound...]
    }
    return rest.isEmpty
  }
}
