import FileSystem

/// A range of an archive's tar stream.
package struct Extent: Sendable, Equatable {
  /// Nil for the archive that is being written.
  package var archive: ArchiveID?
  package var offset: UInt64, length: UInt64

  package init(archive: ArchiveID? = nil, offset: UInt64, length: UInt64) {
    (self.archive, self.offset, self.length) = (archive, offset, length)
  }
}

/// Where a content is: pieces of tar streams, in the order of the content. Nearly all contents have one piece, which takes
/// no memory besides the entry.
package struct Extents: Sendable, Equatable, Sequence {
  private var first: Extent?
  private var others: [Extent] = []

  package init(_ extents: [Extent] = []) { for extent in extents { append(extent) } }

  /// The place of a whole content in the tar stream that is being written; none for an empty one.
  package init(at offset: UInt64, length: UInt64) {
    if length > 0 { first = Extent(offset: offset, length: length) }
  }

  package var isEmpty: Bool { first == nil }
  package var count: Int { first == nil ? 0 : 1 + others.count }

  /// Bytes of all pieces.
  package var length: UInt64 { reduce(0) { $0 + $1.length } }

  /// Adds a piece; joined with the last one where it continues that.
  package mutating func append(_ extent: Extent) {
    guard let last = others.last ?? first else { return first = extent }
    if last.archive == extent.archive, last.offset &+ last.length == extent.offset {
      if others.isEmpty {
        first?.length += extent.length
      } else {
        others[others.count - 1].length += extent.length
      }
    } else {
      others.append(extent)
    }
  }

  package struct Iterator: IteratorProtocol {
    fileprivate let extents: Extents
    private var index = -1

    fileprivate init(_ extents: Extents) { self.extents = extents }

    package mutating func next() -> Extent? {
      defer { index += 1 }
      return index < 0 ? extents.first : index < extents.others.count ? extents.others[index] : nil
    }
  }

  package func makeIterator() -> Iterator { Iterator(self) }

  /// The pieces of a range of the content.
  package func pieces(_ range: Range<UInt64>) -> [Extent] {
    var start: UInt64 = 0
    var result: [Extent] = []
    for extent in self {
      let part = range.clamped(to: start..<start + extent.length)
      if !part.isEmpty {
        let offset = extent.offset + (part.lowerBound - start)
        result.append(
          Extent(archive: extent.archive, offset: offset, length: part.upperBound - part.lowerBound))
      }
      start += extent.length
      if start >= range.upperBound { break }
    }
    return result
  }

  /// The places of a content of that size in which some ranges are in a new member, concatenated, and all else is as in
  /// this one.
  ///
  /// - Parameters:
  ///   - ranges: of the content, in their order.
  ///   - offset: where the member's content starts in the tar stream that is being written.
  package func replacing(_ ranges: [Range<UInt64>], by offset: UInt64, size: UInt64) -> Extents {
    var result = Extents()
    var rest = makeIterator()
    var (current, start) = (rest.next(), UInt64(0))
    // Adds what is here up to a position; both only grow.
    func keep(_ range: Range<UInt64>) {
      while let extent = current, start < range.upperBound {
        let end = start + extent.length
        let part = range.clamped(to: start..<end)
        if !part.isEmpty {
          result.append(
            Extent(
              archive: extent.archive, offset: extent.offset + (part.lowerBound - start),
              length: part.upperBound - part.lowerBound))
        }
        if end > range.upperBound { return }
        (current, start) = (rest.next(), end)
      }
    }
    var (position, own) = (UInt64(0), offset)
    for range in ranges {
      keep(position..<range.lowerBound)
      result.append(Extent(offset: own, length: UInt64(range.count)))
      own += UInt64(range.count)
      position = range.upperBound
    }
    keep(position..<size)
    return result
  }

  /// The place of the content of the member that an archive has of it: all pieces in that archive, concatenated. Nil
  /// when there is none.
  func member(in archive: ArchiveID?) -> Extent? {
    var found: Extent?
    for extent in self where extent.archive == archive {
      if found == nil { found = extent } else { found?.length += extent.length }
    }
    return found
  }

  /// The place of the whole content, if it is in one piece.
  package var single: Extent? { others.isEmpty ? first : nil }

  /// Whether a piece is in that archive.
  func need(_ archive: ArchiveID) -> Bool { contains { $0.archive == archive } }
}
