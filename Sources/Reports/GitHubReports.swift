import BackupRepository
import DrydockErrors
import DrydockTesting

/// Results as commands of GitHub Actions, which show each at its line of the repository.
package struct GitHubAnnotations: Sendable {
  private let workspace: String
  private let directory: String

  /// - Parameters:
  ///   - workspace: The repository's directory, which GitHub names files from; an absolute path.
  ///   - directory: The working directory, which relative names of files begin at; an absolute path.
  package init(workspace: String, directory: String) {
    (self.workspace, self.directory) = (workspace, directory)
  }

  /// A command for each cause, at the migration or else at the expectation: an error for what fails. A known failure
  /// is a notice.
  package func lines(_ result: FixtureSuite.Report) -> [String] {
    let fixtures = result.fixturesByName
    let errors = result.groups.filter { !$0.isKnown }.map { group in
      let fixture = group.fixtures.first.flatMap { fixtures[$0.name] }.map { $0.directory + "/fixture.yaml" }
      let finding = group.members[0].finding
      let file = group.cause?.file ?? finding.file ?? fixture
      let line = group.cause == nil ? (finding.file == nil ? nil : finding.line) : group.cause?.line
      return command(
        "error", file: file, line: line, title: "\(Self.subject(group)): \(group.check.rawValue)",
        GroupText(group, from: workspace).lines().joined(separator: "\n"))
    }
    let notices = result.fixtures.filter { $0.state == .knownFailure }.map { fixture in
      command(
        "notice", file: fixture.directory + "/fixture.yaml", title: "fixture \(fixture.name)",
        "known failure: \(fixture.knownFailure ?? "")")
    }
    return errors + notices
  }

  private static func subject(_ group: FindingGroup) -> String {
    let names = group.fixtures.map(\.name)
    if names.isEmpty { return "all fixtures" }
    return (names.count == 1 ? "fixture " : "fixtures ") + names.listed(3)
  }

  /// An error for each problem of the migration files.
  package func lines(_ problems: [DrydockError]) -> [String] {
    problems.map { problem in
      let (file, line, column, message) = problem.located
      return command(
        "error", file: file, line: line, column: column, title: "migrations: \(problem.code.rawValue)",
        message.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).printable }
          .joined(separator: "\n"))
    }
  }

  private func command(
    _ name: String, file: String?, line: Int? = nil, column: Int? = nil, title: String, _ message: String
  ) -> String {
    var properties: [String] = []
    if let file {
      let absolute = file.hasPrefix("/") ? file : directory + "/" + file
      properties.append("file=\(property(FindingText.path(absolute, from: workspace)))")
    }
    if let line { properties.append("line=\(line)") }
    if let column { properties.append("col=\(column)") }
    properties.append("title=\(property(title.printable))")
    // A line break would end the command. By scalars: a carriage return and a line feed are one character.
    return "::\(name) \(properties.joined(separator: ","))::\(escaped(message, ["%", "\r", "\n"]))"
  }

  private func property(_ text: String) -> String { escaped(text, ["%", "\r", "\n", ":", ","]) }

  /// As GitHub's runner takes it back: `%` and two digits.
  private func escaped(_ text: String, _ special: Set<Unicode.Scalar>) -> String {
    text.unicodeScalars.map { scalar in
      special.contains(scalar) ? "%\([UInt8(scalar.value)].hex.uppercased())" : String(scalar)
    }.joined()
  }
}
