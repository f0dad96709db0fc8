import Foundation
import TestSupport
import Testing

@testable import Reports

@Suite("The summary of a run") struct RunResultsTests {
  /// A line as a job writes it.
  private static func line(
    _ name: String, _ state: String, shard: String = "1/1", exit: Int = 0, time: Int = 0,
    seconds: Double = 0.5,
    versions: (Int, Int)? = (1, 2), error: String? = nil, run: String = "r1", others: [String: Any] = [:]
  ) -> String {
    var document: [String: Any] = [
      "container": name, "path": "all/" + name, "state": state, "exit_code": exit, "seconds": seconds,
      "command": "migrate", "run": run, "shard": shard,
      "time": String(format: "2026-11-20T10:%02d:00Z", time),
      "notes": [String](), "result": ["anything": [1, [2, [3]]]],
    ]
    if let versions { (document["version_before"], document["version_after"]) = versions }
    if let error {
      document["error"] = ["code": error, "message": "cannot write \(name)", "exit_code": exit]
    }
    document.merge(others) { $1 }
    guard let data = try? JSONSerialization.data(withJSONObject: document, options: .sortedKeys) else {
      return ""
    }
    return String(decoding: data, as: UTF8.self) + "\n"
  }

  private static func end(
    _ shard: String = "1/1", leftOut: Int = 0, run: String = "r1", totals: String = #""containers":1"#
  ) -> String {
    #"{"command":"migrate","exit_code":0,"left_out":\#(leftOut),"run":"\#(run)","shard":"\#(shard)","summary":{\#(totals)}}"#
      + "\n"
  }

  private func summary(_ files: String...) throws -> RunSummary {
    try summary(files.map { Array($0.utf8) })
  }

  private func summary(_ files: [[UInt8]]) throws -> RunSummary {
    try TemporaryDirectory.with { folder in
      var results = RunResults()
      for (number, bytes) in files.enumerated() {
        let path = folder("\(number + 1).jsonl")
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        try results.add(path)
      }
      var summary = results.merged()
      for index in summary.problems.indices {
        summary.problems[index].file = URL(fileURLWithPath: summary.problems[index].file).lastPathComponent
      }
      return summary
    }
  }

  /// The versions before and after, and how many containers have them.
  private func versions(_ summary: RunSummary) -> [String] {
    summary.versions.map { "\(Report.Cell.versions($0.before, $0.after).text): \($0.count)" }
  }
  @Test("Counts, causes with an example, versions, the slowest, and complete shards")
  func merged() throws {
    let one =
      Self.line("b", "changed", shard: "1/2", seconds: 9)
      + Self.line("a", "unchanged", shard: "1/2", versions: (2, 2))
    let two =
      (1...12).map { Self.line("c\($0)", "failed", shard: "2/2", exit: 1, error: "noSpace") }.joined()
      + Self.line("d", "failed", shard: "2/2", exit: 5, error: "locked")
      + Self.line("e", "changed", shard: "2/2", exit: 6)
    let found = try summary(one + Self.end("1/2"), two + Self.end("2/2"))
    #expect(found.containers == 16 && found.count(.changed) == 2 && found.count(.failed) == 13)
    #expect(found.failures.map(\.code) == ["noSpace", "exit 6", "locked"])
    #expect(found.failures[0].count == 12 && found.failures[0].container == "c1")
    #expect(found.failures[0].message == "cannot write c1")
    #expect(versions(found) == ["1 → 2: 1", "2 → 2: 1"])
    #expect(found.slowest.count == 10 && found.slowest[0].container == "b")
    #expect(found.shards.count == 1 && found.shards[0].complete == 2 && !found.isIncomplete)
    #expect(found.exitCodes == [0, 1, 5, 6], "in the order of the names")
    #expect(found.seconds == 16.5 && found.runs == ["r1"] && found.commands == ["migrate"])
  }

  @Test(
    "A shard without its summary was killed; one without any line is missing; both are listed to be run again"
  )
  func gaps() throws {
    let found = try summary(
      Self.line("a", "changed", shard: "1/4") + Self.end("1/4"), Self.line("b", "changed", shard: "3/4"), "")
    #expect(found.shards[0].incomplete == ["3/4"] && found.shards[0].missing == ["2/4", "4/4"])
    #expect(found.isIncomplete)
    #expect(
      found.gaps == [
        "no results of shards 2/4, 4/4 of `migrate`; run each again, such as with --shard 2/4 --run r1",
        "shard 3/4 of `migrate` did not finish, or results of it are missing; "
          + "run it again with --shard 3/4 --run r1",
      ])
    #expect(
      found.problems.map(\.text) == [
        "3.jsonl: no results: the job was killed before its first container was done, or is waiting"
      ])
    // Any number in a file must cost neither time nor memory.
    let many = try summary(Self.line("a", "changed", shard: "1/9000000000000000000"))
    #expect(many.shards[0].missingCount == 8_999_999_999_999_999_999 && many.shards[0].missing.count == 10)
  }

  @Test("A file whose only line is cut has no results")
  func onlyLineCut() throws {
    let found = try summary(String(Self.line("a", "changed").dropLast(5)))
    #expect(found.problems.count == 1 && found.problems[0].text.hasPrefix("1.jsonl: no results"))
    #expect(found.isIncomplete)
  }

  @Test("Of a shard that was run again each container counts once, by what was done to it")
  func again() throws {
    let first =
      Self.line("a", "changed", time: 1) + Self.line("b", "failed", exit: 1, time: 1, error: "noSpace")
      + Self.line("c", "changed", time: 1) + Self.line("d", "skipped", exit: 3, time: 1)
      + Self.line("e", "changed", time: 1)
    let second =
      Self.line("a", "unchanged", time: 2, versions: (2, 2)) + Self.line("b", "changed", time: 2)
      + Self.line("c", "changed", time: 2) + Self.line("d", "changed", time: 2)
      + Self.line("e", "failed", exit: 4, time: 2, error: "damaged") + Self.end()
    for files in [[first, second], [second, first]] {
      let found = try summary(files.map { Array($0.utf8) })
      #expect(found.count(.changed) == 4 && found.count(.failed) == 1 && found.containers == 5)
      #expect(versions(found) == ["1 → 2: 4"])
      #expect(found.failures.map(\.code) == ["damaged"], "what failed later has failed")
      #expect(found.repeatedCount == 5 && found.repeated == ["a", "b", "c", "d", "e"])
      #expect(found.changedAgainCount == 1 && found.changedAgain == ["c"])
      #expect(!found.isIncomplete)
    }
  }

  @Test("Shards are those of one run: another run's do not complete it")
  func runs() throws {
    let one = Self.line("a", "changed", shard: "1/2") + Self.end("1/2")
    let two = Self.line("b", "changed", shard: "2/2", run: "r2") + Self.end("2/2", run: "r2")
    #expect(
      try summary(one, two).gaps == [
        "no results of shard 2/2 of `migrate`, run r1; run it again with --shard 2/2 --run r1",
        "no results of shard 1/2 of `migrate`, run r2; run it again with --shard 1/2 --run r2",
      ])
  }

  @Test("A file without one of its lines is incomplete by the job's totals, until the job has run again")
  func missingLines() throws {
    let lines = ["a", "b", "c"].map { Self.line($0, $0 == "b" ? "failed" : "changed") }
    let end = Self.end(totals: #""containers":3,"changed":2,"failed":1"#)
    #expect(try !summary(lines.joined() + end).isIncomplete)
    for missing in 0..<3 {
      var rest = lines
      rest.remove(at: missing)
      let found = try summary(rest.joined() + end)
      #expect(found.isIncomplete && found.gaps.count == 1, "\(missing)")
      #expect(found.gaps[0].contains("results of it are missing"))
      let again = ["a", "b", "c"].map { Self.line($0, "unchanged", time: 9) }.joined()
      #expect(try !summary(rest.joined() + end + again + Self.end(totals: #""containers":3"#)).isIncomplete)
    }
    #expect(try summary(lines[0] + lines[2] + lines[2] + end).isIncomplete, "a line instead of another")
    // The line of a job that was killed before, in the same file, is not that of the job that found it done.
    let killed = Self.line("a", "changed", time: 0)
    let again = Self.end(totals: #""containers":3,"changed":1,"failed":1,"unchanged":1"#)
    #expect(try summary(killed + lines[1] + lines[2] + again).isIncomplete)
    #expect(try !summary(killed + Self.line("a", "unchanged") + lines[1] + lines[2] + again).isIncomplete)
  }

  @Test("The same file given twice, and the same lines in two files, count once")
  func same() throws {
    let text =
      Self.line("a", "failed", exit: 1, time: 1, error: "noSpace") + Self.line("a", "changed", time: 2)
      + Self.line("b", "changed", time: 2) + Self.end()
    let (one, two) = (try summary(text), try summary(text, text))
    #expect(two.repeatedCount == 0 && two.changedAgainCount == 0 && two.problems.isEmpty && two.gaps.isEmpty)
    #expect(two.seconds == one.seconds && two.states == one.states && !two.isIncomplete)
    // Long lines that differ at their end are two.
    let long = String(repeating: "x", count: 4000)
    #expect(try summary(Self.line(long + "1", "changed") + Self.line(long + "2", "changed")).containers == 2)
  }

  @Test("What a killed job changed and could not record is changed by its run")
  func killed() throws {
    let again = Self.line("a", "unchanged", time: 2, versions: (2, 2), others: ["changed_before": true])
    let found = try summary(again + Self.end())
    #expect(found.count(.changed) == 1 && found.count(.unchanged) == 0 && found.changedAgainCount == 0)
    #expect(versions(found) == ["? → 2: 1"], "the version before is not known")
    let both = try summary(Self.line("a", "changed", time: 1), again + Self.end())
    #expect(versions(both) == ["1 → 2: 1"] && both.changedAgainCount == 0)
    let failed = Self.line("a", "failed", exit: 1, time: 1, error: "noSpace")
    #expect(try summary(failed + again + Self.end()).count(.changed) == 1)
  }

  @Test("Results of fixtures and archives are named so, and skipped ones are not the slowest")
  func kinds() throws {
    let fixture = Self.line("v1", "unchanged", others: ["kind": "fixture"])
    let found = try summary(
      fixture + Self.line("v2", "skipped", exit: 3, seconds: 9, others: ["kind": "fixture"]))
    #expect(found.conclusion == "2 fixtures: 1 unchanged, 1 skipped")
    #expect(found.slowest.map(\.container) == ["v1"])
    #expect(try summary(fixture + Self.line("a", "changed")).conclusion.hasPrefix("2 containers"))
  }

  @Test("Files with any number of runs, shards, causes and versions make a short document")
  func bounded() throws {
    let text = (0..<1500).map { number in
      Self.line(
        "c\(number)", number % 2 == 0 ? "failed" : "changed", shard: "1/\(number + 2)",
        exit: number % 2 == 0 ? 1 : 0,
        versions: (number, number + 1), error: number % 2 == 0 ? "cause\(number)" : nil, run: "r\(number)")
    }.joined()
    let found = try summary(text)
    #expect(found.containers == RunResults.mostRuns && found.runs.count == RunResults.mostRuns)
    #expect(found.problemCount == 500)
    #expect(found.problems.first?.message == "not counted: results of more than 1000 runs")
    #expect(
      found.gaps.count == RunSummary.examples + 1 && found.gaps.last == "… and 1990 more such shards and runs"
    )
    var commands = found
    commands.commands = (1...100).map { "command\($0)" }
    #expect(commands.title.hasSuffix("command10 and 90 more, 1,000 runs"))
    let markdown = Markdown(Report(found)).text
    #expect(
      markdown.contains("\n… and 480 more\n") && markdown.split(separator: "\n").count < 100, "\(markdown)")
    #expect(HTMLPage(Report(found)).html().utf8.count < 200_000)
  }

  @Test("A line that counts nothing is reported with the reason")
  func reasons() throws {
    let reasons = [
      Self.end(leftOut: -2): #""left_out" is -2, not a number of containers"#,
      Self.end(leftOut: .max): #""left_out" is 9223372036854775807, not a number of containers"#,
      Self.end(totals: #""containers":1,"failed":-1"#): #""failed" is -1, not a number of containers"#,
      Self.line("a", "changed", exit: 256): "exit_code is 256",
      Self.line("a", "changed", others: ["time": "yesterday"]): "the time is not one in UTC",
      Self.line("a", "changed", run: "a b"): "not the name of a run",
      Self.line(String(repeating: "x", count: 20_000), "changed"): "a text is too long",
    ]
    for (line, reason) in reasons {
      let found = try summary(line)
      #expect(found.problems.first?.message == "not a line of results: " + reason)
      #expect(found.leftOut == 0 && found.containers == 0)
    }
  }

  @Test("A wave leaves containers for later, until the rest is done")
  func waves() throws {
    let wave = Self.line("a", "changed") + Self.end(leftOut: 99)
    #expect(try summary(wave).leftOut == 99)
    #expect(try summary(wave, Self.line("b", "changed", shard: "1/2") + Self.end("1/2")).leftOut == 0)
  }

  @Test(
    "A line that no job wrote is reported with its place, and the rest counted",
    arguments: [
      "{", "null", "[]", "\"a\"", "{}", #"{"container":"x"}"#,
      #"{"container":"x","state":"gone","exit_code":0}"#,
      #"{"container":"x","state":"changed","exit_code":"0"}"#,
      #"{"container":"x","state":"changed","exit_code":999}"#,
      #"{"container":"x","state":"changed","exit_code":0,"seconds":-1}"#,
      #"{"container":"x","state":"changed","exit_code":0,"seconds":1e300}"#,
      #"{"container":"x","state":"changed","exit_code":0,"shard":"0/0"}"#,
      #"{"container":"x","state":"changed","exit_code":0,"version_after":1e30}"#,
      #"{"container":7,"state":"changed","exit_code":0}"#, "\u{0}\u{1}",
      #"{"summary":{"containers":-1},"exit_code":0,"left_out":-5}"#,
    ])
  func hostile(_ text: String) throws { try reported(text) }

  // Not an argument: the test runner writes each argument into many events.
  @Test("A line that is nested deeply is reported")
  func nested() throws { try reported(String(repeating: "[", count: 100_000)) }

  private func reported(_ text: String) throws {
    let found = try summary(Self.line("a", "changed") + text + "\n" + Self.line("b", "changed") + Self.end())
    #expect(found.count(.changed) == 2 && found.problems.count == 1, "\(found.problems)")
    #expect(found.problems.first?.file == "1.jsonl" && found.problems.first?.line == 2 && found.isIncomplete)
  }

  @Test("A line that is cut, too long or not UTF-8 costs no other")
  func cut() throws {
    let whole = Self.line("a", "changed") + Self.end()
    let cut = try summary(whole + Self.line("b", "changed").prefix(40))
    #expect(cut.problems.map(\.message) == [RunSummary.Problem.cut] && cut.containers == 1)
    #expect(!cut.isIncomplete, "the missing summary of a job says that")
    let long = Array(Data(repeating: UInt8(ascii: "x"), count: ResultLines.limit + 5))
    let middle = try summary([long + Array(("\n" + whole).utf8), long])
    #expect(middle.problems.map(\.line) == [1, nil] && middle.containers == 1)
    let bytes = try summary([Array(whole.utf8) + [0xFF, 0xFE, 0x0A]])
    #expect(bytes.problems.map(\.line) == [3] && bytes.containers == 1)
  }

  @Test("Texts of results act neither in the page nor in Markdown")
  func documents() throws {
    var lines = ""
    for (number, text) in PageSamples.hostile.enumerated() where !text.isEmpty {
      lines += Self.line("\(number)" + text, "failed", exit: 1, error: text)
    }
    let found = try summary(lines)
    let html = HTMLPage(Report(found)).html()
    #expect(!html.contains("<script") && !html.contains("<img") && !html.contains("\u{202E}"))
    let markdown = Markdown(Report(found)).text
    #expect(!markdown.contains("<script") && !markdown.contains("\u{202E}"))
    #expect(html.contains("What is missing") && html.contains("Failures by cause"))
  }

  /// Their file is read in several pieces.
  @Test("All of 4,000 containers are counted")
  func many() throws {
    // To encode each line takes far longer than to read it.
    let parts = Self.line("NAME", "changed").components(separatedBy: "NAME")
    let found = try summary((1...4000).map { parts.joined(separator: "c\($0)") }.joined() + Self.end())
    #expect(found.containers == 4000 && !found.isIncomplete && found.versions.map(\.count) == [4000])
  }
}
