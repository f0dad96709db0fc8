import AppStores
import FileSystem

/// Files of one directory that an app changes together: stored one after the other, they could belong to different moments.
package struct FileGroup: Sendable {
  package let names: [ContainerPath]
  /// Whether all of them were found when the directory was listed: the others are not stored.
  package let isWhole: Bool
  /// All names of the directory, when one that comes or goes changes what the others mean.
  private let listed: Set<ContainerPath>?
  /// Whether it is all of the directory but what belongs to SQLite databases. Its files are written once or appended to, so that
  /// sizes and times say whether one has changed.
  package var isDirectory: Bool { listed != nil }

  /// Finds the groups of a directory, by each of their names: the files of a LevelDB or RocksDB, whose `CURRENT` names the
  /// manifest, which names the tables (<https://github.com/google/leveldb/blob/main/doc/impl.md>); a file and its checksum,
  /// as MMKV writes them.
  ///
  /// - Parameters:
  ///   - pairs: of the names that the directory had.
  ///   - files: those that were found as files.
  ///   - found: those that were found.
  ///   - isOfDatabase: whether a file belongs to an SQLite database.
  static func find(
    _ pairs: [(ContainerPath, ContainerPath)], files: [ContainerPath],
    found: @autoclosure () -> Set<ContainerPath>, isOfDatabase: (ContainerPath) -> Bool
  ) -> [ContainerPath: FileGroup] {
    if isDirectory(files.lazy.map(\.bytes)) {
      // A directory that changes while it is listed may have a name twice.
      let names = Set(files).filter { !isOfDatabase($0) }.sorted()
      let group = FileGroup(names: names, isWhole: true, listed: found())
      return Dictionary(uniqueKeysWithValues: names.map { ($0, group) })
    }
    if pairs.isEmpty { return [:] }
    var groups: [ContainerPath: FileGroup] = [:]
    let files = Set(files)
    let others = found().subtracting(files)
    for (name, sum) in pairs where !others.contains(name) && !others.contains(sum) && !isOfDatabase(name) {
      let group = FileGroup(
        names: [name, sum], isWhole: files.contains(name) && files.contains(sum), listed: nil)
      (groups[name], groups[sum]) = (group, group)
    }
    return groups
  }

  /// Files and their checksums, by their names.
  static func pairs(among names: [ContainerPath]) -> [(ContainerPath, ContainerPath)] {
    let sums = names.filter { $0.bytes.suffix(4).elementsEqual(".crc".utf8) }
    if sums.isEmpty { return [] }
    let names = Set(names)
    return sums.map { (ContainerPath(unchecked: $0.bytes.dropLast(4)), $0) }.filter { names.contains($0.0) }
  }

  static func isDirectory(_ names: some Sequence<[UInt8]>) -> Bool {
    names.contains { $0.elementsEqual("CURRENT".utf8) }
      && names.contains { $0.starts(with: "MANIFEST-".utf8) }
  }

  /// Whether its directory has names that were not listed, but for sidecars of databases.
  package func hasGrown(in directory: Directory) throws -> Bool {
    guard let listed else { return false }
    return try directory.names().map(ContainerPath.init(unchecked:)).contains {
      !listed.contains($0) && DatabaseUnit.main(ofSidecar: $0).map(listed.contains) != true
    }
  }

  /// Whether its app only appends to a file: what that has at a moment is whole later, too.
  package func canOnlyGrow(_ name: ContainerPath) -> Bool {
    isDirectory && (name == "LOG" || name.bytes.suffix(4).elementsEqual(".log".utf8))
  }
}
