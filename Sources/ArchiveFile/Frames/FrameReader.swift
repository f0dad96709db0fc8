import Foundation

/// The plain bytes of an archive's frames in any order: keeps the last few, and reads ahead when told how far.
final class FrameReader {
  let index: FrameIndex
  let decoder: FrameDecoder
  private var cache: [(number: Int, frame: PlainFrame)] = []
  private var ahead: [Int: FrameJob] = [:]
  private let depth: Int

  private static let cacheSize = 2

  init(_ archive: ArchiveBytes, _ index: FrameIndex) {
    self.index = index
    decoder = FrameDecoder(archive)
    depth = min(max(ProcessInfo.processInfo.activeProcessorCount, 1), 4)
  }

  /// A reader with what another one uses, which does not read ahead.
  init(_ decoder: FrameDecoder, _ index: FrameIndex) {
    (self.decoder, self.index, depth) = (decoder, index, 0)
  }

  /// Waits until no other thread uses the file.
  func stop() { decoder.waitForJobs() }

  var bytesRead: UInt64 { decoder.bytesRead }

  /// A frame's bytes. The next ones, up to and including `last`, are decoded ahead on other threads.
  func frame(_ number: Int, readingAheadTo last: Int) throws -> PlainFrame {
    if let hit = cache.firstIndex(where: { $0.number == number }) {
      let found = cache.remove(at: hit)
      cache.append(found)
      return found.frame
    }
    let job = ahead.removeValue(forKey: number)
    // Jobs behind or far away were for another place; they end by themselves.
    ahead = ahead.filter { $0.key > number && $0.key <= number + depth }
    for next in stride(from: number + 1, through: min(last, number + depth), by: 1)
    where ahead[next] == nil && !cache.contains(where: { $0.number == next }) {
      ahead[next] = decoder.decodeAhead(index.frames[next])
    }
    let frame = try job.map { try $0.take() } ?? decoder.decode(index.frames[number])
    remember(number, frame)
    return frame
  }

  private func remember(_ number: Int, _ frame: PlainFrame) {
    if cache.count == Self.cacheSize {
      var oldest = cache.removeFirst().frame
      // Somebody may still be reading it: then it just goes when they are done.
      if isKnownUniquelyReferenced(&oldest) { decoder.recycle(oldest) }
    }
    cache.append((number, frame))
  }
}
