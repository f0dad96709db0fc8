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
    var path: String

    var time: String { published.map { min($0, label.time) } ?? label.time }

    /// When the file was written, if before the archive's time; correct clocks may differ by seconds. Programs that do not
    /// keep times of files set none, or an early one.
    var published: String? {
      let (minute, start): (Int64, Int64) = (60, 315_532_800)
      let modified = file.modified / 1_000_000_000
      guard !isSigned, modified > start else { return nil }
      let written = Date(timeIntervalSince1970: Double(modified + file.timeError + minute))
      guard UTCTime.text(written) < label.time else { return nil }
      return UTCTime.text(Date(timeIntervalSince1970: Double(modified)))
    }

    /// Of archives of one second, the one that was written first comes first. Each comes after those that it needs, whatever
    /// times a copy has set.
    fileprivate func rank(_ byID: [Substring: Ordered]) -> Rank {
      var (chain, seen) = ([self], Set([path]))
      while let id = chain[chain.count - 1].label.parent, let parent = byID[id.prefix(8)],
        seen.insert(parent.path).inserted
      {
        chain.append(parent)
      }
      let written = chain.reversed().reduce(Int64.min) { max($0 &+ 1, $1.file.modified) }
      return Rank(time: time, ownTime: label.time, modified: written, path: path)
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
    let byID = Dictionary(known.map { ($0.label.id.prefix(8), $0) }) { first, _ in first }
    var found: [String: [Rank]] = [:]
    let ranked = zip(items, archives).map { item, archive in
      (item: item, ranks: archive.map { ranks(of: $0, byID, &found) } ?? [])
    }
    return ranked.sorted { left, right in
      if left.ranks.isEmpty || right.ranks.isEmpty {
        return left.ranks.isEmpty == right.ranks.isEmpty
          ? path(left.item) < path(right.item) : right.ranks.isEmpty
      }
      return left.ranks.lexicographicallyPrecedes(right.ranks)
    }.map(\.item)
  }

  /// The rank of an archive, behind the ranks of the newest one that it follows.
  ///
  /// - Parameter found: the ranks of archives, by their paths; none of one that is being looked at, so that a circle ends.
  private static func ranks(
    of archive: Ordered, _ byID: [Substring: Ordered], _ found: inout [String: [Rank]]
  ) -> [Rank] {
    if let ranks = found[archive.path] { return ranks }
    found[archive.path] = []
    var newest: [Rank] = []
    for older in older(than: archive, byID) {
      let ranks = ranks(of: older, byID, &found)
      if newest.lexicographicallyPrecedes(ranks) { newest = ranks }
    }
    let ranks = newest + [archive.rank(byID)]
    found[archive.path] = ranks
    return ranks
  }

  /// Those that an archive names as older, of the same app and instance.
  static func older(than archive: Ordered, _ byID: [Substring: Ordered]) -> [Ordered] {
    archive.follows.compactMap { id in
      byID[id.prefix(8)].flatMap {
        $0.label.nameKey == archive.label.nameKey && $0.label.id.hasPrefix(id) && $0.path != archive.path
          ? $0 : nil
      }
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
      label: ArchiveLabel(header), file: file, isSigned: signature != .none, follows: header.follows ?? [],
      path: path)
  }
}

extension Repository.Sealed {
  var ordered: ArchiveOrder.Ordered? {
    label.map {
      ArchiveOrder.Ordered(label: $0, file: file, isSigned: signature != .none, path: path)
    }
  }
}

extension Repository.Listing {
  /// An archive that can be read, or one that no key at hand opens.
  package enum Entry: Sendable {
    case item(Repository.Item), sealed(Repository.Sealed)

    /// Its id, or the beginning of it; nil when no key opens it and its name is not an archive's.
    package var id: String? { ordered?.label.id }

    var ordered: ArchiveOrder.Ordered? {
      switch self {
      case .item(let item): item.ordered
      case .sealed(let sealed): sealed.ordered
      }
    }
    var path: String {
      switch self {
      case .item(let item): item.path
      case .sealed(let sealed): sealed.path
      }
    }

    /// With the time of its file as the server knows it, if the one in a listing contradicts the archive's own: that may be many
    /// hours wrong, and must not decide the order.
    func exact(at place: any Place) throws -> Entry? {
      guard let ordered, ordered.published != nil, ordered.file.timeError > 0 else { return self }
      guard let file = try place.file(ordered.file.name) else { return nil }
      switch self {
      case .item(var item):
        item.file = file
        return .item(item)
      case .sealed(var sealed):
        sealed.file = file
        return .sealed(sealed)
      }
    }
  }

  /// All archives, oldest first; sealed ones that are named by hand come last.
  package var entries: [Entry] {
    ArchiveOrder.sorted(
      items.map(Entry.item) + sealed.map(Entry.sealed), path: { $0.path }, order: { $0.ordered })
  }

  /// The wrong times of archives, oldest first.
  ///
  /// - Parameter path: an archive: only those of its app and instance count.
  package func clockWarnings(of path: String? = nil, now: Date = Date()) -> [ClockWarning] {
    let archives = entries.compactMap(\.ordered)
    let owner = path.flatMap { path in archives.first { $0.path == path }?.label.nameKey }
    let byID = Dictionary(archives.map { ($0.label.id.prefix(8), $0) }) { first, _ in first }
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
