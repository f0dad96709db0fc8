import CPlatform
import DrydockErrors

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The names in a directory with their inodes, unordered, from one listing. Packed, because a directory may have a million.
package struct NameList: Sendable {
  private let bytes: [UInt8]

  package struct Item {
    package var name: [UInt8]
    package var inode: UInt64
    /// Nil when the file system does not report the kind with the name.
    package var isDirectory: Bool?

    package static let groupList = Item(name: ContainerPath.groups.bytes, inode: 0, isDirectory: true)
  }

  /// Lists an open directory; nil (and errno) when that fails.
  init?(_ directory: Int32) {
    var names = platform_names()
    guard platform_list_names(directory, &names) == 0 else { return nil }
    defer { free(names.bytes) }
    bytes = Array(UnsafeBufferPointer(start: names.bytes, count: names.size))
  }

  /// The items, those of one inode, or those that may be directories.
  package func items(inode: UInt64? = nil, directoriesOnly: Bool = false) -> [Item] {
    bytes.withUnsafeBytes { bytes in
      var items: [Item] = []
      guard let base = bytes.baseAddress else { return items }
      var offset = 0
      while offset < bytes.count {
        let number = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let kind = bytes[offset + 8]
        let start = offset + 9
        let length = strlen((base + start).assumingMemoryBound(to: CChar.self))
        if inode ?? number == number, !directoriesOnly || kind != 2 {
          let name = Array(UnsafeRawBufferPointer(rebasing: bytes[start..<start + length]))
          items.append(Item(name: name, inode: number, isDirectory: kind == 0 ? nil : kind == 1))
        }
        offset = start + length + 1
      }
      return items
    }
  }
}

extension Directory {
  /// The names in this directory on disk, without the list of groups.
  package func listing() throws -> NameList {
    guard let names = NameList(descriptor.rawValue) else { throw DrydockError.lastCall("cannot list", path) }
    return names
  }

  /// The names in this directory, unordered, directories separate from all others. Most file systems report the kind with
  /// the name, so that no status is read.
  package func namesByKind() throws -> (directories: [ContainerPath], others: [ContainerPath]) {
    var (directories, others): ([ContainerPath], [ContainerPath]) = ([], [])
    for item in try listing().items() {
      let name = ContainerPath(name: item.name)
      if try item.isDirectory ?? (status(name)?.type == .directory) {
        directories.append(name)
      } else {
        others.append(name)
      }
    }
    return (directories, others)
  }
}
