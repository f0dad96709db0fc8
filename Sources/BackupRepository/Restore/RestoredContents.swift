import ArchiveManifest
import ArchiveFile
import FileSystem
import Foundation

/// The files whose content a restore takes from an archive. There may be a million: of each only the path, and where its entry
/// and its content are.
struct RestoredContents: Sendable {
  private(set) var places: [ContentPlace] = []
  private(set) var paths = PathList()
  /// Where the pieces are of contents that are in several ones, with the number of the content.
  private(set) var pieces: [(content: UInt32, archive: UInt16, offset: UInt64, length: UInt64)] = []
  /// By its number, each entry that is another one than in the manifest: a hard link with the content of its first name.
  private var changed: [Int: ManifestEntry] = [:]
  private let keepsSetID: Bool

  init(keepsSetID: Bool) { self.keepsSetID = keepsSetID }

  /// Adds the entry that is at a place of the manifest.
  mutating func append(_ entry: ManifestEntry, _ place: (part: Int, row: Int64), of archive: Archive) {
    if entry.extents.count > 1 {
      let number = UInt32(places.count)
      pieces += entry.extents.map { (number, ContentPlace.number($0, in: archive), $0.offset, $0.length) }
    }
    places.append(ContentPlace(entry, place, of: archive))
    paths.append(entry.path)
  }

  /// Adds an entry that the manifest does not have.
  mutating func append(changed entry: ManifestEntry, of archive: Archive) {
    changed[places.count] = entry
    append(entry, (0, 0), of: archive)
  }

  mutating func removeAll(where isRemoved: (ContainerPath) -> Bool) {
    let all = self
    (places, paths, pieces, changed) = ([], PathList(), [], [:])
    var piece = 0
    for (number, path) in all.paths.enumerated() {
      let first = piece
      while piece < all.pieces.count, all.pieces[piece].content == number { piece += 1 }
      if isRemoved(path) { continue }
      let moved = UInt32(places.count)
      pieces += all.pieces[first..<piece].map { (moved, $0.archive, $0.offset, $0.length) }
      changed[places.count] = all.changed[number]
      places.append(all.places[number])
      paths.append(path)
    }
  }

  /// An entry, without the rights that its file may not get.
  func entry(_ number: Int, _ reader: ChainReader) throws -> ManifestEntry {
    if let entry = changed[number] { return entry }
    let entry = try reader.entry(places[number])
    return keepsSetID ? entry : entry.withoutRights()
  }

  /// Where contents are in the tar streams of a chain's archives, by the archives' numbers.
  func pieces(_ numbers: [UInt32], ofParts count: Int) -> [[(offset: UInt64, length: UInt64)]] {
    var result = [[(offset: UInt64, length: UInt64)]](repeating: [], count: count)
    for number in numbers {
      let place = places[Int(number)]
      let first = pieces.indices.first(since: { pieces[$0].content >= number })
      let several = pieces[first...].prefix { $0.content == number }
      if several.isEmpty { result[Int(place.archive)].append((place.offset, place.size)) }
      for piece in several { result[Int(piece.archive)].append((piece.offset, piece.length)) }
    }
    return result
  }

  /// Bytes of all contents.
  var size: UInt64 { places.reduce(0) { $0 &+ $1.size } }
}

/// Where an entry is in the manifest, and its content in the archives.
struct ContentPlace: Sendable {
  /// Where the content starts in the tar stream of its archive.
  let offset: UInt64
  let size: UInt64
  /// The entry's row in the manifest of an archive of the chain.
  let row: UInt32
  let part: UInt16
  /// The archive of the chain that has the content, or its first piece.
  let archive: UInt16

  init(_ entry: ManifestEntry, _ place: (part: Int, row: Int64), of archive: Archive) {
    let first = entry.extents.first { _ in true }
    (offset, size) = (first?.offset ?? 0, entry.size)
    (row, part, self.archive) = (
      UInt32(place.row), UInt16(place.part), first.map { Self.number($0, in: archive) } ?? 0
    )
  }

  /// The number of the archive of a piece; 0 when the chain lacks it.
  static func number(_ extent: Extent, in archive: Archive) -> UInt16 {
    UInt16(archive.parts.firstIndex { $0.header.archive == extent.archive } ?? 0)
  }

  /// A group of fewer bytes is not worth a thread: it would only decode frames that the next one decodes again.
  private static let smallestGroup: UInt64 = 16 << 20
  /// Making a file takes as long as reading and writing so many bytes.
  private static let cost: UInt64 = 64 << 10

  /// The numbers of contents that follow each other in the archives, in as many groups as keep all cores busy to the end; the
  /// largest groups first.
  ///
  /// - Parameter isRemote: whether each group begins with requests that take a while, so that few and long ones take less time.
  static func groups(_ places: [ContentPlace], isRemote: Bool) -> [[UInt32]] {
    let total = places.reduce(0) { $0 &+ $1.size &+ cost }
    let cores = UInt64(max(ProcessInfo.processInfo.activeProcessorCount, 1))
    let limit = max(smallestGroup, total / ((isRemote ? 2 : 8) * cores))
    var numbers = places.indices.map { UInt32($0) }
    numbers.sort {
      let (left, right) = (places[Int($0)], places[Int($1)])
      return (left.archive, left.offset) < (right.archive, right.offset)
    }
    var groups: [(size: UInt64, files: [UInt32])] = []
    for number in numbers {
      if groups.isEmpty || groups[groups.count - 1].size >= limit { groups.append((0, [])) }
      groups[groups.count - 1].size &+= places[Int(number)].size &+ cost
      groups[groups.count - 1].files.append(number)
    }
    return groups.sorted { $0.size > $1.size }.map(\.files)
  }
}
