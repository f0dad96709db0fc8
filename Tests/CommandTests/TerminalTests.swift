@testable import DrydockCommand
import TestSupport
import Testing

/// What a person at a terminal sees: colours by role, tables that fit, one form of errors.
@Suite struct TerminalTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  private let red = "\u{1B}[31m", green = "\u{1B}[32m", end = "\u{1B}[0m"

  @Test func `Colours: by option, by NO_COLOR, and never where no terminal is`() throws {
    try sandbox.create()
    let plain = try sandbox.drydock("migrate Notes --dry-run --device-key device.key").expect()
    #expect(!plain.output.contains("\u{1B}"), "\(plain)")
    let always = try sandbox.drydock("migrate Notes --dry-run --device-key device.key --color always")
    #expect(always.output.contains("\(red)  - dark_mode (was true)\(end)\n"), "\(always)")
    #expect(always.output.contains("\(green)  + theme: \"dark\"\(end)\n"), "\(always)")
    let withoutColours = always.output.replacing(/\u{1B}\[\d+m/, with: "")
    #expect(Self.untimed(withoutColours) == Self.untimed(plain.output), "colours only add")
    let failed = try sandbox.drydock("inspect Nowhere --color always")
    #expect(failed.errors.hasPrefix("\(red)drydock: error:\(end) Nowhere: "), "\(failed)")
    try sandbox.drydock("inspect Nowhere --color sometimes").expect(exit: 64, errors: "'auto', 'always'")
  }

  private static func untimed(_ text: String) -> String { text.replacing(/\d+ ms|#[0-9a-f]{8}/, with: "") }

  @Test(
    "At a terminal: colours, unless NO_COLOR is set or it cannot show them",
    arguments: [
      (nil, "xterm", [String](), true), ("1", "xterm", [], false), ("", "xterm", [], true),
      (nil, "dumb", [], false), ("1", "xterm", ["--color", "always"], true),
      (nil, "xterm", ["--color", "never"], false),
    ] as [(String?, String, [String], Bool)])
  func terminal(noColor: String?, term: String, options: [String], isColored: Bool) throws {
    let result = try sandbox.atTerminal(
      "", ["inspect", "Nowhere"] + options, environment: ["NO_COLOR": noColor, "TERM": term]
    ).errors
    #expect(result.contains("drydock: error:"), "\(result)")
    #expect(result.contains("\u{1B}[31m") == isColored, "\(result.debugDescription)")
  }

  @Test func `The last column of a table goes on below itself, or below the row`() {
    let fitting = Output.Columns.fitting
    #expect(fitting("  name  ", "a short text", 2, nil) == ["  name  a short text"])
    #expect(fitting("  name  ", "a short text", 2, 20) == ["  name  a short text"])
    let long = "layout: backups include Documents, Library and what else there is"
    #expect(
      fitting("  name  ", long, 2, 40) == [
        "  name  layout: backups include", "        Documents, Library and what else", "        there is",
      ])
    #expect(
      fitting("  a/long/path/of/a/file  ", long, 2, 40) == [
        "  a/long/path/of/a/file  ", "      layout: backups include Documents,",
        "      Library and what else there is",
      ])
    // A word that is wider than the terminal is not broken: it may be a path that someone copies.
    #expect(fitting("  n  ", "x " + String(repeating: "y", count: 50), 2, 30).count == 2)
  }

  @Test func `A table at a narrow terminal has no empty lines`() throws {
    try sandbox.create()
    _ = try sandbox.snapshot()
    let script = "stty cols 60 -onlcr; exec '\(sandbox.program)' list -r Backups"
    let result = try sandbox.shell("script -qec \"\(script)\" /dev/null")
    let lines = result.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    #expect(lines.count >= 2 && !lines.contains { $0.allSatisfy(\.isWhitespace) }, "\(result)")
  }

  @Test func `A usage error has the form of all errors`() {
    let text = UsageText(
      """
      Error: Missing expected argument '<container>'
      Help:  <container>  The container: the directory with one app's data.
      Usage: drydock inspect [<options>] <container>
        See 'drydock inspect --help' for more information.
      """
    ).text
    #expect(
      text == """
        missing expected argument '<container>'
          <container>  The container: the directory with one app's data.
          usage: drydock inspect [<options>] <container>
          see `drydock inspect --help`
        """)
    #expect(UsageText.sentence("--to is a number") == "--to is a number")
    #expect(UsageText.sentence("DRYDOCK_X is y") == "DRYDOCK_X is y")
  }

  @Test func `--quiet prints only warnings and errors of a command that changes something`() throws {
    try sandbox.create()
    for arguments in [
      ["snapshot", "Notes", "-r", "Backups"], ["migrate", "Notes", "--device-key", "device.key"],
      ["rollback", "Notes", "--device-key", "device.key"], ["restore", "latest", "Notes", "-r", "Backups"],
    ] {
      let result = try sandbox.drydock(arguments + ["--quiet"]).expect()
      #expect(result.output.isEmpty && result.errors.isEmpty, "\(arguments) \(result)")
    }
    try sandbox.drydock("log Notes -q").expect(output: "migrate")
    let refused = try sandbox.drydock("rollback Nowhere -q").expect(exit: 1)
    #expect(refused.errors.hasPrefix("drydock: error: Nowhere"), "\(refused)")
  }
}
