import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Synchronization

/// A file that commits by exchange have linked into new trees and not changed.
struct LinkedFile: Sendable, Equatable {
  let inode: UInt64
  /// Its change times (nanoseconds since 1970) before the first of these commits and after the last: in between, only
  /// links were added and removed.
  var first, last: Int64
}

/// The files whose change time Drydock has moved itself. A commit by exchange links each file that it does not change into
/// the new tree and removes its name in the old one, and each of both sets the change time. Without this list, the next
/// snapshot would have to read all of them.
///
/// The list is a cache: whoever cannot read or write it, or finds it damaged, goes on without.
package struct LinkedFiles: Sendable {
  private static let file: ContainerPath = "linked"

  /// Sorted by inode.
  private(set) var files: [LinkedFile]
  /// The file system that the inodes are of.
  private let device: UInt64?

  init(_ files: [LinkedFile], device: UInt64? = nil) {
    self.files = files.sorted { $0.inode < $1.inode }
    self.device = device
  }

  /// Reads the list of a container; it is empty when there is none.
  package init(of container: Container) {
    let states = (try? StateDirectory.readable(of: container).states) ?? []
    for state in states where state.place == .beside {
      if let list = try? LinkedFiles(in: state.directory) {
        self = list
        return
      }
    }
    self.init([])
  }

  /// The files for which nothing is known about an earlier state.
  package static let none = LinkedFiles([])

  /// Whether commits alone have moved a file's change time since it was another one.
  package func explain(_ status: FileStatus, since changed: Int64) -> Bool {
    guard status.device == device, let file = self[status.inode] else { return false }
    return file.last == status.changed && file.first <= changed && changed <= file.last
      && InodeList.isExact(changed) && InodeList.isExact(status.changed)
  }

  subscript(inode: UInt64) -> LinkedFile? {
    let index = files.indices.first(since: { files[$0].inode >= inode })
    return index < files.count && files[index].inode == inode ? files[index] : nil
  }
}

// MARK: In a commit

extension LinkedFiles {
  /// Links a file into a new tree.
  ///
  /// - Returns: its change times before and after; nil for a file with several names.
  static func link(
    _ name: ContainerPath, from source: Directory, to target: Directory
  ) throws -> LinkedFile? {
    let before = try source.status(name)
    try source.link(name, in: target, to: name)
    guard let before, before.type != .directory, before.links == 1, let after = try target.status(name),
      after.links == 2, IndexedStatus(after).isSame(as: IndexedStatus(before))
    else { return nil }
    return LinkedFile(inode: before.inode, first: before.changed, last: after.changed)
  }

  /// Removes an old tree whose files are linked into a new one.
  ///
  /// - Returns: the files that nothing else has changed since they were linked.
  func removeTree(_ old: ContainerPath, in folder: Directory, linkedInto new: Directory) throws
    -> [LinkedFile]
  {
    let kept = Mutex<[LinkedFile]>([])
    try folder.removeTree(old) { names, directory, path in
      let twin = try? new.directory(path.rebased(from: old, to: .root))
      var found: [LinkedFile] = []
      for name in names {
        let before = try directory.status(name)
        try directory.removeFile(name, missingIsFine: true)
        guard let twin, let before, var file = self[before.inode], file.last == before.changed,
          before.links == 2,
          let after = try twin.status(name), after.links == 1,
          IndexedStatus(after).isSame(as: IndexedStatus(before))
        else { continue }
        file.last = after.changed
        found.append(file)
      }
      kept.withLock { $0 += found }
    }
    return kept.withLock { $0 }
  }
}

// MARK: On disk

extension LinkedFiles {
  private init(in state: Directory) throws {
    files = try InodeList.read(Self.file, width: 3, in: state) { number in
      LinkedFile(inode: number(0), first: Int64(bitPattern: number(1)), last: Int64(bitPattern: number(2)))
    }
    device = try state.status().device
  }

  /// Adds to the list what a commit has linked.
  ///
  /// - Parameter known: the number of files of the container: a list with many more is of files that are gone.
  static func record(_ linked: [LinkedFile], in state: Directory, known: Int) {
    if linked.isEmpty { return }
    let former = (try? LinkedFiles(in: state)) ?? .none
    var new = linked
    for index in new.indices {
      if let earlier = former[new[index].inode], earlier.last == new[index].first {
        new[index].first = earlier.first
      }
    }
    var list = LinkedFiles(new)
    if former.files.count + new.count <= 2 * known + 1000 {
      list = LinkedFiles(new + former.files.filter { list[$0.inode] == nil })
    }
    InodeList.write(list.files, to: file, in: state) { file, add in
      for number in [file.inode, UInt64(bitPattern: file.first), UInt64(bitPattern: file.last)] {
        add(number)
      }
    }
  }
}

/// What the state directory knows of inodes: a line that names the format and the boot session, records of little-endian numbers
/// of 64 bits, and the SHA-256 of all that. After the end of the session the list is not read.
enum InodeList {
  private static let magic = Array("drydock inodes 2 \(MachineIdentity.session ?? "unknown")\n".utf8)

  /// Whether a file system has written a time with less than seconds. With whole seconds, as ext3 has them, it does not show each
  /// change.
  static func isExact(_ nanoseconds: Int64) -> Bool { nanoseconds % 1_000_000_000 != 0 }

  /// - Parameters:
  ///   - width: how many numbers a record has.
  ///   - record: makes a record of its numbers, by their positions.
  /// - Throws: `DrydockError` when the file is missing or damaged.
  static func read<Record>(
    _ file: ContainerPath, width: Int, in state: Directory, _ record: ((Int) -> UInt64) -> Record
  ) throws -> [Record] {
    let bytes = try state.contents(file, limit: 1 << 30)
    let body = bytes.dropLast(32)
    guard body.starts(with: magic), (body.count - magic.count) % (8 * width) == 0,
      try SHA256.hash(Array(body)).bytes == Array(bytes.suffix(32))
    else { throw DrydockError(.damagedState, "the list of inodes is corrupt", path: state.full(file)) }
    return body.dropFirst(magic.count).withUnsafeBytes { records in
      stride(from: 0, to: records.count, by: 8 * width).map { start in
        record {
          UInt64(littleEndian: records.loadUnaligned(fromByteOffset: start + 8 * $0, as: UInt64.self))
        }
      }
    }
  }

  /// Writes a list if that is possible; without one, files are read again.
  ///
  /// - Parameter encode: adds the numbers of a record.
  static func write<Record>(
    _ records: [Record], to file: ContainerPath, in state: Directory,
    _ encode: (Record, (UInt64) -> Void) -> Void
  ) {
    var bytes = magic
    for record in records {
      encode(record) { number in withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }
    }
    guard MachineIdentity.session != nil, let hash = try? SHA256.hash(bytes) else { return }
    // Not synced: what a crash leaves of it does not have its hash.
    try? state.removeFile(file, missingIsFine: true)
    try? state.create(file, bytes + hash.bytes)
  }
}
