import DrydockErrors

/// A walk over all members, in their order.
///
/// Names are checked (see `MemberName`), that no name occurs twice, that nothing lies below a file or link,
/// and that hard links name earlier files. Targets of symbolic links are not checked.
package final class MemberWalk {
  private let reader: ArchiveReader
  private let mayRepeat: ([UInt8]) -> Bool
  private let walk: HeaderWalk
  private var tree = MemberTree()

  init(_ reader: ArchiveReader, mayRepeat: @escaping ([UInt8]) -> Bool) throws {
    (self.reader, self.mayRepeat) = (reader, mayRepeat)
    walk = try reader.located { try reader.ranges.headers(from: 0) }
    reader.ranges.readsEverything = true
  }

  /// The next member with the offset of its content in the tar stream; nil at the stream's end, which is checked then.
  package func next() throws -> (member: ArchiveMember, offset: UInt64)? {
    guard let (member, offset) = try reader.located({ try walk.nextIfAny() }) else {
      try reader.located { try reader.ranges.checkEnd(after: walk.position) }
      return nil
    }
    try reader.located { try tree.add(member, mayRepeat: mayRepeat(member.name)) }
    return (member, offset)
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

  /// The first member, and where its content starts; nil when there is none.
  package func firstMember() throws -> (member: ArchiveMember, contentOffset: UInt64)? {
    try located { try ranges.headers(from: 0).nextIfAny() }
  }
}

/// A walk over the headers of some members, whose content is read by its place. Names that occur twice in the archive
/// are found by ``MemberWalk`` only.
package final class HeaderWalk {
  private let ranges: RangeReader
  private let start: UInt64
  private let decoder: TarDecoder
  /// Where the next member's headers start in the tar stream.
  package private(set) var position: UInt64

  init(_ ranges: RangeReader, from start: UInt64) throws {
    self.ranges = ranges
    (self.start, position) = (start, start)
    decoder = try TarDecoder(TarSource(ranges, from: start))
  }

  /// The next member, and where its content starts; nil at the stream's end.
  func nextIfAny() throws -> (member: ArchiveMember, contentOffset: UInt64)? {
    guard let (member, header, content) = try decoder.nextMember() else { return nil }
    // The decoder counts from where it began.
    let (headerOffset, contentOffset) = (start &+ header, start &+ content)
    // Another program could take data between members for a member.
    guard headerOffset == position, headerOffset < contentOffset else {
      throw DrydockError.damaged("unexpected data in front of \(member.printableName)")
    }
    var bytes: [UInt8] = []
    try ranges.read(offset: headerOffset, length: contentOffset - headerOffset) { bytes += $0 }
    try TarHeader.check(bytes, of: member)
    let (size, tarSize) = (member.contentSize, ranges.index.tarSize)
    let room = tarSize - min(contentOffset, tarSize)
    guard size <= room, ArchiveFormat.padded(size) <= room else {
      throw DrydockError.truncated("\(member.printableName) reaches beyond the end of the tar stream")
    }
    position = contentOffset + ArchiveFormat.padded(size)
    return (member, contentOffset)
  }

  /// As ``nextIfAny()``, where a member must come.
  package func next() throws -> (member: ArchiveMember, contentOffset: UInt64) {
    guard let next = try nextIfAny() else {
      try ranges.checkEnd(after: position)
      throw DrydockError.truncated("the tar stream ends before its last member")
    }
    return next
  }
}

extension RangeReader {
  /// Walks over headers from a place where a member's start.
  package func headers(from start: UInt64) throws -> HeaderWalk { try HeaderWalk(self, from: start) }

  /// Checks that only zeros, at least two blocks, follow the last member: else another reader could see more members.
  package func checkEnd(after end: UInt64) throws {
    let tarSize = index.tarSize
    guard end <= tarSize, tarSize - end >= ArchiveFormat.tarEnd else {
      throw DrydockError.truncated("the tar stream has no end marker")
    }
    try read(offset: end, length: tarSize - end) { bytes in
      guard bytes.isZero else { throw DrydockError.damaged("the tar stream continues after its end") }
    }
  }
}
