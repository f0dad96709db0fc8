import FileSystem

/// Files of one directory that an app changes together: stored one after the other, they could belong to different moments.
package struct FileGroup: Sendable {
  package let names: [ContainerPath]
  /// All names of the directory, when one that comes or goes changes what the others mean.
  private let listed: Set<ContainerPath>?
  /// Whether it is all of the directory but what belongs to SQLite databases.
  var isDirectory: Bool { listed != nil }

  /// Finds the groups of a directory, by each of their names: the files of a LevelDB or RocksDB, whose `CURRENT` names the
  /// manifest, which names the tables (<https://github.com/google/leveldb/blob/main/doc/impl.md>); a file and its checksum,
  /// as MMKV writes them.
  ///
  /// - Parameter isOfDatabase: whether a file belongs to an SQLite database.
  static func find(
    among files: Set<ContainerPath>, of listed: @autoclosure () -> [ContainerPath],
    isOfDatabase: (ContainerPath) -> Bool
  ) -> [ContainerPath: FileGroup] {
    var groups: [ContainerPath: FileGroup] = [:]
    if isDirectory(files.lazy.map(\.bytes)) {
      let names = files.filter { !isOfDatabase($0) }.sorted()
      let group = FileGroup(names: names, listed: Set(listed()))
      for name in names { groups[name] = group }
      return groups
    }
    for sum in files where sum.bytes.suffix(4).elementsEqual(".crc".utf8) {
      let name = ContainerPath(unchecked: sum.bytes.dropLast(4))
      guard files.contains(name), !isOfDatabase(name) else { continue }
      let group = FileGroup(names: [name, sum], listed: nil)
      (groups[name], groups[sum]) = (group, group)
    }
    return groups
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

  /// Whether a file's size and time say that it has not changed: those of a LevelDB are written once, or appended to.
  package var showsWrites: Bool { listed != nil }

  /// Whether its app only appends to a file: what that has at a moment is whole later, too.
  package func canOnlyGrow(_ name: ContainerPath) -> Bool {
    listed != nil && (name == "LOG" || name.bytes.suffix(4).elementsEqual(".log".utf8))
  }
}
