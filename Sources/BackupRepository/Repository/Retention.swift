import AppContainer
import DrydockErrors
import Foundation

/// The decision which archives are kept: by the rules of a policy, or because a kept one needs them.
extension RetentionPolicy {
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
  ///   - now: archives of a later time are not what a period is counted from.
  ///   - isSelected: whether the rules apply to it; any other is kept.
  ///   - isWhole: whether all contents of an archive can be read: asked before its copy goes.
  func reasons(
    _ archives: [StoredArchive], now: String, isSelected: (StoredArchive) -> Bool = { _ in true },
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
      for (index, found) in zip(newestFirst, applyRules(newestFirst.map { tagged[$0] }, now)) {
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

  /// The rules that count, each with the period that an archive is of: the newest archive of each period is kept.
  /// While there are fewer periods than the rule has, the oldest archive is kept as well.
  static var counts:
    [(
      key: String, path: WritableKeyPath<RetentionPolicy, Int>,
      period: (_ number: Int, _ time: String) -> String
    )]
  {
    [
      ("last", \.last, { number, _ in "\(number)" }),
      ("hourly", \.hourly, { String($1.prefix(13)) }),
      ("daily", \.daily, { String($1.prefix(10)) }),
      ("weekly", \.weekly, { "\(week(of: $1))" }),
      ("monthly", \.monthly, { String($1.prefix(7)) }),
      ("yearly", \.yearly, { String($1.prefix(4)) }),
    ]
  }

  /// The reasons to keep the archives of one owner, newest first.
  private func applyRules(_ archives: [StoredArchive], _ now: String) -> [[String]] {
    let times = archives.map(\.effectiveTime)
    let newest = times.first { $0 <= now }
    var reasons = zip(archives, times).map { archive, time in
      var reasons: [String] = archive.hasUnknownTags ? ["its tags cannot be read"] : []
      for tags in tags {
        if tags.isEmpty, archive.tags.isEmpty { reasons.append("no tags") }
        if !tags.isEmpty, Set(tags).isSubset(of: archive.tags) {
          reasons.append("tag \(tags.joined(separator: ","))")
        }
      }
      if let within {
        let limit = newest.map { Self.seconds($0, minus: within) } ?? .min
        if Self.seconds(time) > limit { reasons.append("within \(within)") }
      }
      return reasons
    }
    // Without a key, what an interrupted compaction has written again is only known by its time: it counts once.
    var counting = Array(archives.indices)
    for number in archives.indices.dropFirst() {
      let other = counting[number - 1]
      guard archives[number].isLocked, archives[other].isLocked, times[number] == times[other] else {
        continue
      }
      counting[number] = other
    }
    for (name, path, period) in Self.counts where self[keyPath: path] > 0 {
      var (remaining, latest, found): (Int, String?, String?) = (self[keyPath: path], nil, nil)
      for number in archives.indices {
        if counting[number] == number {
          let current = period(number, times[number])
          let (isNew, isOldest) = (current != latest, number == archives.count - 1)
          found = remaining > 0 && (isNew || isOldest) ? (isNew ? name : "oldest \(name)") : nil
          if found != nil { (latest, remaining) = (current, remaining - 1) }
        }
        reasons[number] += [found].compactMap { $0 }
      }
    }
    return reasons
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
