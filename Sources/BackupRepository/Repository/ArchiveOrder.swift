import ArchiveManifest
import Formats
import Foundation
import Storage

/// The order of archives in time: by their own times, unless something contradicts them.
///
/// A clock that was a day ahead makes an archive that stays the newest for a day. Two things contradict it: the file was
/// written before the time that its header says; and a header names an archive that was there already when it was
/// written, although its time is later. Of a signed archive only the second counts: its header cannot be changed, while
/// whoever can write the repository can set the times of files.
struct ArchiveOrder {
  private let archives: [StoredArchive]
  /// By the first digits of their ids: of several copies the one that was written first, and where none is here, the
  /// first that was made of it under another id.
  private let byID: [Substring: StoredArchive]

  /// Of archives of one second, the one that was written first comes first.
  private struct Rank: Comparable {
    var time: String, ownTime: String
    var modified: Int64
    var path: String

    init(_ archive: StoredArchive) {
      (time, ownTime, path) = (archive.effectiveTime, archive.time, archive.path)
      modified = archive.file?.modified ?? 0
    }

    static func < (left: Rank, right: Rank) -> Bool {
      (left.time, left.ownTime, left.modified, left.path)
        < (right.time, right.ownTime, right.modified, right.path)
    }
  }

  init(_ archives: [StoredArchive]) {
    self.archives = archives
    let known = archives.filter { $0.label != nil }
    let first = { (left: StoredArchive, right: StoredArchive) in Rank(left) < Rank(right) ? left : right }
    let own = Dictionary(known.map { ($0.id.prefix(8), $0) }, uniquingKeysWith: first)
    let made = known.compactMap { archive in archive.source.map { ($0.prefix(8), archive) } }
    byID = Dictionary(made, uniquingKeysWith: first).merging(own) { _, own in own }
  }

  /// Oldest first; archives of unknown time come last, by path.
  func sorted() -> [StoredArchive] {
    var found: [String: [Rank]] = [:]
    let ranked = archives.map { archive in
      (archive: archive, ranks: archive.label == nil ? [] : ranks(of: archive, &found), own: Rank(archive))
    }
    return ranked.sorted { left, right in
      if left.ranks.isEmpty || right.ranks.isEmpty {
        return left.ranks.isEmpty == right.ranks.isEmpty
          ? left.archive.path < right.archive.path : right.ranks.isEmpty
      }
      return left.ranks == right.ranks
        ? left.own < right.own : left.ranks.lexicographicallyPrecedes(right.ranks)
    }.map(\.archive)
  }

  /// The archive that determines the place of another one: a copy is as old as what it was made of. A signed archive has its own
  /// place, because anyone who can write to the repository can add an archive that claims to be its source.
  private func original(of archive: StoredArchive) -> StoredArchive {
    guard !archive.isSigned else { return archive }
    var (found, seen) = (archive, Set([archive.path]))
    while let next = found.source.flatMap({ named($0, by: found) }) ?? named(found.id, by: found),
      seen.insert(next.path).inserted
    { found = next }
    return found
  }

  /// The rank of an archive, behind the ranks of the newest one that it follows; behind those of its parent where it would not
  /// come after that otherwise.
  ///
  /// - Parameter found: the ranks of archives, by their paths; none of one that is being looked at, so that a circle ends.
  private func ranks(of archive: StoredArchive, _ found: inout [String: [Rank]]) -> [Rank] {
    let archive = original(of: archive)
    // Without recursion: a chain may be long.
    var (chain, next): ([StoredArchive], StoredArchive?) = ([], archive)
    while let link = next, found[link.path] == nil {
      found[link.path] = []
      chain.append(link)
      next = parent(of: link)
    }
    for link in chain.reversed() {
      var newest: [Rank] = []
      for older in followed(by: link) {
        let ranks = ranks(of: older, &found)
        if newest.lexicographicallyPrecedes(ranks) { newest = ranks }
      }
      let ranks = newest + [Rank(link)]
      let above = parent(of: link).flatMap { found[$0.path] } ?? []
      found[link.path] = above.lexicographicallyPrecedes(ranks) ? ranks : above + [Rank(link)]
    }
    return found[archive.path] ?? []
  }

  /// Those that an archive names as older, and its parent.
  func older(than archive: StoredArchive) -> [StoredArchive] {
    followed(by: archive) + [parent(of: archive)].compactMap { $0 }
  }

  private func followed(by archive: StoredArchive) -> [StoredArchive] {
    archive.follows.compactMap { named($0, by: archive) }
  }

  private func parent(of archive: StoredArchive) -> StoredArchive? {
    archive.label?.parent.flatMap { named($0, by: archive) }.map(original)
  }

  /// Another archive of the same app and instance, by the beginning of its id.
  private func named(_ id: String, by archive: StoredArchive) -> StoredArchive? {
    byID[id.prefix(8)].flatMap {
      let isMeant = [$0.id, $0.source].compactMap { $0 }.contains {
        $0.hasPrefix(id) || id.hasPrefix($0)
      }
      return isMeant && $0.nameKey == archive.nameKey && $0.path != archive.path ? $0 : nil
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
  package init?(future time: String, of archive: String, now: Date = Date()) {
    guard time > UTCTime.text(now.addingTimeInterval(Self.tolerance)) else { return nil }
    self.init(kind: .future, archive: archive, time: time, otherTime: UTCTime.text(now))
  }
}

extension Repository.Listing {
  /// Asks the server for the times of all files, if one in a listing contradicts its archive's: they may be many hours wrong, and
  /// must not decide the order.
  mutating func makeTimesExact(at place: any Place) throws {
    let isDoubtful = archives.contains { archive in
      archive.published != nil && archive.file.map { $0.timeError > 0 } ?? false
    }
    guard isDoubtful else { return }
    for index in archives.indices {
      guard let file = archives[index].file else { continue }
      archives[index].file = try place.file(file.name) ?? file
    }
  }

  /// The wrong times of archives, oldest first.
  ///
  /// - Parameter path: an archive: only those of its app and instance count.
  package func clockWarnings(of path: String? = nil, now: Date = Date()) -> [ClockWarning] {
    let owner = path.flatMap { path in archives.first { $0.path == path }?.label?.nameKey }
    let order = ArchiveOrder(archives)
    return archives.compactMap { archive in
      guard let label = archive.label, owner == nil || owner == label.nameKey else { return nil }
      if let warning = ClockWarning(future: label.time, of: archive.path, now: now) { return warning }
      // Of several snapshots after the wrong one, the first may be of an earlier time than the next.
      let older = order.older(than: archive).map(\.effectiveTime).filter { $0 > archive.effectiveTime }.max()
      guard let other = older ?? archive.published else { return nil }
      return ClockWarning(
        kind: older == nil ? .published : .backwards, archive: archive.path, time: label.time,
        otherTime: other)
    }
  }
}
