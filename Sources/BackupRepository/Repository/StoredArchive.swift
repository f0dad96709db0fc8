import ArchiveManifest
import Storage
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// An archive of a repository, as its header says, whatever its file is named: one file, or where removals are decided,
/// all copies of it.
public struct StoredArchive: Sendable {
  /// How much of an archive can be read.
  public enum Access: Sendable {
    case open(Archive.Header)
    /// It is encrypted, and no key at hand opens it: only its name is known, which may be false.
    case locked(DrydockError)
    /// No file of it can be read: it is never removed by a rule, and rules do not count it.
    case unreadable
  }

  /// How much of it can be read.
  public internal(set) var access: Access
  /// Whose it is, and of when: the header's, or the fields of its name; nil when it was named by hand.
  package internal(set) var label: ArchiveLabel?
  /// Its file, and those of its copies.
  public internal(set) var paths: [String]
  /// In bytes, of all files together.
  public internal(set) var size: UInt64
  /// As it was listed; nil for one that was just written, or cannot be read.
  var file: PlaceFile?
  package internal(set) var encryption: ArchiveEncryption?
  /// The bytes of the archive without encryption; nil where no key opens it.
  var contentSize: UInt64?
  package internal(set) var signature = SignatureState.none
  /// Sorted; they are not in the archive, but in a file beside it, and readable without a key.
  public internal(set) var tags: [String] = []
  var hasUnknownTags = false
  /// Why rules keep it; empty where no rules were applied, or none keeps it.
  public internal(set) var reasons: [String] = []

  init(path: String, access: Access, file: PlaceFile? = nil) {
    (self.access, paths, self.file, size) = (access, [path], file, file?.size ?? 0)
    if case .open(let header) = access {
      label = ArchiveLabel(header)
    } else {
      label = ArchiveLabel(fileName: lastName(path))
    }
  }

  /// The path of the first copy.
  public var path: String { paths[0] }
  /// The name of the first copy.
  public var fileName: String { lastName(path) }

  /// Nil unless it can be read.
  public var header: Archive.Header? { if case .open(let header) = access { header } else { nil } }
  /// Why no key opens it; nil for any other.
  public var error: DrydockError? { if case .locked(let error) = access { error } else { nil } }
  var isLocked: Bool { error != nil }
  var isUnreadable: Bool { if case .unreadable = access { true } else { false } }

  // `?` is what a list shows of what is not known, and the beginning of no id, app or instance.

  /// The archive's id, or as much of it as its name has.
  public var id: String { label?.id ?? "?" }
  /// Whose data it has; `?` when that is not known.
  public var app: String { label?.app ?? "?" }
  /// Which container it is of; `?` when that is not known.
  public var instance: String { label?.instance ?? "?" }
  /// When it was taken; `?` when that is not known.
  public var time: String { label?.time ?? "?" }
  /// App and instance, which together own archives: `com.example.notes/red`.
  public var owner: String { label?.owner ?? "?" }
  var ownerKey: String { label?.ownerKey ?? "?" }
  var nameKey: String { label?.nameKey ?? "?" }

  /// See ``ArchiveLabel/isOf(app:instance:)``; none of an archive of which that is not known.
  func isOf(app: String?, instance: String?) -> Bool {
    label?.isOf(app: app, instance: instance) ?? false
  }

  // MARK: Its place in time

  /// The beginnings of the ids of archives that are known to be older.
  var follows: [String] { header?.older ?? [] }
  /// The id of the archive that it is a copy of.
  var source: String? { header.flatMap { $0.exportedFrom ?? $0.compactedFrom }?.description }
  /// Whether there is a signature, valid or not: a restore refuses one that is not.
  var isSigned: Bool { signature != .none }

  /// The time that counts: at most a minute after the file was written, so that of two clocks that were ahead, the one
  /// that was further ahead does not make an archive older.
  var effectiveTime: String { min(latestTime ?? time, time) }

  /// When the file was written, if before the archive's time. Programs that do not keep times of files set none, or an
  /// early one.
  var published: String? {
    guard let file, let latestTime, latestTime < time else { return nil }
    return UTCTime.text(Date(timeIntervalSince1970: Double(file.modified / 1_000_000_000)))
  }

  /// The latest time at which it can have been captured: correct clocks may differ by seconds.
  private var latestTime: String? {
    let (minute, start): (Int64, Int64) = (60, 315_532_800)
    guard label != nil, !isSigned, let file, case let modified = file.modified / 1_000_000_000,
      modified > start
    else {
      return nil
    }
    return UTCTime.text(Date(timeIntervalSince1970: Double(modified + file.timeError + minute)))
  }

  // MARK: Copies

  /// Adds another file with the same archive.
  mutating func add(copy: StoredArchive) {
    // Of a copy that a key opens more is known.
    if isLocked, !copy.isLocked { (access, label) = (copy.access, copy.label) }
    paths += copy.paths
    size += copy.size
    tags = Set(tags + copy.tags).sorted()
    hasUnknownTags = hasUnknownTags || copy.hasUnknownTags
  }
}

/// Which archives need which.
extension [StoredArchive] {
  /// The indices of the archives that each one names as its parent: one, unless names have too few digits.
  var parents: [[Int]] {
    let byID = Dictionary(grouping: indices) { self[$0].id.prefix(8) }
    return map { archive in
      guard let parent = archive.label?.parent else { return [] }
      return byID[parent.prefix(8), default: []].filter { index in
        let id = self[index].id
        return id.hasPrefix(parent) || parent.hasPrefix(id)
      }
    }
  }

  /// The first archive of the chain.
  func root(of index: Int, _ parents: [[Int]]) -> Int {
    var (root, seen) = (index, Set([index]))
    while let parent = parents[root].first, seen.insert(parent).inserted { root = parent }
    return root
  }

  /// The archives that some need, directly or not.
  func ancestors(of archives: [Int]) -> Set<Int> {
    let parents = parents
    var (found, unvisited) = (Set<Int>(), archives)
    while let index = unvisited.popLast() {
      for parent in parents[index] where found.insert(parent).inserted { unvisited.append(parent) }
    }
    return found
  }

  /// The indices of the archives that need one which is missing or cannot be read.
  var broken: Set<Int> {
    let parents = parents
    var children: [Int: [Int]] = [:]
    for (child, parents) in parents.enumerated() {
      for parent in parents { children[parent, default: []].append(child) }
    }
    var broken: Set<Int> = []
    var unvisited = indices.filter { index in
      self[index].label?.parent != nil && parents[index].allSatisfy { self[$0].isUnreadable }
    }
    while let index = unvisited.popLast() {
      if broken.insert(index).inserted { unvisited += children[index] ?? [] }
    }
    return broken
  }

  /// How many archives each one needs, one after the other.
  var depths: [Int] {
    let parents = parents
    var depths = [Int?](repeating: nil, count: count)
    return indices.map { start in
      // Without recursion: a chain may be long, and in damaged headers a circle.
      var (chain, seen, next): ([Int], Set<Int>, Int?) = ([], [], start)
      while let index = next, depths[index] == nil, seen.insert(index).inserted {
        chain.append(index)
        next = parents[index].max { (depths[$0] ?? 0) < (depths[$1] ?? 0) }
      }
      var depth = next.flatMap { depths[$0] } ?? -1
      for index in chain.reversed() {
        depth += 1
        depths[index] = depth
      }
      return depths[start] ?? 0
    }
  }

  /// Throws if one of the archives that stay needs one of these.
  func requireUnneeded(by remaining: [StoredArchive]) throws {
    let all = self + remaining
    for (index, parents) in all.parents.enumerated() where index >= count {
      guard let parent = parents.first(where: { $0 < count }) else { continue }
      throw DrydockError(
        .checkFailed,
        "cannot be removed, because \(all[index].id.prefix(8)) of \(all[index].owner.printable) needs it; remove "
          + "that one first", path: all[parent].path)
    }
  }
}
