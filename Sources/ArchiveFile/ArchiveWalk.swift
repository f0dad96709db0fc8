import DrydockErrors

/// The content of the member that a walk is at. Valid during the visit only.
package final class MemberContent {
  private enum State { case unread, read, over }

  /// The bytes of content.
  package let size: UInt64
  private let decoder: TarDecoder
  private let path: String?
  private var state = State.unread

  init(_ decoder: TarDecoder, size: UInt64, path: String?) {
    self.decoder = decoder
    (self.size, self.path) = (size, path)
  }

  /// Reads the content, once. `body` gets it piece by piece; a piece is valid during the call only.
  ///
  /// - Throws: `DrydockError`, or what `body` throws.
  package func read(into body: (UnsafeRawBufferPointer) throws -> Void) throws {
    guard state == .unread else {
      throw DrydockError(.invalidUse, "a member's content can be read once, and during its visit only")
    }
    state = .read
    do {
      try decoder.readContent(size: size, into: body)
    } catch let error as DrydockError {
      throw error.at(path)
    }
  }

  func end() { state = .over }
}

/// A walk over all members in their order, from one to the next.
///
/// Names are checked (see `MemberName`), and that no name comes twice, that nothing lies below a file or link,
/// and that hard links name earlier files. Where symbolic links point is not checked.
package final class MemberWalk {
  private let reader: ArchiveReader
  private let mayRepeat: ([UInt8]) -> Bool
  private let walk: HeaderWalk
  private var tree = MemberTree()
  private var content: MemberContent?

  init(_ reader: ArchiveReader, mayRepeat: @escaping ([UInt8]) -> Bool) throws {
    (self.reader, self.mayRepeat) = (reader, mayRepeat)
    walk = try reader.located { try reader.ranges.headers(from: 0) }
  }

  /// The next member with the place of its content in the tar stream and the content itself, valid until the next call;
  /// content that is not read is skipped without being decompressed. Nil at the stream's end, which is checked then.
  ///
  /// - Throws: `DrydockError` at the first thing that is wrong.
  package func next() throws -> (member: ArchiveMember, offset: UInt64, content: MemberContent)? {
    content?.end()
    guard let (member, offset) = try reader.located({ try walk.nextIfAny() }) else {
      try reader.checkEnd(after: walk.position)
      return nil
    }
    try reader.located { try tree.add(member, mayRepeat: mayRepeat(member.name)) }
    let size = member.contentSize
    let room = reader.tarSize - min(offset, reader.tarSize)
    guard size <= room, ArchiveFormat.padded(size) <= room else {
      throw DrydockError.truncated("\(member.printableName) reaches beyond the end of the tar stream").at(
        reader.path)
    }
    let content = MemberContent(walk.decoder, size: size, path: reader.path)
    self.content = content
    return (member, offset, content)
  }
}

extension ArchiveReader {
  /// A walk over all members.
  ///
  /// - Parameter mayRepeat: whether a file of that name may come again: one that changed while it was stored is
  ///   stored once more, and the later one counts.
  package func walk(mayRepeat: @escaping ([UInt8]) -> Bool = { _ in false }) throws -> MemberWalk {
    try MemberWalk(self, mayRepeat: mayRepeat)
  }

  /// Visits all members of a walk.
  ///
  /// - Throws: `DrydockError` at the first thing that is wrong, or what `visit` throws.
  package func members(_ visit: (ArchiveMember, UInt64, MemberContent) throws -> Void) throws {
    let walk = try walk()
    while let (member, offset, content) = try walk.next() {
      try located { try visit(member, offset, content) }
    }
  }

  /// Checks that after the last member come two blocks of zeros and nothing but zeros: else a reader that looks further than
  /// this one would see other members.
  package func checkEnd(after end: UInt64) throws {
    guard tarSize - end >= ArchiveFormat.tarEnd else {
      throw DrydockError.truncated("the tar stream has no end marker").at(path)
    }
    try read(offset: end, length: tarSize - end) { bytes in
      guard bytes.isZero else { throw DrydockError.damaged("the tar stream goes on after its end").at(path) }
    }
  }
}
