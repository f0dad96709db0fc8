import AppContainer
import DrydockErrors
import Foundation

/// The decision which archives are kept: by the rules of a policy, or because a kept one needs them.
struct Retention {
  var policy: RetentionPolicy
  /// Archives of a later time are not what a period is counted from.
  var now: String

  /// Why an archive is kept that cannot be restored: no rule counts it, since it may be all that is kept otherwise.
  static let missing = "an archive that it needs is missing or cannot be read"

  /// The beginning of the reason of an archive that no rule keeps.
  static let needed = "needed by"

  /// The beginning of the reason of an archive that a missing one may need.
  static let possiblyNeeded = "may be needed by the missing parent of"

  /// Why each archive is kept; nothing for one that goes.
  ///
  /// - Parameters:
  ///   - archives: oldest first.
  ///   - isSelected: whether the rules apply to it; any other is kept.
  ///   - isWhole: whether all contents of an archive can be read: asked before its copy goes.
  func reasons(
    _ archives: [StoredArchive], isSelected: (StoredArchive) -> Bool = { _ in true },
    isWhole: (StoredArchive) -> Bool = { _ in true }
  ) -> [[String]] {
    let broken = archives.broken
    var reasons = archives.indices.map { index in
      if broken.contains(index) { return [Self.missing] }
      return isSelected(archives[index]) && !archives[index].isUnreadable ? [] : ["not selected"]
    }
    // What an interrupted compaction has written again counts once.
    let chains = rewritten(archives).filter { pairs in
      pairs.allSatisfy { reasons[$0.old].isEmpty && reasons[$0.new].isEmpty }
    }
    let old = Set(chains.joined().map(\.old))
    let selected = archives.indices.filter { reasons[$0].isEmpty && !old.contains($0) }
    var tagged = archives
    for pair in chains.joined() { tagged[pair.new].tags += archives[pair.old].tags }
    for indices in Dictionary(grouping: selected, by: { archives[$0].ownerKey }).values {
      let newestFirst = Array(indices.reversed())
      for (index, found) in zip(newestFirst, applyRules(newestFirst.map { tagged[$0] })) {
        reasons[index] = found
      }
    }
    for pairs in chains { decide(pairs, archives, isWhole, &reasons) }
    let parents = archives.parents
    var unvisited = archives.indices.filter { !reasons[$0].isEmpty }
    while let child = unvisited.popLast() {
      for parent in parents[child] where reasons[parent].isEmpty {
        reasons[parent] = ["\(Self.needed) \(archives[child].id.prefix(8))"]
        unvisited.append(parent)
      }
    }
    // Their own ancestors are older, and kept as well.
    keepAncestorsOfMissing(archives, parents, &reasons)
    return reasons
  }

  /// Keeps what is older than an archive whose parent is missing: the parent may come back, and only it says which of them it
  /// needs.
  private func keepAncestorsOfMissing(
    _ archives: [StoredArchive], _ parents: [[Int]], _ reasons: inout [[String]]
  ) {
    // The newest such archive of each owner; those that cannot be read are after all others, whatever their times are.
    var orphans: [String: Int] = [:]
    for (index, archive) in archives.enumerated()
    where archive.label?.parent != nil && parents[index].isEmpty {
      let other = orphans[archive.nameKey]
      if other.map({ archives[$0].effectiveTime <= archive.effectiveTime }) ?? true {
        orphans[archive.nameKey] = index
      }
    }
    for (index, archive) in archives.enumerated() where reasons[index].isEmpty {
      guard let orphan = orphans[archive.nameKey],
        archives[orphan].isUnreadable
          ? archive.effectiveTime <= archives[orphan].effectiveTime : index < orphan
      else { continue }
      reasons[index] = ["\(Self.possiblyNeeded) \(archives[orphan].id.prefix(8))"]
    }
  }

  /// The reasons to keep the archives of one owner, newest first.
  private func applyRules(_ archives: [StoredArchive]) -> [[String]] {
    var buckets = [
      Bucket("last", policy.last) { number, _ in "\(number)" },
      Bucket("hourly", policy.hourly) { $1.prefix(13) },
      Bucket("daily", policy.daily) { $1.prefix(10) },
      Bucket("weekly", policy.weekly) { "\(Self.week(of: $1))" },
      Bucket("monthly", policy.monthly) { $1.prefix(7) }, Bucket("yearly", policy.yearly) { $1.prefix(4) },
    ]
    let newest = archives.lazy.map(\.effectiveTime).first { $0 <= now }
    var counted: (archive: StoredArchive, reasons: [String])?
    return archives.indices.map { number in
      let (archive, time) = (archives[number], archives[number].effectiveTime)
      var reasons: [String] = archive.hasUnknownTags ? ["its tags cannot be read"] : []
      for tags in policy.tags {
        if tags.isEmpty, archive.tags.isEmpty { reasons.append("no tags") }
        if !tags.isEmpty, Set(tags).isSubset(of: archive.tags) {
          reasons.append("tag \(tags.joined(separator: ","))")
        }
      }
      if let within = policy.within {
        let limit = newest.map { Self.seconds($0, minus: within) } ?? .min
        if Self.seconds(time) > limit { reasons.append("within \(within)") }
      }
      // Without a key, what an interrupted compaction has written again is only known by its time: it counts once.
      if let counted, counted.archive.isLocked, archive.isLocked, counted.archive.effectiveTime == time {
        return reasons + counted.reasons
      }
      let isOldest = number == archives.count - 1
      let found = buckets.indices.compactMap { buckets[$0].admit(number, time, isOldest) }
      counted = (archive, found)
      return reasons + found
    }
  }

  /// One of the rules that count: the newest archive of each period is kept. While there are fewer periods than the rule
  /// has, the oldest archive is kept as well.
  private struct Bucket {
    let name: String
    var remaining: Int
    let period: (Int, String) -> any StringProtocol
    var latest: String?

    init(_ name: String, _ count: Int, period: @escaping (Int, String) -> any StringProtocol) {
      (self.name, remaining, self.period) = (name, count, period)
    }

    mutating func admit(_ number: Int, _ time: String, _ isOldest: Bool) -> String? {
      guard remaining > 0 else { return nil }
      let period = String(self.period(number, time))
      let isNew = period != latest
      guard isNew || isOldest else { return nil }
      (latest, remaining) = (period, remaining - 1)
      return isNew ? name : "oldest \(name)"
    }
  }

  /// The number of the week, from Monday to Sunday: 1970 began on a Thursday.
  private static func week(of time: String) -> Int { Int(floor(Double(seconds(time) / 86_400 + 3) / 7)) }

  /// Seconds since 1970 of a time such as `2026-11-20T10:15:00Z`, or of the time that is a period earlier. A day that the
  /// month does not have counts on into the next one.
  private static func seconds(_ time: String, minus period: RetentionPolicy.Period? = nil) -> Int {
    let parts = time.split { !$0.isNumber }.map { Int32($0) ?? 0 }
    guard parts.count == 6 else { return 0 }
    let by = [period?.years, period?.months, period?.days, period?.hours].map { Int32($0 ?? 0) }
    var date = tm()
    (date.tm_year, date.tm_mon, date.tm_mday) = (
      parts[0] - 1900 - by[0], parts[1] - 1 - by[1], parts[2] - by[2]
    )
    (date.tm_hour, date.tm_min, date.tm_sec) = (parts[3], parts[4], parts[5])
    return timegm(&date) - Int(by[3]) * 3600
  }

  // MARK: Interrupted compactions

  /// The archives that a compaction has written, chain by chain, each with the one in whose place it is: it was
  /// interrupted before these were removed.
  private func rewritten(_ archives: [StoredArchive]) -> [[(old: Int, new: Int)]] {
    let byID = Dictionary(archives.indices.map { (archives[$0].id, $0) }) { first, _ in first }
    let pairs = archives.indices.compactMap { new -> (old: Int, new: Int)? in
      guard let id = archives[new].header?.compactedFrom?.description, let old = byID[id],
        archives[old].ownerKey == archives[new].ownerKey, archives[old].time == archives[new].time
      else { return nil }
      return (old, new)
    }
    let parents = archives.parents
    return Array(Dictionary(grouping: pairs) { archives.root(of: $0.new, parents) }.values)
  }

  /// Keeps one of both sides of a chain: the new one, unless an archive that is kept needs the old one. Keeps both when
  /// the one lacks a tag of the other, or cannot be read.
  private func decide(
    _ pairs: [(old: Int, new: Int)], _ archives: [StoredArchive], _ isWhole: (StoredArchive) -> Bool,
    _ reasons: inout [[String]]
  ) {
    for pair in pairs { reasons[pair.old] = reasons[pair.new] }
    let kept = pairs.filter { !reasons[$0.new].isEmpty }
    func suffices(_ one: StoredArchive, instead other: StoredArchive) -> Bool {
      Set(other.tags).isSubset(of: one.tags) && isWhole(one)
    }
    let own = Set(pairs.flatMap { [$0.old, $0.new] })
    let needed = archives.ancestors(of: archives.indices.filter { !reasons[$0].isEmpty && !own.contains($0) })
    if needed.isDisjoint(with: pairs.map(\.old)) {
      guard kept.allSatisfy({ suffices(archives[$0.new], instead: archives[$0.old]) }) else { return }
      for pair in pairs { reasons[pair.old] = [] }
    } else if needed.isDisjoint(with: pairs.map(\.new)) {
      guard kept.allSatisfy({ suffices(archives[$0.old], instead: archives[$0.new]) }) else { return }
      for pair in pairs { reasons[pair.new] = [] }
    }
  }
}
