/// The plain bytes of one frame.
///
/// Unchecked because it is filled by the thread that made it and only read afterwards; reuse waits until nobody
/// else has a reference.
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
