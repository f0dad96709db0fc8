import FileSystem

/// What a reader fetches ahead from a server: the compressed bytes of the frames that it reads next, by one request for several of
/// them, and several requests at a time.
struct FetchedRuns {
  /// Frames that follow each other in the file, and the reply to the request for them.
  typealias Run = (frames: Range<Int>, bytes: PendingResult<ArchiveSource>)

  /// The frames that are read next, in their order, and the first one of which nothing was asked for yet.
  private var expected: [Int] = []
  private var started = 0
  private var runs: [Run] = []
  /// The most bytes of all runs together. One may have more: a frame is fetched as a whole.
  private var room = Self.allRoom

  /// The most bytes of all runs of one thread: those of four frames that could not be compressed.
  static let allRoom = 4 * Zstd.largestFrame
  private static let mostRuns = 8

  /// The most bytes of one request: while one reply is read, the next ones are on their way.
  static func longest(in room: Int) -> Int { max(room / 2, Zstd.largestFrame) }

  mutating func expect(_ frames: [Int], room: Int) {
    (expected, self.room, runs, started) = (frames, max(room, Zstd.largestFrame), [], 0)
  }

  /// Drops what was used, and starts requests.
  ///
  /// - Parameters:
  ///   - number: the frame that is read now.
  ///   - last: those up to this one are read next, too.
  ///   - start: sends a request.
  mutating func prepare(
    _ number: Int, _ last: Int, _ index: FrameIndex, start: (Range<Int>) -> PendingResult<ArchiveSource>
  ) {
    runs.removeAll { $0.frames.upperBound <= number }
    if let first = runs.first, !first.frames.contains(number) {
      // Nobody expected this frame: it has the header of a content in the next one, or the rest of a piece. What is expected
      // stays, and is not asked for again.
      runs = runs.filter { isExpected($0.frames.lowerBound) }
      if !runs.isEmpty { runs.insert((number..<(number + 1), start(number..<(number + 1))), at: 0) }
    }
    var free = room - runs.reduce(0) { $0 + index.bytes(of: $1.frames).count }
    // Reading begins after a short request.
    var longest = runs.isEmpty ? Zstd.largestFrame : Self.longest(in: room)
    var next = runs.last.map { following($0.frames.upperBound, last) } ?? number
    while let first = next, runs.count < Self.mostRuns {
      var frames = first..<(first + 1)
      while following(frames.upperBound, last) == frames.upperBound,
        case let longer = first..<(frames.upperBound + 1),
        index.bytes(of: longer).count <= min(longest, free)
      { frames = longer }
      longest = Self.longest(in: room)
      free -= index.bytes(of: frames).count
      guard free >= 0 || runs.isEmpty else { return }
      runs.append((frames, start(frames)))
      if isExpected(first) { started = max(started, frames.upperBound) }
      next = following(frames.upperBound, last)
    }
  }

  private func isExpected(_ number: Int) -> Bool { expected(since: number) == number }

  /// The next frame that is read, from this one on.
  private func following(_ number: Int, _ last: Int) -> Int? {
    number <= last ? number : expected(since: max(number, started))
  }

  private func expected(since number: Int) -> Int? {
    let place = expected.indices.first(since: { expected[$0] >= number })
    return place < expected.count ? expected[place] : nil
  }

  /// The reply that has a frame; nil when none is on its way.
  func bytes(of number: Int) -> PendingResult<ArchiveSource>? {
    runs.first { $0.frames.contains(number) }?.bytes
  }
}
