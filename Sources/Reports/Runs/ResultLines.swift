import Drydock
import Foundation

/// The lines of a file, one after the other: a file of results may be larger than the memory.
struct ResultLines {
  /// A longer line is not one of results.
  static let limit = 16 << 20

  enum Line: Equatable {
    case complete(Data)
    /// The last one, without its end.
    case cut
    case tooLong
  }

  private let file: FileHandle
  private var buffer = Data()
  private var isAtEnd = false

  init(_ path: String) throws {
    guard FollowedStatus.identity(path) != nil else {
      throw DrydockError(.notFound, "no such file of results; check the path", path: path)
    }
    guard !FollowedStatus.isDirectory(path), let file = FileHandle(forReadingAtPath: path) else {
      throw DrydockError(.unreadable, "not a file of results that can be read", path: path)
    }
    self.file = file
  }

  /// The next line; nil at the end.
  mutating func next() throws -> Line? {
    var isTooLong = false
    // How much of the buffer has no line break.
    var searched = 0
    while true {
      if let end = buffer[(buffer.startIndex + searched)...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = buffer[..<end]
        buffer = buffer[(end + 1)...]
        return isTooLong || line.count > Self.limit ? .tooLong : .complete(line)
      }
      if isAtEnd {
        defer { buffer = Data() }
        return buffer.isEmpty && !isTooLong ? nil : .cut
      }
      searched = buffer.count
      if searched > Self.limit { (isTooLong, searched, buffer) = (true, 0, Data()) }
      if let piece = try file.read(upToCount: 1 << 18), !piece.isEmpty {
        // A copy, so that the lines before are not kept.
        buffer = Data(buffer) + piece
      } else {
        isAtEnd = true
      }
    }
  }
}

/// A line of a file of results: what became of one container, or the summary of a job. Unknown fields are ignored.
struct ResultRecord: Decodable {
  struct Failure: Decodable {
    var code: String, message: String?
  }

  var container: String?, path: String?
  /// What it is, if not a container.
  var kind: ResultKind?
  var state: RunState?
  /// Of a container that is unchanged: whether an earlier job of the run changed it.
  var changedBefore: Bool?
  var exitCode: Int
  var error: Failure?
  var versionBefore: Int?, versionAfter: Int?
  var seconds: Double?
  var time: String?
  var command: String?, run: String?, shard: String?
  var leftOut: Int?
  /// Of the last line of a job: the number of containers by state.
  var summary: [String: Int]?

  private enum CodingKeys: String, CodingKey {
    case container, path, kind, state, error, seconds, time, command, run, shard, summary
    case changedBefore = "changed_before"
    case exitCode = "exit_code"
    case versionBefore = "version_before"
    case versionAfter = "version_after"
    case leftOut = "left_out"
  }

  /// More containers than a job has.
  private static let most = 1_000_000_000

  /// - Throws: for anything that a job does not write, with the reason.
  static func parse(_ line: Data, _ decoder: JSONDecoder) throws -> ResultRecord {
    let record: ResultRecord
    do { record = try decoder.decode(ResultRecord.self, from: line) } catch {
      throw DrydockError(.malformed, "not a line of results")
    }
    if let problem = record.problem { throw DrydockError(.malformed, "not a line of results: \(problem)") }
    return record
  }

  /// Whether a text has the length and the characters of `2026-11-20T10:15:00.250Z`: it is only compared and printed.
  private static func isTime(_ text: String) -> Bool {
    (20...30).contains(text.utf8.count) && text.utf8.last == UInt8(ascii: "Z")
      && text.utf8.dropLast().allSatisfy { (0x30...0x3A).contains($0) || "-T.".utf8.contains($0) }
  }

  /// What no job writes; nil for a line that counts.
  private var problem: String? {
    var counts = summary ?? [:]
    counts["left_out"] = leftOut
    for (name, count) in counts.sorted(by: { $0.key < $1.key }) where !(0...Self.most).contains(count) {
      return "\(String(name.prefix(20)).debugDescription) is \(count), not a number of containers"
    }
    if summary == nil, container == nil || state == nil { return "it has neither a container nor a summary" }
    if let seconds, !(0..<1e9).contains(seconds) { return "seconds is \(seconds)" }
    if !(0...255).contains(exitCode) { return "exit_code is \(exitCode)" }
    if let time, !Self.isTime(time) { return "the time is not one in UTC" }
    if let run, (try? RunID(run)) == nil { return "not the name of a run" }
    if shard.map({ Shard($0) == nil }) ?? false { return "not a shard" }
    let texts = [(container, 1 << 14), (path, 1 << 14), (error?.code, 100), (command, 100)]
    if texts.contains(where: { ($0?.utf8.count ?? 0) > $1 }) { return "a text is too long" }
    return nil
  }
}

/// What became of a container.
package enum RunState: String, Sendable, CaseIterable, Codable {
  case changed, pending, unchanged, failed, skipped
}

/// What results are about, if not containers.
package enum ResultKind: String, Sendable, Codable {
  case archive, fixture
}
