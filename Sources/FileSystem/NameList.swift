import CPlatform
import DrydockErrors

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The names in a directory as one look at it gave them, each with its inode. Packed, because a container may have a
/// million.
package struct NameList: Sendable {
  private let bytes: [UInt8]

  init(_ directory: Directory) throws {
    var names = platform_names()
    guard platform_list_names(directory.descriptor.rawValue, &names) == 0 else {
      throw DrydockError.lastCall("cannot list", directory.path)
    }
    defer { free(names.bytes) }
    bytes = Array(UnsafeBufferPointer(start: names.bytes, count: names.size))
  }

  /// One name: its bytes, the inode's number, and whether it may be a directory's.
  package struct Item {
    package var name: [UInt8]
    package var inode: UInt64
    var mayBeDirectory: Bool
  }

  /// Those that a test of inode and kind lets through.
  private func items(where isWanted: (UInt64, _ mayBeDirectory: Bool) -> Bool) -> [Item] {
    bytes.withUnsafeBytes { bytes in
      var items: [Item] = []
      guard let base = bytes.baseAddress else { return items }
      var offset = 0
      while offset < bytes.count {
        let inode = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let mayBeDirectory = bytes[offset + 8] != 2
        let start = offset + 9
        let length = strlen((base + start).assumingMemoryBound(to: CChar.self))
        if isWanted(inode, mayBeDirectory) {
          let name = Array(UnsafeRawBufferPointer(rebasing: bytes[start..<start + length]))
          items.append(Item(name: name, inode: inode, mayBeDirectory: mayBeDirectory))
        }
        offset = start + length + 1
      }
      return items
    }
  }

  /// All names, sorted by their bytes.
  var sorted: [Item] {
    items { _, _ in true }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// The names of what may be a directory.
  var directories: [[UInt8]] { items { $1 }.map(\.name) }

  /// The names with their inodes, but for the sidecars of what is there.
  func lasting(_ sidecarOf: (ContainerPath) -> ContainerPath?) -> [[UInt8]: UInt64] {
    let all = Dictionary(items { _, _ in true }.map { ($0.name, $0.inode) }, uniquingKeysWith: { $1 })
    return all.filter { name, _ in
      sidecarOf(ContainerPath(name: name)).map { all[$0.bytes] == nil } ?? true
    }
  }

  /// The names of an inode.
  func names(of inode: UInt64) -> [[UInt8]] { items { number, _ in number == inode }.map(\.name) }
}
