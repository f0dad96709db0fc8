@testable import ArchiveManifest
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// What an archive says of paths that rules keep out, and of flags that stay on paths that are stored.
@Suite(.everyPlace) struct ExcludedSnapshotTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let tag = "Signature: 8a477f597d28d172789f06886806bc55"

  private func entries(_ archive: Archive) throws -> [String: ManifestEntry] {
    var entries: [String: ManifestEntry] = [:]
    try archive.manifest.entries { entries[$0.path.description] = $0 }
    return entries
  }

  private func excluded(_ archive: Archive) throws -> [String: String] {
    try archive.manifest.excluded().reduce(into: [:]) {
      $0[$1.path.description] = "\($1.exclusion.rule.rawValue) @\($1.exclusion.origin)"
    }
  }

  private func snapshot(includesExcluded: Bool = false) throws -> SnapshotReport {
    try lab.snapshot { $0.includesExcluded = includesExcluded }
  }

  private func setNoDump(_ path: ContainerPath, _ isSet: Bool = true) throws {
    try Directory(lab.root).setNoDump(isSet, of: path)
  }

  /// The tag is why a restore preserves the directory: without it, the next one would remove that.
  @Test func aTagStaysAsLongAsItProtectsSomething() throws {
    try lab.write("kept", "x")
    let archive = try lab.snapshot()
    try lab.write("cache/CACHEDIR.TAG", Self.tag)
    try lab.write("cache/deep/a", "cached")
    for _ in 0..<2 {
      try lab.restore(archive.path)
      #expect(try lab.read("cache/deep/a") == "cached" && lab.read("cache/CACHEDIR.TAG") == Self.tag)
    }
    try lab.shell("rm -r cache/deep", in: lab.root)
    try lab.restore(archive.path)
    #expect(!RawFiles.exists(Array((lab.root + "/cache").utf8)))
  }

  @Test func eachRuleIsRecordedWithWhereItWasFound() throws {
    let paths = ["flagged/x", "robots", "dump", "cache/a", "cache/d/b", "p.part", ".drydock-state/s", "kept"]
    for path in paths { try lab.write(path, "x") }
    try lab.write("cache/CACHEDIR.TAG", Self.tag)
    try lab.flag("flagged")
    try ExtendedAttributes.set("user.xdg.robots.backup", Array("false".utf8), of: lab.full("robots"))
    try setNoDump("dump")
    lab.configuration.exclude = ["*.part"]
    let archive = try Archive(path: snapshot().path)
    #expect(
      try excluded(archive) == [
        ".drydock-state": "state @.drydock-state", "cache/a": "cachedir-tag @cache",
        "cache/d": "cachedir-tag @cache", "dump": "nodump @dump", "flagged": "apple-attribute @flagged",
        "p.part": "pattern @p.part", "robots": "robots-attribute @robots",
      ])
    #expect(try entries(archive).keys.sorted() == [".", "cache", "cache/CACHEDIR.TAG", "kept"])
    _ = try Verification.run(Archive(path: archive.path), data: true)
  }

  @Test func directoriesAboveAnIncludedPathComeBackAsTheyWere() throws {
    for path in ["off/deep/in/kept", "off/deep/other", "off/more/x"] { try lab.write(path, "x") }
    try lab.flag("off")
    lab.configuration.include = ["off/deep/in"]
    try lab.shell("chmod 750 off; chmod 711 off/deep; touch -d @1600000000.123 off/deep off", in: lab.root)
    let archive = try Archive(path: snapshot().path)
    #expect(
      try entries(archive).keys.sorted() == [".", "off", "off/deep", "off/deep/in", "off/deep/in/kept"])
    #expect(
      try excluded(archive) == ["off/deep/other": "apple-attribute @off", "off/more": "apple-attribute @off"])
    _ = try Verification.run(Archive(path: archive.path), data: true)
    // Drydock and a stock tar alike.
    try lab.restore(archive.path, to: lab.directory("new"))
    try lab.shell(
      "mkdir stock; zstd -dqc '\(lab.localCopy(of: archive.path))' | tar -xp -C stock --xattrs 2>/dev/null")
    for root in ["new", "stock/container"] {
      let shown = try lab.shell("stat -c '%a %Y' off off/deep", in: lab.directory(root))
      #expect(shown == "750 1600000000\n711 1600000000\n", "\(root)")
    }
  }

  @Test func theFlagNodumpSurvives() throws {
    for path in ["flagged", "dir/inside", "plain"] { try lab.write(path, "x") }
    for path in ["flagged", "dir"] as [ContainerPath] { try setNoDump(path) }
    lab.configuration.include = ["flagged", "dir"]
    let report = try snapshot()
    let archive = try Archive(path: report.path)
    let stored = try entries(archive)
    #expect(stored["flagged"]?.metadata.isNoDump == true && stored["dir"]?.metadata.isNoDump == true)
    #expect(stored["plain"]?.metadata.isNoDump == false && stored["dir/inside"]?.metadata.isNoDump == false)
    _ = try Verification.run(Archive(path: report.path), data: true)

    try lab.restore(report.path, to: lab.directory("new"))
    try lab.shell("mkdir stock; bsdtar -xpf '\(lab.localCopy(of: report.path))' -C stock")
    for root in ["new", "stock/container"] {
      let place = try Directory(lab.directory(root))
      // ext4 gives what a stock tool makes in a flagged directory the flag too.
      for path in ["flagged", "dir", "plain"] + (root == "new" ? ["dir/inside"] : []) {
        let isSet = try place.status(ContainerPath(path))?.isNoDump
        #expect(isSet == ["flagged", "dir"].contains(path), "\(root)/\(path)")
      }
    }
    // It is part of what the snapshot is.
    try setNoDump("flagged", false)
    #expect(try snapshot().snapshot != report.snapshot)
    // And a restore puts it back where all else is right, also on what nobody may read.
    try setNoDump("dir", false)
    try lab.shell("chmod 200 flagged; chmod 300 dir", in: lab.root)
    let outcome = try lab.restore(report.path)
    #expect(try Directory(lab.root).status("flagged")?.isNoDump == true)
    #expect(try Directory(lab.root).status("dir")?.isNoDump == true)
    #expect(outcome.value.restoredPaths.contains("flagged"))
    #expect(try snapshot().snapshot == report.snapshot)
  }

  @Test func anExclusionFlagIsPartOfTheSnapshotIDHoweverItIsSpelled() throws {
    try lab.write("a", "x")
    lab.configuration.include = ["a"]
    let plain = try snapshot().snapshot
    try lab.flag("a")
    let flagged = try snapshot().snapshot
    try lab.shell(
      "setfattr -x user.com.apple.metadata:com_apple_backup_excludeItem a; setfattr -n user.com.apple.MobileBackup -v 0x01 a",
      in: lab.root)
    #expect(plain != flagged)
    #expect(try snapshot().snapshot == flagged)
  }

  @Test func includingTheExcludedStoresAllButDrydocksState() throws {
    for path in ["flagged/x/y", "p.part", ".drydock-state/s", "kept"] { try lab.write(path, path) }
    try lab.flag("flagged")
    try lab.sql("flagged/db", "CREATE TABLE t (x)")
    lab.configuration.exclude = ["*.part"]
    let report = try snapshot(includesExcluded: true)
    let archive = try Archive(path: report.path)
    #expect(
      try entries(archive).keys.sorted() == [
        ".", "flagged", "flagged/db", "flagged/x", "flagged/x/y", "kept", "p.part",
      ])
    #expect(try entries(archive)["flagged/db"]?.kind == .database)
    #expect(
      try excluded(archive) == [
        ".drydock-state": "state @.drydock-state", "flagged": "apple-attribute @flagged",
        "p.part": "pattern @p.part",
      ])
    #expect(try archive.manifest.storesExcluded())
    _ = try Verification.run(Archive(path: report.path), data: true)
    #expect(try !Archive(path: snapshot().path).manifest.storesExcluded())
  }

  /// The flags of a path that has not changed since the parent are read from that.
  @Test func aParentsFlagsExcludeWhatHasNotChanged() throws {
    for path in ["flagged/x", "robots", "plain"] { try lab.write(path, path) }
    try lab.flag("flagged")
    try ExtendedAttributes.set("user.xdg.robots.backup", Array("false".utf8), of: lab.full("robots"))
    let rules = ["flagged": "apple-attribute @flagged", "robots": "robots-attribute @robots"]
    func snapshot(all: Bool) throws -> SnapshotReport {
      try lab.incremental { $0.includesExcluded = all }
    }
    _ = try snapshot(all: true)
    let second = try snapshot(all: false)
    #expect(second.header.kind == .incremental)
    #expect(try excluded(Archive(path: second.path)) == rules)
    #expect(try entries(Archive(path: second.path)).keys.sorted() == [".", "plain"])
    try lab.flag("plain")
    #expect(
      try excluded(Archive(path: snapshot(all: false).path))
        == rules.merging(["plain": "apple-attribute @plain"]) { first, _ in first })
  }
}
