import AgeEncryption
import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation
import Storage

extension Repository {
  /// What ``Repository/forget(keeping:app:instance:keys:compacting:dryRun:lockTimeout:progress:)`` kept and removed.
  public struct ForgetReport: Sendable {
    /// Archives with all their copies, both oldest first. Those that the call did not concern are in neither.
    public internal(set) var kept: [StoredArchive] = [], removed: [StoredArchive] = []
    /// Files that cannot be read; they are kept.
    public internal(set) var unreadable: [Unreadable] = []
    /// Files that may belong to the erased instance, and are kept: neither a key nor their names say whose they are.
    public internal(set) var unattributed: [String] = []

    /// The chains that were written again, or that would be.
    package internal(set) var compacted: [CompactedChain] = []
    /// Those that could not be, with the reason; they are kept.
    public internal(set) var notCompacted: [Unreadable] = []

    /// Bytes of what was removed, and of what chains are smaller by now.
    public var bytesFreed: UInt64 {
      (removed.map(\.size) + compacted.map(\.bytesFreed)).reduce(0, +)
    }
  }

  /// Removes the archives that no rule keeps, and that no kept archive needs.
  ///
  /// No rollback brings them back. It holds the repository's lock, so that nothing is written or removed
  /// meanwhile; killed at any moment it leaves no archive without those that it needs.
  ///
  /// - Parameters:
  ///   - policy: the rules; without any, nothing is removed.
  ///   - app: only archives of this app; nil for all.
  ///   - instance: only archives of this instance; nil for all. The rules count each instance of each app by itself.
  ///   - keys: what opens encrypted archives. Of others the names count.
  ///   - compaction: when chains are written again whose archives are kept only because others need them; nil for never.
  ///   - dryRun: whether to report only, without the lock.
  ///   - lockTimeout: seconds to wait for those who write into the repository.
  ///   - progress: counts the archives that are read and removed.
  /// - Throws: `DrydockError`: `usage` without a rule; `notFound` if there is no archive of the app or instance;
  ///   `checkFailed` if an instance would lose all archives; `noIdentity` if a file may need archives and does not say
  ///   which; `locked`, `permission`, `io`.
  @discardableResult
  public func forget(
    keeping policy: RetentionPolicy, app: String? = nil, instance: String? = nil, keys: AgeKeys = AgeKeys(),
    compacting compaction: CompactionOptions? = nil, dryRun: Bool = false, lockTimeout: Double = 0,
    progress: WorkProgress? = nil
  ) throws -> ForgetReport {
    guard !policy.isEmpty else {
      throw DrydockError(.usage, "no rule: say which archives are kept", path: path)
    }
    var (place, listing, archives) = try listed(keys, dryRun, lockTimeout, progress)
    let isSelected = { (archive: StoredArchive) in archive.isOf(app: app, instance: instance) }
    if app != nil || instance != nil, !archives.contains(where: isSelected) {
      throw noArchive(of: app, instance, archives)
    }
    let reasons = policy.reasons(archives, now: UTCTime.text(Date()), isSelected: isSelected) { archive in
      (try? Verification.run(Archive(path: archive.path, keys: keys), data: true)) != nil
    }
    for (index, reasons) in reasons.enumerated() { archives[index].reasons = reasons }
    // An archive that is away, or cannot be read, may need any chain of its instance.
    let isUsable = { (archive: StoredArchive) in
      archive.reasons != [RetentionPolicy.missing] && !archive.isUnreadable
    }
    let goes = archives.filter(\.reasons.isEmpty)
    let kept = archives.filter { !$0.reasons.isEmpty && isUsable($0) }
    let lost = Set(goes.map(\.ownerKey)).subtracting(kept.map(\.ownerKey))
    if let archive = goes.first(where: { lost.contains($0.ownerKey) }) {
      throw DrydockError(
        .checkFailed,
        "the rules keep no archive of \(archive.owner.printable), so nothing was removed; add a rule, or erase that instance",
        path: path)
    }
    let chains = compaction == nil ? [] : Compaction.chains(archives)
    if !goes.isEmpty || !chains.isEmpty { try listing.requireKnownNeeds() }
    try goes.requireKnownOrder(among: archives)
    let concerned = archives.filter { !$0.isUnreadable && isSelected($0) }
    var report = ForgetReport()
    report.kept = concerned.filter { !$0.reasons.isEmpty }
    report.removed = concerned.filter(\.reasons.isEmpty)
    report.unreadable =
      listing.unreadable
      + concerned.filter { !isUsable($0) }.flatMap(\.paths).map {
        Unreadable(path: $0, DrydockError(.missingArchive, RetentionPolicy.missing, path: $0))
      }
    if let place {
      try remove(goes, in: place, progress)
      try removeLeftFiles(listing, archives, in: place)
    }
    guard let compaction else { return report }
    let run = Compaction(
      repository: self, place: place, keys: keys, options: compaction, progress: progress)
    let incomplete = Set(archives.filter { !isUsable($0) }.map(\.ownerKey))
    for chain in chains {
      run.compact(chain, listing, isComplete: !incomplete.contains(chain.kept[0].ownerKey), &report)
    }
    return report
  }

  /// Removes all archives of an app, an instance or one instance of an app, with their tags: readable, encrypted and damaged
  /// ones. Those that no key opens are recognized by the names of their files.
  ///
  /// `app` or `instance` is required; the other parameters are those of ``forget(keeping:app:instance:keys:compacting:dryRun:lockTimeout:progress:)``.
  ///
  /// - Parameter cache: a directory of manifests (``SnapshotOptions``), from which theirs are removed, too.
  /// - Throws: `DrydockError`: `usage` without both; `notFound` if no archive is theirs; `checkFailed` if another instance's
  ///   archive needs one of them; `locked`, `permission`, `io`.
  @discardableResult
  public func forgetEverything(
    app: String? = nil, instance: String? = nil, keys: AgeKeys = AgeKeys(), cache: String? = nil,
    dryRun: Bool = false, lockTimeout: Double = 0, progress: WorkProgress? = nil
  ) throws -> ForgetReport {
    guard app != nil || instance != nil else {
      throw DrydockError(.usage, "say whose archives are erased: an instance, an app or both", path: path)
    }
    let (place, listing, archives) = try listed(keys, dryRun, lockTimeout, progress)
    var report = ForgetReport()
    report.removed = archives.filter { $0.isOf(app: app, instance: instance) }
    guard !report.removed.isEmpty else { throw noArchive(of: app, instance, archives) }
    let paths = Set(report.removed.flatMap(\.paths))
    try report.removed.requireUnneeded(by: archives.filter { !paths.contains($0.path) })
    report.unreadable = listing.unreadable.filter { !paths.contains($0.path) }
    report.unattributed = listing.unnamed.filter { !paths.contains($0) }
    guard let place else { return report }
    try remove(report.removed, in: place, progress)
    try removeLeftFiles(listing, archives, in: place)
    if let cache {
      for owner in Set(report.removed.map { [$0.app, $0.instance] }) {
        try ManifestCache(cache).remove(path, app: owner[0], instance: owner[1])
      }
    }
    return report
  }

  private func noArchive(of app: String?, _ instance: String?, _ archives: [StoredArchive]) -> DrydockError {
    let found = Set(archives.map(\.owner.printable)).sorted().prefix(10).joined(separator: ", ")
    let wanted = [app, instance].compactMap { $0?.printable }.joined(separator: "/")
    return DrydockError(
      .notFound, "no archive of \(wanted)" + (found.isEmpty ? "" : "; there are \(found)"), path: path)
  }

  /// What is there, listed under the lock that a removal takes. A dry run takes none, and has no place to remove from.
  private func listed(
    _ keys: AgeKeys, _ dryRun: Bool, _ lockTimeout: Double, _ progress: WorkProgress?
  ) throws -> (place: (any Place)?, listing: Listing, archives: [StoredArchive]) {
    let place = dryRun ? nil : try locked(exclusive: true, timeout: lockTimeout)
    let listing =
      try place.map { try list($0, keys, progress: progress) } ?? list(keys: keys, progress: progress)
    return (place, listing, listing.withCopies)
  }

  /// Removes the tags and signatures of archives that a killed snapshot did not publish. Nothing writes into the repository now.
  private func removeLeftFiles(
    _ listing: Listing, _ archives: [StoredArchive], in place: any Place
  ) throws {
    let files = try place.list()
    let present = Set(files.names)
    let ending = Array(Directory.unfinishedSuffix.utf8)
    for name in files.names {
      let isUnfinished = name.suffix(ending.count).elementsEqual(ending)
      let whole = isUnfinished ? Array(name.dropLast(ending.count)) : name
      var isLeft = isUnfinished
      if let archive = SignaturePayload.archive(ofFile: whole) {
        // A listing may be late: the archive is asked for by its name.
        isLeft = try isLeft || !present.contains(archive) && place.file(ContainerPath(name: archive)) == nil
      } else if let id = ArchiveTags.id(ofFile: whole), listing.unnamed.isEmpty {
        // Of files that were named by hand the ids would not be known.
        let isKnown = archives.contains { id.hasPrefix($0.id) }
        isLeft =
          try isLeft
          || !isKnown && (!place.isRemote || isOld(files.file(ContainerPath(name: name))))
      } else {
        continue
      }
      if isLeft { try place.remove(ContainerPath(name: name)) }
    }
  }

  /// Whether a file was written more than a day ago: what belongs to it would be in a listing, however late that is.
  private func isOld(_ file: PlaceFile?) -> Bool {
    file.map { Double($0.modified) / 1e9 < Date().timeIntervalSince1970 - 86_400 } ?? false
  }

  /// Removes archives, each before those that it needs; on disk when this returns.
  func remove(
    _ archives: [StoredArchive], in place: any Place, _ progress: WorkProgress? = nil
  ) throws {
    progress?.begin(.remove, totalFiles: archives.count)
    let byDepth = Dictionary(grouping: zip(archives, archives.depths), by: \.1)
    let names = try place.list().names
    let (tagged, signed) = (
      Set(names.compactMap(ArchiveTags.id)), Set(names.compactMap(SignaturePayload.archive))
    )
    var removed = 0
    do {
      for depth in byDepth.keys.sorted(by: >) {
        for (archive, _) in byDepth[depth, default: []].reversed() {
          // Without its tags a rule keeps it no longer than with them, when this is interrupted here.
          for id in tagged where id.hasPrefix(archive.id) {
            try ArchiveTags.remove(of: id, in: place)
          }
          for path in archive.paths {
            let name = try ContainerPath(lastName(path))
            try place.remove(name)
            if signed.contains(name.bytes) { try SignaturePayload.removeFiles(of: name, at: place) }
          }
          removed += 1
          progress?.add(files: 1)
        }
        // Not even a power failure may keep a child and lose its parent.
        try place.sync()
      }
    } catch let error as DrydockError {
      guard removed > 0 else { throw DrydockError.unusable("the repository", path: path, error) }
      throw DrydockError(
        error.code,
        "\(removed) of \(archives.count) archives were removed, then: \(error.reason); run it again",
        path: path, cause: error)
    }
  }
}

extension Repository.Listing {
  /// Files of which nothing says whose they are.
  fileprivate var unnamed: [String] {
    locked.filter { $0.label == nil }.map(\.path)
      + unreadable.filter {
        ArchiveLabel.isFileName(Array($0.fileName.utf8)) && ArchiveLabel(fileName: $0.fileName) == nil
      }.map(\.path)
  }

  /// Throws if a file may be an archive that needs others, and does not say which.
  fileprivate func requireKnownNeeds() throws {
    // What does not begin like an archive is a file of another program.
    let foreign = unreadable.filter { ($0.error as? DrydockError)?.code == .notAnArchive }.map(\.path)
    guard let path = unnamed.first(where: { !foreign.contains($0) }) else { return }
    throw DrydockError(
      .noIdentity,
      "cannot be read, and its name does not say which archives it needs, so nothing was removed; make it readable, "
        + "rename it to the name that it had, or move it away if it is not an archive", path: path)
  }
}

extension [StoredArchive] {
  /// Throws if one of these is to be removed although the order of its owner's archives is not known: where a clock was wrong,
  /// headers have it, and names do not.
  fileprivate func requireKnownOrder(among all: [StoredArchive]) throws {
    let owners = Set(map(\.ownerKey))
    guard
      let archive = all.first(where: {
        $0.isLocked && $0.label?.followsLater == true && owners.contains($0.ownerKey)
      })
    else { return }
    throw DrydockError(
      .noIdentity,
      "a clock was wrong when it was written, so that only a key shows which archives are newer; nothing was removed, "
        + "give the identity that opens it", path: archive.path)
  }
}
