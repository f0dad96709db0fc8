/// A source that gives bytes in pieces, with a look ahead.
final class BufferedSource {
  /// Fills the start of a buffer and says how much of it; 0 is the end.
  typealias Source = (UnsafeMutableRawBufferPointer) throws -> Int

  /// Room that a source always has at least: one may give whole lines only.
  private static let spare = 4096

  private let source: Source
  private var memory: UnsafeMutableRawBufferPointer
  private var start = 0
  private var end = 0
  private var isAtEnd = false

  init(_ source: @escaping Source) {
    self.source = source
    memory = .allocate(byteCount: 1 << 17, alignment: 16)
  }

  deinit { memory.deallocate() }

  /// The bytes that come next: `count` of them or more, or fewer where the source ends. They stay valid until the
  /// next call, and stay next until they are skipped.
  func next(_ count: Int) throws -> UnsafeRawBufferPointer {
    if end - start < count { makeRoom(for: count) }
    while end - start < count, !isAtEnd {
      let added = try source(UnsafeMutableRawBufferPointer(rebasing: memory[end...]))
      precondition(added >= 0 && added <= memory.count - end, "a source gave more than there is room for")
      end += added
      isAtEnd = added == 0
    }
    return UnsafeRawBufferPointer(rebasing: memory[start..<end])
  }

  /// Goes on behind bytes that `next` gave.
  func skip(_ count: Int) {
    precondition(count <= end - start)
    start += count
  }

  /// Moves what is left to the front, of larger memory if need be.
  private func makeRoom(for count: Int) {
    let rest = UnsafeRawBufferPointer(rebasing: memory[start..<end])
    if count + Self.spare > memory.count {
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * count + Self.spare, alignment: 16)
      larger.copyMemory(from: rest)
      memory.deallocate()
      memory = larger
    } else {
      memory.copyMemory(from: rest)
    }
    (start, end) = (0, rest.count)
  }
}
