import ArchiveFile
import DrydockErrors
import FileSystem
import Foundation

/// A place on a server, by what its protocol can do.
protocol ServerPlace: Place, AnyObject {
  var options: RemoteOptions { get }
  /// How many ranges of one file are read at a time.
  var parallelRanges: Int { get }

  /// The files in a folder, sorted by name; at an SFTP server also links, directories and others.
  func files(_ folder: ContainerPath) throws -> [PlaceFile]

  /// Fills a buffer with the bytes at an offset, of that version of the file.
  ///
  /// - Throws: `DrydockError`: `notFound` when the file is gone, `changedMeanwhile` when it was replaced, `truncated` when it
  ///   ends before, `permission`, `io`.
  func read(_ file: PlaceFile, at offset: UInt64, into target: UnsafeMutableRawBufferPointer) throws

  /// What takes the pieces of a new file, and how many at the same time; an SFTP place first removes old unfinished uploads.
  func receiver(_ name: ContainerPath) -> (any PieceReceiver, threads: Int)
}

extension ServerPlace {
  var isRemote: Bool { true }

  func list(_ folder: ContainerPath) throws -> PlaceListing {
    let files = try files(folder)
    let byName = Dictionary(files.map { ($0.name, $0) }) { first, _ in first }
    return PlaceListing(names: files.map(\.name.name)) { byName[$0] }
  }

  func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
    ArchiveSource(size: file.size, requests: parallelRanges) { try self.read(file, at: $1, into: $0) }
  }

  func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8] {
    guard let file = try file(name) else {
      throw DrydockError(.notFound, "no such file", path: full(name))
    }
    guard file.size <= UInt64(limit) else {
      throw DrydockError(
        .unsupported, "\(file.size) bytes, more than the limit of \(limit)", path: full(name))
    }
    var bytes = [UInt8](repeating: 0, count: Int(file.size))
    try bytes.withUnsafeMutableBytes { try read(file, at: 0, into: $0) }
    return bytes
  }

  func upload(
    _ file: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> any PlaceUpload {
    let source = try ArchiveSource(owning: scratch.openFile(file))
    return try upload(name) { try source.readExactly($0, at: $1) }
  }

  /// Begins to send a file; `source` is called from several threads, for any range that was announced, also repeatedly.
  func upload(_ name: ContainerPath, from source: @escaping ArchiveSource.Read) throws -> any PlaceUpload {
    try RemoteName.check(name)
    let (receiver, threads) = receiver(name)
    return BackgroundUpload(name, path: full(name), threads: threads, to: receiver, source)
  }

  func replace(_ name: ContainerPath, with file: ContainerPath, in scratch: Directory) -> Bool { false }

  /// The server answers when the file is stored, or removed.
  func sync() throws {}

  func makeScratch() throws -> ScratchDirectory { try .temporary() }
}

extension ServerPlace {
  /// Fills a buffer with a range of a file, in as many attempts as it takes: what has arrived is not asked for again.
  ///
  /// - Parameter fetch: asks for the rest of the range.
  func fill(
    _ target: UnsafeMutableRawBufferPointer, with file: PlaceFile, at offset: UInt64, by method: String,
    _ fetch: (ReplyBuffer) throws -> Void
  ) throws {
    let (end, overflows) = offset.addingReportingOverflow(UInt64(target.count))
    guard !overflows, end <= file.size else {
      throw DrydockError(
        .truncated, "the file has \(file.size) bytes; bytes after that were asked for", path: full(file.name))
    }
    guard !target.isEmpty else { return }
    var done = 0
    try retrying("cannot be read", method, file.name) { hasProgress in
      let rest = ReplyBuffer(
        UnsafeMutableRawBufferPointer(rebasing: target[done...]), at: offset + UInt64(done), of: file.size)
      defer {
        done += rest.received
        hasProgress = rest.received > 0
      }
      try fetch(rest)
    }
  }

  /// Runs a body until it succeeds, fails for good, or the attempts or the time are used up.
  ///
  /// The body is one request, or a few. To repeat a whole call of a place would send pieces again that have arrived, share
  /// one budget of retries among them, and leave a temporary file for each attempt.
  ///
  /// - Parameters:
  ///   - what: is not possible, as `cannot be read`, for messages.
  ///   - method: as `GET` or `rename`, for messages.
  ///   - name: the file's; nil for the place.
  ///   - body: sets its argument when data moved: then the next attempt counts as the first.
  /// - Throws: `DrydockError`, `badPath` before the first attempt; errors of the body other than `RemoteFailure` as they are.
  func retrying<Value>(
    _ what: String, _ method: String, _ name: ContainerPath? = nil, _ body: (inout Bool) throws -> Value
  ) throws -> Value {
    if let name { try RemoteName.check(name) }
    let start = ProcessInfo.processInfo.systemUptime
    var lastProgress = start
    var (attempt, tried) = (1, 0)
    while true {
      var hasProgress = false
      do {
        tried += 1
        return try body(&hasProgress)
      } catch let failure as RemoteFailure {
        let now = ProcessInfo.processInfo.systemUptime
        if hasProgress { (attempt, lastProgress) = (1, now) }
        let doubled = options.firstPause * Double(1 << min(attempt - 1, 16))
        // Clients that failed together do not come back together.
        let pause = max(min(doubled, longestPause) * .random(in: 0.5...1), failure.retryAfter ?? 0)
        guard failure.isTransient, attempt < min(max(options.attempts, 1), failure.attemptLimit ?? .max),
          now + pause - lastProgress <= options.deadline, failure.retryAfter ?? 0 <= longestRetryAfter
        else {
          let tries = tried == 1 ? "" : ", \(tried) attempts in \(duration(now - start))"
          let advice =
            failure.advice
            ?? (failure.isTransient ? "check the network and the server, then run it again" : nil)
          throw DrydockError(
            failure.code,
            "\(what) (\(method)\(tries)): \(failure.reason)\(advice.map { "; \($0)" } ?? "")",
            path: name.map(full) ?? path)
        }
        attempt += 1
        Thread.sleep(forTimeInterval: pause)
      }
    }
  }

  private func duration(_ seconds: Double) -> String {
    seconds < 120 ? "\(Int(seconds.rounded(.up))) s" : "\(Int((seconds / 60).rounded())) min"
  }
}

/// Seconds between two attempts at most.
private let longestPause = 20.0
/// A server that asks for more patience than this is given up.
private let longestRetryAfter = 120.0
