/// The tar stream as libarchive's callbacks take it: frame after frame, with skips that touch no frame.
final class TarSource {
  /// The failure that made a callback refuse; libarchive's own message for it says less.
  private(set) var failure: (any Error)?
  private let frames: FrameReader
  private var position: UInt64 = 0
  private var current: PlainFrame?
  /// None before the first: many look at the first member only.
  private var lastNumber = -2

  /// - Parameter position: where the stream begins for its reader: at a member.
  init(_ frames: FrameReader, from position: UInt64 = 0) {
    (self.frames, self.position) = (frames, position)
  }

  /// The next bytes, valid until the next call; empty at the end; nil on failure.
  func next() -> UnsafeRawBufferPointer? {
    guard failure == nil else { return nil }
    let index = frames.index
    guard position < index.tarSize else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    let number = index.frame(at: position)
    // Reading ahead pays when frame follows frame; a walk that skips contents would waste it.
    let last = number == lastNumber + 1 ? index.frames.count - 1 : number
    lastNumber = number
    do {
      let plain = try frames.frame(number, readingAheadTo: last)
      current = plain
      let frame = index.frames[number]
      let bytes = UnsafeRawBufferPointer(rebasing: plain.bytes[Int(position - frame.tarOffset)...])
      position = frame.tarEnd
      return bytes
    } catch {
      failure = error
      return nil
    }
  }

  /// Skips up to that many bytes and says how many.
  func skip(_ count: Int64) -> Int64 {
    guard count > 0 else { return 0 }
    let step = min(UInt64(count), frames.index.tarSize - position)
    position += step
    return Int64(step)
  }
}
