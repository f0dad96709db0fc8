@testable import DrydockTesting
import DrydockErrors
@testable import Reports
import Testing

@Suite("Annotations of GitHub Actions") struct AnnotationTests {
  private func lines(_ report: FixtureSuite.Report, directory: String = "/repo") -> [String] {
    GitHubAnnotations(workspace: "/repo", directory: directory).lines(report)
  }

  @Test("Each cause is shown at the file in the repository, and nothing in it ends the command")
  func causes() {
    let lines = lines(ReportSamples.everything, directory: "/repo/app")
    #expect(lines.count == 5, "two causes, the broken fixture, one over all, and the known failure")
    #expect(
      lines[0] == """
        ::error file=Fixtures/v1/expected/6/defaults.yaml,line=12,title=fixture v1%3A golden::golden: Library/p.plist: \
        theme: another value%0A  expected  "light"%0A  found     "dark"%0A  first after 0002_rename_settings%0A  \
        Fixtures/v1/expected/6/defaults.yaml:12%0A  in v1
        """)
    #expect(lines[1].hasPrefix("::error file=Fixtures/v1/fixture.yaml,title=fixture v1%3A down::down: a & b"))
    // What is named from the working directory is found in the repository.
    #expect(
      lines[3].hasPrefix("::error file=app/Migrations/0002_rename_settings.yaml,line=5,title=all fixtures%3A")
    )
    #expect(
      lines[4].hasPrefix("::notice file=Fixtures/known/fixture.yaml,title=fixture known::known failure: "))
    for line in lines { #expect(!line.unicodeScalars.contains { $0 == "\n" || $0 == "\r" }, "\(line)") }
  }

  @Test("A cause in a migration is shown there, once for all rows and fixtures")
  func migration() {
    var finding = ReportSamples.wrong
    finding.cause = FixtureResult.Finding.Cause(file: "Migrations/0002_rename_settings.yaml", line: 4)
    let names = ["v1", "v2", "v3", "v4", "v5"]
    let report = FixtureSuite.Report(
      fixtures: names.map { ReportSamples.fixture($0, .failed, [finding, finding]) }, findings: [], notes: [],
      seconds: 0)
    let lines = lines(report)
    #expect(lines.count == 1)
    #expect(
      lines.first?.hasPrefix(
        "::error file=Migrations/0002_rename_settings.yaml,line=4,title=fixtures v1%2C v2%2C v3 and 2 more%3A golden::"
      ) == true, "\(lines)")
  }

  @Test("Problems of migration files are shown at their lines and columns")
  func problems() {
    let lines = GitHubAnnotations(workspace: "/repo", directory: "/repo/app").lines([
      DrydockError(.catalog, "Migrations/0002_a: b.yaml:2:5: unknown operation\n::set-env::"),
      DrydockError(.released, "it was modified", path: "/repo/Migrations/0001_a.yaml"),
      DrydockError(.catalog, "numbers have a gap"),
    ])
    #expect(
      lines == [
        """
        ::error file=app/Migrations/0002_a%3A b.yaml,line=2,col=5,title=migrations%3A catalog::unknown operation\
        %0A::set-env::
        """, "::error file=Migrations/0001_a.yaml,title=migrations%3A released::it was modified",
        "::error title=migrations%3A catalog::numbers have a gap",
      ])
  }

  @Test("Percent signs, colons and commas of names come back as they were")
  func escaping() {
    var finding = FixtureResult.Finding(.golden, "100% of a, b: c")
    finding.file = "/repo/Fixtures/100%,a:b/fixture.yaml"
    let result = FixtureSuite.Report(
      fixtures: [ReportSamples.fixture("100%,a:b", .failed, [finding])], findings: [], notes: [], seconds: 0)
    #expect(
      lines(result) == [
        """
        ::error file=Fixtures/100%25%2Ca%3Ab/fixture.yaml,title=fixture 100%25%2Ca%3Ab%3A golden::golden: 100%25 of a, \
        b: c%0A  Fixtures/100%25,a:b/fixture.yaml%0A  in 100%25,a:b
        """
      ])
  }
}
