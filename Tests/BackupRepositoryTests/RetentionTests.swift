import Foundation
import TestSupport
import Testing

@testable import BackupRepository

@Suite struct RetentionTests {
  static let now = "2026-11-22T00:00:00Z"

  static func archive(
    _ number: Int, _ time: String, owner: String = "box", parent: Int? = nil, tags: [String] = []
  ) -> StoredArchive {
    var archive = StoredArchive(
      path: "\(number)", access: .open(header(number, time, owner: owner, parent: parent)))
    archive.tags = tags.sorted()
    return archive
  }

  static func header(
    _ number: Int, _ time: String, owner: String = "box", parent: Int? = nil
  ) -> Archive.Header {
    let id = { (number: Int) in
      let digits = String(number, radix: 16)
      return Archive.ID(
        unchecked: String(repeating: "0", count: 8 - digits.count) + digits
          + String(repeating: "f", count: 24))
    }
    return Archive.Header(
      archive: id(number), app: "app", instance: owner, layout: .generic, schemaVersion: nil, time: time,
      tool: "test", parent: parent.map(id))
  }

  private func archives(_ times: [String]) -> [StoredArchive] {
    times.enumerated().map { Self.archive($0, $1) }
  }

  private func kept(_ archives: [StoredArchive], _ change: (inout RetentionPolicy) -> Void) -> [String:
    [String]]
  {
    var policy = RetentionPolicy()
    change(&policy)
    let reasons = policy.reasons(archives, now: Self.now)
    return Dictionary(uniqueKeysWithValues: zip(archives.map(\.time), reasons).filter { !$1.isEmpty })
  }

  /// Examples of restic's documentation, for the reasons; what is kept is compared with a model and with restic itself.
  @Test func reasons() {
    let archives = archives(
      [
        "2019-09-01", "2019-09-08", "2019-09-15", "2019-09-22", "2019-09-29", "2019-10-06", "2019-10-13",
        "2019-10-20", "2019-10-27", "2019-11-03", "2019-11-10", "2019-11-17",
      ].map { $0 + "T11:00:00Z" })
    #expect(
      kept(archives) { $0.monthly = 5 } == [
        "2019-09-01T11:00:00Z": ["oldest monthly"], "2019-09-29T11:00:00Z": ["monthly"],
        "2019-10-27T11:00:00Z": ["monthly"], "2019-11-17T11:00:00Z": ["monthly"],
      ])
    #expect(
      kept(archives) { ($0.yearly, $0.weekly) = (1, 2) } == [
        "2019-11-10T11:00:00Z": ["weekly"], "2019-11-17T11:00:00Z": ["weekly", "yearly"],
      ])
    #expect(kept(archives) { _ in }.isEmpty)
  }

  @Test func weeksBeginOnMonday() {
    let archives = archives([
      "1969-12-28T23:00:00Z", "1969-12-29T00:00:00Z", "1970-01-04T23:59:59Z", "1970-01-05T00:00:00Z",
      "2026-11-15T23:59:59Z", "2026-11-16T00:00:00Z",
    ])
    #expect(
      kept(archives) { $0.weekly = 5 }.keys.sorted() == [
        "1969-12-28T23:00:00Z", "1970-01-04T23:59:59Z", "1970-01-05T00:00:00Z", "2026-11-15T23:59:59Z",
        "2026-11-16T00:00:00Z",
      ])
  }

  @Test func periodsCountFromTheNewest() throws {
    let times = [
      "2025-05-30T10:00:00Z", "2025-05-31T10:00:00Z", "2026-02-28T10:00:00Z", "2026-03-01T10:00:00Z",
      "2026-03-03T10:00:00Z", "2026-03-03T10:00:01Z", "2026-03-31T09:00:00Z", "2026-03-31T10:00:00Z",
    ]
    let archives = archives(times)
    for (period, count) in [
      ("1h", 1), ("2h", 2), ("1d", 2), ("28d", 3), ("28d1h", 4), ("1m", 3), ("1m1h", 4), ("10m", 6),
      ("10m1d", 7), ("2y", 8), ("30d1h", 5),
    ] {
      let within = try RetentionPolicy.Period(period)
      #expect(kept(archives) { $0.within = within }.keys.sorted() == times.suffix(count), "\(period)")
    }
    // A time in the future is not what the period counts from, and is kept.
    let future = archives + [Self.archive(99, "2026-12-01T00:00:00Z")]
    let day = try RetentionPolicy.Period("1d")
    #expect(kept(future) { $0.within = day }.keys.sorted() == times.suffix(2) + ["2026-12-01T00:00:00Z"])
    for text in ["", "90", "d", "90x", "-1d", "0d", "1d ", "1w", "1.5d", "9999999d"] {
      expectError(.malformed) { try RetentionPolicy.Period(text) }
    }
  }

  @Test func tagsKeep() {
    let archives = [[], ["a"], ["a", "b"], ["b"], ["c"]].enumerated().map { number, tags in
      Self.archive(number, "2026-01-0\(number + 1)T00:00:00Z", tags: tags)
    }
    let days = { (policy: @escaping (inout RetentionPolicy) -> Void) in
      kept(archives, policy).keys.map { String($0.prefix(10).suffix(1)) }.sorted().joined()
    }
    #expect(days { $0.tags = [["a"]] } == "23")
    #expect(days { $0.tags = [["a", "b"]] } == "3")
    #expect(days { $0.tags = [["a"], ["c"]] } == "235")
    #expect(days { $0.tags = [[]] } == "1")
    #expect(days { ($0.tags, $0.last) = ([["a", "b"]], 1) } == "35")
    #expect(RetentionPolicy.tagList(" a, b,") == ["a", "b"] && RetentionPolicy.tagList("") == [])
    var unknown = archives
    unknown[0].hasUnknownTags = true
    #expect(kept(unknown) { $0.last = 1 }["2026-01-01T00:00:00Z"] == ["its tags cannot be read"])
  }

  @Test func eachInstanceByItself() {
    let archives = (0..<6).map {
      Self.archive($0, "2026-01-0\($0 + 1)T00:00:00Z", owner: $0 % 3 == 0 ? "red" : "blue")
    }
    #expect(kept(archives) { $0.last = 1 }.keys.sorted() == ["2026-01-04T00:00:00Z", "2026-01-06T00:00:00Z"])
    let reasons = RetentionPolicy.last(1).reasons(archives, now: Self.now) { $0.instance == "red" }
    #expect(reasons.map(\.isEmpty) == [true, false, false, false, false, false])
  }

  @Test func whatAKeptOneNeedsStays() {
    // 0 ← 1 ← 2 and 0 ← 4; 3 is full.
    let parents: [Int?] = [nil, 0, 1, nil, 0]
    let archives = parents.enumerated().map { Self.archive($0, "2026-01-0\($0 + 1)T00:00:00Z", parent: $1) }
    let reasons = RetentionPolicy.last(1).reasons(archives, now: Self.now)
    #expect(reasons == [["needed by 00000004"], [], [], [], ["last"]])
    #expect(archives.depths == [0, 1, 2, 0, 1])
    // A circle, which only forged headers have.
    let circle = [
      Self.archive(0, "2026-01-01T00:00:00Z", parent: 1), Self.archive(1, "2026-01-02T00:00:00Z", parent: 0),
    ]
    #expect(RetentionPolicy.last(1).reasons(circle, now: Self.now) == [["needed by 00000001"], ["last"]])
    #expect(circle.depths.count == 2)
    // Names without keys have eight digits of the parent's id.
    var short = archives
    short[4].label?.parent = "00000000"
    short[0].label?.id = "00000000"
    #expect(RetentionPolicy.last(1).reasons(short, now: Self.now)[0] == ["needed by 00000004"])
  }

  @Test func aWrongClockRemovesNothingMore() throws {
    // The second was made by a clock that was ahead; the third names it, and so is the newer one.
    var archives = archives(["2026-11-08T10:00:00Z", "2026-11-20T10:00:00Z", "2026-11-10T10:00:00Z"])
    func newer() -> [String] { archives.dropFirst().map(\.time).sorted() }
    let day = try RetentionPolicy.Period("1d")
    #expect(kept(archives) { $0.within = day }.keys.sorted() == newer())
    #expect(kept(archives) { $0.last = 1 }.keys.sorted() == ["2026-11-10T10:00:00Z"])
    archives[1].label?.time = "2030-01-01T00:00:00Z"
    #expect(kept(archives) { $0.within = day }.keys.sorted() == newer())
  }

  /// Those that the model keeps, and whatever these need.
  @Test func randomPoliciesAgreeWithTheModel() throws {
    var random = SeededRandom(seed: 0x7265_7465)
    for round in 0..<400 {
      let spans = [3_600 * 30, 86_400 * 40, 86_400 * 1500]
      let span = spans[Int.random(in: 0..<3, using: &random)]
      let times = Set(
        (0..<Int.random(in: 1...40, using: &random)).map { _ in
          Int.random(in: 1_600_000_000...(1_600_000_000 + span), using: &random)
        }
      ).sorted()
      let archives = times.enumerated().map { number, seconds in
        let isIncremental = number > 0 && Bool.random(using: &random)
        return Self.archive(
          number, Self.text(seconds),
          parent: isIncremental ? Int.random(in: 0..<number, using: &random) : nil,
          tags: Int.random(in: 0..<8, using: &random) == 0 ? ["keep"] : [])
      }
      var policy = RetentionPolicy()
      let count = { (random: inout SeededRandom) in
        Bool.random(using: &random) ? 0 : Int.random(in: 1...8, using: &random)
      }
      for (_, path) in RetentionPolicy.counts { policy[keyPath: path] = count(&random) }
      let days = Int.random(in: 1...60, using: &random)
      if Bool.random(using: &random) { policy.within = try RetentionPolicy.Period("\(days)d") }
      if Bool.random(using: &random) { policy.tags = [["keep"]] }
      let dated = zip(times, archives).map { (Date(timeIntervalSince1970: Double($0)), Set($1.tags)) }
      var wanted = RetentionModel.kept(dated, policy)
      var needed = wanted
      repeat {
        wanted.formUnion(needed)
        needed = Set(
          wanted.compactMap { index in archives.firstIndex { $0.id == archives[index].label?.parent } })
      } while !needed.isSubset(of: wanted)
      let found = policy.reasons(archives, now: Self.now).enumerated().filter {
        !$1.isEmpty
      }.map(\.offset)
      #expect(found == wanted.sorted(), "round \(round): \(policy) \(archives.map(\.time))")
      for (index, parents) in archives.parents.enumerated() {
        for parent in parents { #expect(archives.depths[parent] < archives.depths[index]) }
      }
    }
  }

  private static func text(_ seconds: Int) -> String {
    Date(timeIntervalSince1970: Double(seconds)).ISO8601Format()
  }
}

/// The rules, written from restic's documentation over sets: for the last n periods with archives the newest one of each, and
/// the oldest one if there are fewer periods; all within; all with the tags.
enum RetentionModel {
  static func kept(_ archives: [(time: Date, tags: Set<String>)], _ policy: RetentionPolicy) -> Set<Int> {
    guard let newest = archives.last?.time else { return [] }
    var calendar = Calendar(identifier: .iso8601)
    calendar.timeZone = .gmt
    let rules: [(Int, Set<Calendar.Component>)] = [
      (policy.hourly, [.year, .month, .day, .hour]), (policy.daily, [.year, .month, .day]),
      (policy.weekly, [.yearForWeekOfYear, .weekOfYear]), (policy.monthly, [.year, .month]),
      (policy.yearly, [.year]),
    ]
    var kept = Set(archives.indices.suffix(policy.last))
    for (count, components) in rules where count > 0 {
      let periods = Dictionary(grouping: Array(archives.indices)) { index in
        calendar.dateComponents(components, from: archives[index].time)
      }.values.map { (indices: [Int]) in indices.max() ?? 0 }
      kept.formUnion(periods.sorted().suffix(count))
      if periods.count < count { kept.insert(0) }
    }
    if let within = policy.within {
      let limit = newest.addingTimeInterval(-Double(within.days * 24 + within.hours) * 3600)
      kept.formUnion(archives.indices.filter { archives[$0].time > limit })
    }
    for tags in policy.tags {
      kept.formUnion(
        archives.indices.filter { index in
          tags.isEmpty ? archives[index].tags.isEmpty : archives[index].tags.isSuperset(of: tags)
        })
    }
    return kept
  }
}

/// The decisions of restic itself, on snapshots of the same times.
@Suite struct ResticRetentionTests {
  private struct Group: Decodable {
    struct Snapshot: Decodable { var time: String }
    var keep: [Snapshot]?
  }

  @Test(.enabled(if: TestExtent.isFull)) func itKeepsTheSame() throws {
    let restic = try Tools.system("restic")
    let directory = try TemporaryDirectory()
    let environment = [
      "RESTIC_PASSWORD": "x", "RESTIC_REPOSITORY": directory("r"), "TZ": "UTC", "HOME": directory.path,
    ]
    func run(_ arguments: [String]) throws -> String {
      return try Command.succeed(
        restic, ["--no-cache"] + arguments, environment: environment, directory: directory.path
      ).output
    }
    _ = try run(["init"])
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/cheap_restic_key.py"
    // Debian's Python has Debian's modules; another one in `PATH` may not.
    try Command.succeed("/usr/bin/python3", [script, directory("r"), "x"])
    try RawFiles.write([7], to: Array(directory("file").utf8))
    var random = SeededRandom(seed: 0x7265_7374)
    let seconds = Set(
      (0..<80).map { number in
        // Some in one hour, some in one day, some years apart.
        1_780_000_000
          - Int.random(in: 0...[7200, 172_800, 5_000_000, 80_000_000][number % 4], using: &random)
      }
    ).sorted()
    let archives = try seconds.enumerated().map { number, second in
      let time = Date(timeIntervalSince1970: Double(second)).ISO8601Format()
      let tags = [[], [], ["a"], ["a", "b"]][number % 4]
      _ = try run(
        ["backup", "file", "--time", time.replacing("T", with: " ").replacing("Z", with: "")]
          + tags.flatMap { ["--tag", $0] })
      return RetentionTests.archive(number, time, tags: tags)
    }
    var differences: [String] = []
    for round in 0..<120 {
      var policy = RetentionPolicy()
      var options: [String] = []
      for (name, path) in RetentionPolicy.counts where Int.random(in: 0...2, using: &random) == 0 {
        policy[keyPath: path] = Int.random(in: 1...6, using: &random)
        options += ["--keep-\(name)", "\(policy[keyPath: path])"]
      }
      if round % 3 == 0 {
        let text = ["5h", "3d", "1m", "1y2m", "2y5m7d3h", "13m40d"].randomElement(using: &random) ?? "1d"
        policy.within = try RetentionPolicy.Period(text)
        options += ["--keep-within", text]
      }
      if round % 4 == 0 || policy.isEmpty {
        let text = ["a", "a,b", "b"].randomElement(using: &random) ?? "a"
        policy.tags = [RetentionPolicy.tagList(text)]
        options += ["--keep-tag", text]
      }
      let output = try run(["forget", "--dry-run", "--json", "--group-by", ""] + options)
      let line = output.split(separator: "\n").first { $0.hasPrefix("[") } ?? ""
      let groups = try JSONDecoder().decode([Group].self, from: Data(line.utf8))
      let theirs = groups.flatMap { $0.keep ?? [] }.map { String($0.time.prefix(19)) + "Z" }.sorted()
      let reasons = policy.reasons(archives, now: "2026-11-22T00:00:00Z")
      let ours = zip(archives, reasons).filter { !$1.isEmpty }
      let strict = ours.filter { !$1.allSatisfy { $0.hasPrefix("oldest ") } }
      #expect([ours, strict].map { $0.map(\.0.time) }.contains(theirs) && !theirs.isEmpty, "\(options)")
      if theirs != ours.map(\.0.time) { differences.append("with") }
      if theirs != strict.map(\.0.time) { differences.append("without") }
    }
    // Versions before 0.16 do not keep the oldest one in addition.
    #expect(Set(differences).count == 1, "\(differences)")
  }
}
