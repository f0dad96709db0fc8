import Dispatch
import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// Reads ranges of one archive's tar stream, from one thread. It keeps the last frames, and decodes the next ones of
/// a long range ahead on other threads; from a server, it fetches ahead what is expected to be read.
package final class RangeReader {
  /// What makes readers for other threads, which do not decode ahead: the other threads are busy.
  let source: RangeSource
  private var cache: [(number: Int, frame: PlainFrame)] = []
  private var ahead: [Int: PendingResult<PlainFrame>] = [:]
  /// Whether other threads decode ahead: not for one of several readers, when the other threads are busy.
  package var decodesAhead: Bool
  private var runs = FetchedRuns()
  /// Whether all frames are read in their order, so that those behind a range are decoded ahead, too.
  package var readsEverything = false

  private static let cacheSize = 2

  init(_ source: RangeSource, decodesAhead: Bool = true) {
    (self.source, self.decodesAhead) = (source, decodesAhead)
  }

  var index: FrameIndex { source.index }

  /// Says which pieces of the tar stream are read next, in their order, so that they are fetched ahead from a server. What lies
  /// outside of it is an error when it is read.
  ///
  /// - Parameter readers: how many on this thread share the memory for it.
  package func expect(_ pieces: [(offset: UInt64, length: UInt64)], readers: Int = 1) {
    var frames: [Int] = []
    for (offset, length) in pieces where offset < index.tarSize && length > 0 {
      let last = min(length - 1, index.tarSize - 1 - offset) + offset
      frames += (index.frame(at: offset)...index.frame(at: last)).filter { $0 > frames.last ?? -1 }
    }
    runs.expect(frames, room: FetchedRuns.allRoom / max(readers, 1))
  }

  /// Asks a server for the frame in front of the one with the last byte before a place: it is read later.
  package func fetchFrame(beforeThatOf offset: UInt64) {
    guard source.isRemote, offset > 0, case let number = index.frame(at: offset - 1) - 1, number >= 0 else {
      return
    }
    runs.expect([number], room: 0)
    source.fetch(&runs, number, number)
  }

  /// Reads a range, decompressing only its frames. `body` gets it piece by piece, in order; a piece is valid during
  /// the call only.
  ///
  /// - Throws: `DrydockError` (`.damaged` for a range outside of the stream, as ranges come from manifests), or
  ///   what `body` throws.
  package func read(offset: UInt64, length: UInt64, into body: (UnsafeRawBufferPointer) throws -> Void) throws
  {
    guard offset <= index.tarSize, length <= index.tarSize - offset else {
      throw DrydockError.damaged(
        "the range of \(length) bytes at \(offset) lies outside of the tar stream of \(index.tarSize) bytes"
      ).at(source.path)
    }
    guard length > 0 else { return }
    let last = index.frame(at: offset + length - 1)
    for number in index.frame(at: offset)...last {
      let frame = index.frames[number]
      let plain = try DrydockError.locating(source.path) { try self.frame(number, readingAheadTo: last) }
      let start = Int(max(offset, frame.tarOffset) - frame.tarOffset)
      let end = Int(min(offset + length, frame.tarEnd) - frame.tarOffset)
      try withExtendedLifetime(plain) { try body(UnsafeRawBufferPointer(rebasing: plain.bytes[start..<end])) }
    }
  }

  /// A frame's bytes. The next ones, up to and including `last`, are decoded ahead on other threads.
  func frame(_ number: Int, readingAheadTo last: Int) throws -> PlainFrame {
    if let hit = cache.firstIndex(where: { $0.number == number }) {
      let found = cache.remove(at: hit)
      cache.append(found)
      return found.frame
    }
    let last = readsEverything ? index.frames.count - 1 : last
    let job = ahead.removeValue(forKey: number)
    let depth = decodesAhead ? min(max(ProcessInfo.processInfo.activeProcessorCount, 1), 4) : 0
    // Jobs for other positions are not cancelled; they finish on their own.
    ahead = ahead.filter { $0.key > number && $0.key <= number + depth }
    if source.isRemote { source.fetch(&runs, number, last) }
    for next in stride(from: number + 1, through: min(last, number + depth), by: 1)
    where ahead[next] == nil && !cache.contains(where: { $0.number == next }) {
      let run = runs.bytes(of: next)
      // What is not on its way from a server yet is fetched with others later.
      if run == nil, source.isRemote { break }
      ahead[next] = source.decodeAhead(index.frames[next], from: run)
    }
    let frame =
      try job.map { try $0.take() } ?? source.decode(index.frames[number], from: runs.bytes(of: number))
    if cache.count == Self.cacheSize {
      var oldest = cache.removeFirst().frame
      // While a caller is still reading it, it cannot be reused.
      if isKnownUniquelyReferenced(&oldest) { source.recycle(oldest) }
    }
    cache.append((number, frame))
    return frame
  }
}

// MARK: Frames

/// One frame of an archive: where it lies in the file, and which part of the tar stream it holds.
package struct ArchiveFrame: Sendable, Hashable {
  /// Where the frame starts in the file, and its bytes there.
  package let fileOffset: UInt64, compressedSize: Int
  /// Where its content starts in the tar stream, and its bytes there.
  package let tarOffset: UInt64, plainSize: Int
  /// The low half of XXH64 of the content.
  package let checksum: UInt32

  /// Where the next frame's content starts in the tar stream.
  package var tarEnd: UInt64 { tarOffset + UInt64(plainSize) }
  /// Whether it is full of zeros, as the middle of a hole is; compared with its content when that is read.
  var isHole: Bool { plainSize == ArchiveFormat.frameSize && checksum == ArchiveFormat.checksumOfZeros }
}

/// The data frames of an archive, checked against each other and against the file's size.
struct FrameIndex: Sendable {
  let frames: [ArchiveFrame]
  /// Where the frame with the manifest's location starts.
  let locationOffset: UInt64

  var tarSize: UInt64 { frames.last?.tarEnd ?? 0 }
  /// The bytes of the tar stream that are not in frames of zeros, which are holes again when they are restored.
  var solidSize: UInt64 { frames.reduce(0) { $0 + ($1.isHole ? 0 : UInt64($1.plainSize)) } }

  /// Expects the table's entries and its place in the file. Throws `DrydockError` when they disagree.
  init(_ entries: [SeekTable.Entry], tableOffset: UInt64) throws {
    guard let last = entries.last else { throw DrydockError.damaged("the seek table is empty") }
    guard last.plainSize == 0, last.compressedSize == UInt32(MemberLocation.frameSize),
      last.checksum == ArchiveFormat.checksumOfNothing
    else { throw MemberLocation.missing }
    var frames: [ArchiveFrame] = []
    frames.reserveCapacity(entries.count - 1)
    var file: UInt64 = 0
    var tar: UInt64 = 0
    for (index, entry) in entries.dropLast().enumerated() {
      guard (1...ArchiveFormat.frameSize).contains(Int(entry.plainSize)) else {
        throw DrydockError(
          .limit,
          "frame \(index) claims \(entry.plainSize) bytes, outside of 1 to \(ArchiveFormat.frameSize); "
            + "the archive is damaged or hostile")
      }
      guard (ArchiveFormat.smallestFrame...Zstd.largestFrame).contains(Int(entry.compressedSize)) else {
        throw DrydockError.damaged(
          "frame \(index) claims an impossible size of \(entry.compressedSize) bytes")
      }
      frames.append(
        ArchiveFrame(
          fileOffset: file, compressedSize: Int(entry.compressedSize), tarOffset: tar,
          plainSize: Int(entry.plainSize), checksum: entry.checksum))
      file += UInt64(entry.compressedSize)
      tar += UInt64(entry.plainSize)
    }
    guard file + UInt64(MemberLocation.frameSize) == tableOffset else {
      throw DrydockError.damaged("the seek table's sizes do not add up to the file's")
    }
    self.frames = frames
    locationOffset = file
  }

  /// Where frames that follow each other are in the file.
  func bytes(of frames: Range<Int>) -> Range<UInt64> {
    let (first, last) = (self.frames[frames.lowerBound], self.frames[frames.upperBound - 1])
    return first.fileOffset..<(last.fileOffset + UInt64(last.compressedSize))
  }

  /// The frame that holds a place of the tar stream, which must lie inside of it.
  func frame(at tarOffset: UInt64) -> Int {
    (0..<frames.count - 1).first(since: { frames[$0].tarEnd > tarOffset })
  }
}

/// The plain bytes of one frame.
///
/// Unchecked because it is filled by the thread that made it and only read afterwards; it is reused only when no
/// other reference is left.
final class PlainFrame: @unchecked Sendable {
  private let memory: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init() { memory = .allocate(byteCount: ArchiveFormat.frameSize, alignment: 4096) }

  deinit { memory.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

  /// Fills the frame: `body` gets that much memory.
  func fill(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    self.count = 0
    try body(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]))
    self.count = count
  }
}

// MARK: Decoding

/// Reads and decompresses single frames of an archive, on any thread, reusing memory; makes readers of its ranges. The archive
/// must stay open as long as they are used.
package final class RangeSource: Sendable {
  let index: FrameIndex
  fileprivate let path: String?
  private let archive: ArchiveSource
  private let pool = Mutex<(decompressors: [FrameDecompressor], frames: [PlainFrame])>(([], []))
  private let bytesDecoded = Atomic<UInt64>(0)
  private let queue = DispatchQueue(label: "drydock.frames.reading", attributes: .concurrent)
  private let jobs = DispatchGroup()
  private let requests: DispatchSemaphore

  init(_ archive: ArchiveSource, _ index: FrameIndex, path: String?) {
    (self.archive, self.index, self.path) = (archive, index, path)
    requests = DispatchSemaphore(value: archive.requests)
  }

  package func reader() -> RangeReader { RangeReader(self, decodesAhead: false) }

  /// Whether every read takes a request to a server.
  package var isRemote: Bool { archive.isRemote }

  /// The compressed bytes that all readers of the archive have read so far.
  package var bytesRead: UInt64 { bytesDecoded.load(ordering: .relaxed) }

  /// - Parameter run: what was fetched with the frame; nil to read it alone.
  fileprivate func decode(
    _ frame: ArchiveFrame, from run: PendingResult<ArchiveSource>? = nil
  ) throws -> PlainFrame {
    var bytes = archive
    // A damaged piece of a file spoils what was fetched with it: then this frame is asked for alone.
    do { bytes = try run?.take() ?? archive } catch let error as DrydockError where error.code != .io {}
    let pooled = pool.withLock { ($0.decompressors.popLast(), $0.frames.popLast()) }
    let decompressor = try pooled.0 ?? FrameDecompressor()
    let plain = pooled.1 ?? PlainFrame()
    defer { pool.withLock { $0.decompressors.append(decompressor) } }
    try decompressor.decompress(frame, of: bytes, into: plain)
    bytesDecoded.add(UInt64(frame.compressedSize), ordering: .relaxed)
    return plain
  }

  /// Takes back the memory of a frame, which must not be in use.
  fileprivate func recycle(_ plain: PlainFrame) {
    pool.withLock { if $0.frames.count < 2 { $0.frames.append(plain) } }
  }

  fileprivate func decodeAhead(
    _ frame: ArchiveFrame, from run: PendingResult<ArchiveSource>?
  ) -> PendingResult<PlainFrame> {
    let job = PendingResult<PlainFrame>()
    queue.async(group: jobs) { job.finish(Result { try self.decode(frame, from: run) }) }
    return job
  }

  /// Sends requests for what a reader is going to need, each on a thread of its own: the threads of a queue are as many as
  /// cores, and these wait.
  fileprivate func fetch(_ runs: inout FetchedRuns, _ number: Int, _ last: Int) {
    runs.prepare(number, last, index) { frames in
      let job = PendingResult<ArchiveSource>()
      let place = index.bytes(of: frames)
      jobs.enter()
      Thread.detachNewThread {
        self.requests.wait()
        job.finish(Result { try self.archive.part(place) })
        self.requests.signal()
        self.jobs.leave()
      }
      return job
    }
  }

  /// Waits until no other thread uses the file.
  func waitForJobs() { jobs.wait() }
}
