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
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw DrydockError(.notFound, "no such file of results; check the path", path: path)
    }
    guard !isDirectory.boolValue, let file = FileHandle(forReadingAtPath: path) else {
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
        if buffer.isEmpty { return isTooLong ? .cut : nil }
        return .cut
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
  var state: String?
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
    case container, path, state, error, seconds, time, command, run, shard, summary
    case exitCode = "exit_code"
    case versionBefore = "version_before"
    case versionAfter = "version_after"
    case leftOut = "left_out"
  }

  /// - Throws: for anything that a job does not write.
  static func parse(_ line: Data, _ decoder: JSONDecoder) throws -> ResultRecord {
    let record: ResultRecord
    do { record = try decoder.decode(ResultRecord.self, from: line) } catch {
      throw DrydockError(.malformed, "not a line of results")
    }
    let texts = [
      record.container, record.path, record.error?.code, record.time, record.command, record.run,
      record.shard,
    ]
    guard record.summary != nil || record.container != nil && record.state.flatMap(RunState.init) != nil,
      record.seconds.map({ (0..<1e9).contains($0) }) ?? true, (0...255).contains(record.exitCode),
      record.leftOut.map({ $0 >= 0 }) ?? true,
      texts.allSatisfy({ ($0?.utf8.count ?? 0) <= 1 << 16 }),
      record.shard.map({ Shard($0) != nil }) ?? true
    else { throw DrydockError(.malformed, "not a line of results: a field has an impossible value") }
    return record
  }
}

/// What became of a container.
package enum RunState: String, Sendable, CaseIterable, Encodable {
  case changed, pending, unchanged, failed, skipped
}
