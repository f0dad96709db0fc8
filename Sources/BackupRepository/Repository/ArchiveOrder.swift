import Formats
import Foundation

/// The order of archives in time: by their own times, unless something contradicts them.
///
/// A clock that was a day ahead makes an archive that stays the newest for a day. Two things contradict it: the file was
/// written before the time that its header says; and a header names an archive that was there already when it was
/// written, although its time is later. Of a signed archive only the second counts: its header cannot be changed, while
/// whoever can write the repository can set the times of files.
struct ArchiveOrder {
  /// What determines an archive's position in the order.
  struct Ordered {
    var label: ArchiveLabel
    var file: PlaceFile
    /// Whether there is a signature, valid or not: a restore refuses one that is not.
    var isSigned: Bool
    /// The beginnings of the ids of those that are known to be older.
    var follows: [String] = []
    /// The id of the archive that it is a copy of.
    var source: String?
    var path: String

    /// The time that counts: at most a minute after the file was written, so that of two clocks that were ahead, the one that was
    /// further ahead does not make an archive older.
    var time: String { min(latest ?? label.time, label.time) }

    /// When the file was written, if before the archive's time. Programs that do not keep times of files set none, or an early one.
    var published: String? {
      guard let latest, latest < label.time else { return nil }
      return UTCTime.text(Date(timeIntervalSince1970: Double(file.modified / 1_000_000_000)))
    }

    /// The latest time at which it can have been captured: correct clocks may differ by seconds.
    private var latest: String? {
      let (minute, start): (Int64, Int64) = (60, 315_532_800)
      let modified = file.modified / 1_000_000_000
      guard !isSigned, modified > start else { return nil }
      return UTCTime.text(Date(timeIntervalSince1970: Double(modified + file.timeError + minute)))
    }

    /// Of archives of one second, the one that was written first comes first.
    fileprivate var rank: Rank {
      Rank(time: time, ownTime: label.time, modified: file.modified, path: path)
    }
  }

  fileprivate struct Rank: Comparable {
    var time: String, ownTime: String
    var modified: Int64
    var path: String

    static func < (left: Rank, right: Rank) -> Bool {
      (left.time, left.ownTime, left.modified, left.path)
        < (right.time, right.ownTime, right.modified, right.path)
    }
  }

  /// Sorts, oldest first; items of unknown time come last, by path.
  static func sorted<T>(_ items: [T], path: (T) -> String, order: (T) -> Ordered?) -> [T] {
    let archives = items.map(order)
    let known = archives.compactMap { $0 }
    let byID = byID(known)
    var found: [String: [Rank]] = [:]
    let ranked = zip(items, archives).map { item, archive in
      (item: item, ranks: archive.map { ranks(of: $0, byID, &found) } ?? [], own: archive?.rank)
    }
    return ranked.sorted { left, right in
      if left.ranks.isEmpty || right.ranks.isEmpty {
        return left.ranks.isEmpty == right.ranks.isEmpty
          ? path(left.item) < path(right.item) : right.ranks.isEmpty
      }
      guard left.ranks == right.ranks, let own = left.own, let other = right.own else {
        return left.ranks.lexicographicallyPrecedes(right.ranks)
      }
      return own < other
    }.map(\.item)
  }

  /// Archives by the first digits of their ids: of several copies the one that was written first, and where none is here, the first
  /// that was made of it under another id.
  fileprivate static func byID(_ archives: [Ordered]) -> [Substring: Ordered] {
    let first = { (left: Ordered, right: Ordered) in left.rank < right.rank ? left : right }
    let own = Dictionary(archives.map { ($0.label.id.prefix(8), $0) }, uniquingKeysWith: first)
    let made = archives.compactMap { archive in archive.source.map { ($0.prefix(8), archive) } }
    return Dictionary(made, uniquingKeysWith: first).merging(own) { _, own in own }
  }

  /// The archive that determines the place of another one: a copy is as old as what it was made of. A signed archive has its own
  /// place, because anyone who can write to the repository can add an archive that claims to be its source.
  private static func original(of archive: Ordered, _ byID: [Substring: Ordered]) -> Ordered {
    guard !archive.isSigned else { return archive }
    var (found, seen) = (archive, Set([archive.path]))
    while let next = found.source.flatMap({ named($0, by: found, byID) })
      ?? named(found.label.id, by: found, byID), seen.insert(next.path).inserted
    { found = next }
    return found
  }

  /// The rank of an archive, behind the ranks of the newest one that it follows; behind those of its parent where it would not
  /// come after that otherwise.
  ///
  /// - Parameter found: the ranks of archives, by their paths; none of one that is being looked at, so that a circle ends.
  private static func ranks(
    of archive: Ordered, _ byID: [Substring: Ordered], _ found: inout [String: [Rank]]
  ) -> [Rank] {
    let archive = original(of: archive, byID)
    // Without recursion: a chain may be long.
    var (chain, next): ([Ordered], Ordered?) = ([], archive)
    while let link = next, found[link.path] == nil {
      found[link.path] = []
      chain.append(link)
      next = parent(of: link, byID)
    }
    for link in chain.reversed() {
      var newest: [Rank] = []
      for older in followed(by: link, byID) {
        let ranks = ranks(of: older, byID, &found)
        if newest.lexicographicallyPrecedes(ranks) { newest = ranks }
      }
      let ranks = newest + [link.rank]
      let above = parent(of: link, byID).flatMap { found[$0.path] } ?? []
      found[link.path] = above.lexicographicallyPrecedes(ranks) ? ranks : above + [link.rank]
    }
    return found[archive.path] ?? []
  }

  /// Those that an archive names as older, and its parent.
  static func older(than archive: Ordered, _ byID: [Substring: Ordered]) -> [Ordered] {
    followed(by: archive, byID) + [parent(of: archive, byID)].compactMap { $0 }
  }

  private static func followed(by archive: Ordered, _ byID: [Substring: Ordered]) -> [Ordered] {
    archive.follows.compactMap { named($0, by: archive, byID) }
  }

  private static func parent(of archive: Ordered, _ byID: [Substring: Ordered]) -> Ordered? {
    archive.label.parent.flatMap { named($0, by: archive, byID) }.map { original(of: $0, byID) }
  }

  /// Another archive of the same app and instance, by the beginning of its id.
  private static func named(
    _ id: String, by archive: Ordered, _ byID: [Substring: Ordered]
  ) -> Ordered? {
    byID[id.prefix(8)].flatMap {
      let isMeant = [$0.label.id, $0.source].compactMap { $0 }.contains {
        $0.hasPrefix(id) || id.hasPrefix($0)
      }
      return isMeant && $0.label.nameKey == archive.label.nameKey && $0.path != archive.path ? $0 : nil
    }
  }
}

package struct ClockWarning: Sendable, Encodable, CustomStringConvertible {
  package enum Kind: String, Sendable, Encodable {
    /// The time lies in the future.
    case future
    /// The file was written before the archive's time.
    case published
    /// It existed when a snapshot with an earlier time was taken.
    case later
    /// It was made after one with a later time.
    case backwards
  }

  package var kind: Kind, archive: String
  /// The archive's time, and the one that contradicts it.
  package var time: String, otherTime: String
  var owner: String

  private enum CodingKeys: CodingKey { case kind, archive, time, otherTime }

  package var description: String {
    switch kind {
    case .future: "\(archive): of \(time), which is in the future: a clock was ahead, or this one is behind"
    case .published:
      "\(archive): of \(time), and written at \(otherTime): a clock was wrong, the earlier time counts"
    case .later:
      "\(archive): of \(time), later than the new archive: a clock is wrong, or was"
    case .backwards:
      "\(archive): of \(time), and made after one of \(otherTime): a clock was wrong, it counts as the newer one"
    }
  }

  /// How far clocks may differ, in seconds.
  static let tolerance = 60.0
}

extension ClockWarning {
  /// A warning when an archive's time lies in the future.
  package init?(_ header: Archive.Header, path: String, now: Date = Date()) {
    self.init(ArchiveLabel(header), path, now)
  }

  init?(_ label: ArchiveLabel, _ path: String, _ now: Date) {
    guard label.time > UTCTime.text(now.addingTimeInterval(Self.tolerance)) else { return nil }
    self.init(
      kind: .future, archive: path, time: label.time, otherTime: UTCTime.text(now), owner: label.owner)
  }

  init(_ header: Archive.Header, after other: ArchiveLabel, _ path: String) {
    self.init(
      kind: .later, archive: path, time: other.time, otherTime: header.time, owner: other.owner)
  }
}

extension Repository.Item {
  var ordered: ArchiveOrder.Ordered {
    ArchiveOrder.Ordered(
      label: ArchiveLabel(header), file: file, isSigned: signature != .none, follows: header.older,
      source: (header.exportedFrom ?? header.compactedFrom)?.description, path: path)
  }
}

extension Repository.LockedArchive {
  var ordered: ArchiveOrder.Ordered? {
    label.map {
      ArchiveOrder.Ordered(label: $0, file: file, isSigned: signature != .none, path: path)
    }
  }
}

extension Repository.Listing {
  /// An archive that can be read, or one that no key at hand opens.
  package enum Entry: Sendable {
    case item(Repository.Item), locked(Repository.LockedArchive)

    /// Its id, or the beginning of it; nil when no key opens it and its name is not an archive's.
    package var id: String? { ordered?.label.id }

    var ordered: ArchiveOrder.Ordered? {
      switch self {
      case .item(let item): item.ordered
      case .locked(let locked): locked.ordered
      }
    }
    var path: String {
      switch self {
      case .item(let item): item.path
      case .locked(let locked): locked.path
      }
    }

  }

  /// Asks the server for the times of all files, if one in a listing contradicts its archive's: they may be many hours wrong, and
  /// must not decide the order.
  mutating func makeTimesExact(at place: any Place) throws {
    let all = items.map(\.ordered) + locked.compactMap(\.ordered)
    guard all.contains(where: { $0.file.timeError > 0 && $0.published != nil }) else { return }
    for index in items.indices {
      items[index].file = try place.file(items[index].file.name) ?? items[index].file
    }
    for index in locked.indices {
      locked[index].file = try place.file(locked[index].file.name) ?? locked[index].file
    }
  }

  /// All archives, oldest first; locked ones that are named by hand come last.
  package var entries: [Entry] {
    ArchiveOrder.sorted(
      items.map(Entry.item) + locked.map(Entry.locked), path: { $0.path }, order: { $0.ordered })
  }

  /// The wrong times of archives, oldest first.
  ///
  /// - Parameter path: an archive: only those of its app and instance count.
  package func clockWarnings(of path: String? = nil, now: Date = Date()) -> [ClockWarning] {
    let archives = entries.compactMap(\.ordered)
    let owner = path.flatMap { path in archives.first { $0.path == path }?.label.nameKey }
    let byID = ArchiveOrder.byID(archives)
    return archives.compactMap { archive in
      guard owner == nil || owner == archive.label.nameKey else { return nil }
      if let warning = ClockWarning(archive.label, archive.path, now) { return warning }
      // Of several snapshots after the wrong one, the first may be of an earlier time than the next.
      let older = ArchiveOrder.older(than: archive, byID).filter { $0.time > archive.time }
        .max { $0.time < $1.time }
      guard let other = older?.time ?? archive.published else { return nil }
      return ClockWarning(
        kind: older == nil ? .published : .backwards, archive: archive.path, time: archive.label.time,
        otherTime: other, owner: archive.label.owner)
    }
  }
}
