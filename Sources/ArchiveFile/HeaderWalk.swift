import DrydockErrors

/// A walk over the headers of some members, for one who reads their content by its place.
///
/// It knows the names of these members only: that no name comes twice in an archive takes a walk over all.
package final class HeaderWalk {
  private let ranges: RangeReader
  private let start: UInt64
  let decoder: TarDecoder
  /// Where the next member's headers start in the tar stream.
  package private(set) var position: UInt64

  init(_ ranges: RangeReader, from start: UInt64) throws {
    self.ranges = ranges
    (self.start, position) = (start, start)
    decoder = try TarDecoder(TarSource(ranges.frameReader, from: start))
  }

  /// The next member, and where its content starts; nil at the stream's end.
  ///
  /// - Throws: `DrydockError` when its header is not as the format says.
  func nextIfAny() throws -> (member: ArchiveMember, contentOffset: UInt64)? {
    guard let (member, header, content) = try decoder.nextMember() else { return nil }
    // The decoder counts from where it began.
    let (headerOffset, contentOffset) = (start &+ header, start &+ content)
    // What is between members is what another program could take for one.
    guard headerOffset == position, headerOffset < contentOffset else {
      throw DrydockError.damaged("there is something in front of \(member.printableName)")
    }
    var bytes: [UInt8] = []
    try ranges.read(offset: headerOffset, length: contentOffset - headerOffset) { bytes += $0 }
    try TarHeader.check(bytes, of: member)
    position = contentOffset &+ ArchiveFormat.padded(member.contentSize)
    return (member, contentOffset)
  }

  /// As ``nextIfAny()``, where a member must come.
  package func next() throws -> (member: ArchiveMember, contentOffset: UInt64) {
    guard let next = try nextIfAny() else {
      throw DrydockError.truncated("the tar stream ends before its last member")
    }
    return next
  }
}

extension RangeReader {
  /// Walks over headers from a place where a member's start.
  package func headers(from start: UInt64) throws -> HeaderWalk { try HeaderWalk(self, from: start) }
}
