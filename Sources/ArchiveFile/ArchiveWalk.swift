/// The content of the member that a walk is at. Valid during the visit only.
public final class MemberContent {
  private enum State { case unread, read, over }

  /// The bytes of content.
  public let size: UInt64
  private let decoder: TarDecoder
  private var state = State.unread

  init(_ decoder: TarDecoder, size: UInt64) {
    self.decoder = decoder
    self.size = size
  }

  /// Reads the content, once. `body` gets it piece by piece; a piece is valid during the call only.
  ///
  /// - Throws: `ArchiveError`, or what `body` throws.
  public func read(into body: (UnsafeRawBufferPointer) throws -> Void) throws {
    guard state == .unread else {
      throw ArchiveError(.invalidUse, "a member's content can be read once, and during its visit only")
    }
    state = .read
    try decoder.readContent(size: size, into: body)
  }

  func end() { state = .over }
}

extension ArchiveReader {
  /// Walks all members in their order. `visit` gets each with the place of its content in the tar stream and the
  /// content itself; content that it does not read is skipped without being decompressed.
  ///
  /// Names are checked (see `MemberName`), and that no name comes twice, that nothing lies below a file or link,
  /// and that hard links name earlier files. Where symbolic links point is not checked.
  ///
  /// - Parameter mayRepeat: whether a file of that name may come again: one that changed while it was stored is
  ///   stored once more, and the later one counts.
  /// - Throws: `ArchiveError` at the first thing that is wrong, or what `visit` throws.
  public func members(
    mayRepeat: ([UInt8]) -> Bool = { _ in false },
    _ visit: (ArchiveMember, UInt64, MemberContent) throws -> Void
  ) throws {
    let walk = try located { try ranges.headers(from: 0) }
    var tree = MemberTree()
    var end: UInt64 = 0
    while let (member, contentOffset) = try located({ try walk.nextIfAny() }) {
      try located { try tree.add(member, mayRepeat: mayRepeat(member.name)) }
      let size = member.contentSize
      let room = tarSize - min(contentOffset, tarSize)
      guard size <= room, ArchiveFormat.padded(size) <= room else {
        throw ArchiveError.truncated("\(member.printableName) reaches beyond the end of the tar stream").at(
          path)
      }
      let content = MemberContent(walk.decoder, size: size)
      defer { content.end() }
      do {
        try visit(member, contentOffset, content)
      } catch let error as ArchiveError {
        throw error.at(path)
      }
      end = walk.position
    }
    try checkEnd(after: end)
  }

  /// Checks that after the last member come two blocks of zeros and nothing but zeros: else a reader that looks further than
  /// this one would see other members.
  public func checkEnd(after end: UInt64) throws {
    guard tarSize - end >= ArchiveFormat.tarEnd else {
      throw ArchiveError.truncated("the tar stream has no end marker").at(path)
    }
    try read(offset: end, length: tarSize - end) { bytes in
      guard bytes.isZero else { throw ArchiveError.damaged("the tar stream goes on after its end").at(path) }
    }
  }
}
