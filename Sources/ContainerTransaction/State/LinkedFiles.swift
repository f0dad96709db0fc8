import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Synchronization

/// The files whose change time Drydock has moved itself. A commit by exchange links each file that it does not change into
/// the new tree and removes its name in the old one, and each of both sets the change time. Without this list, the next
/// snapshot would have to read all of them.
package typealias LinkedFiles = InodeList<LinkedFile>

/// A file that commits by exchange have linked into new trees and not changed.
package struct LinkedFile: InodeRecord, Equatable {
  package static let file: ContainerPath = "linked"
  package static let width = 3

  package let inode: UInt64
  /// Its change times (nanoseconds since 1970) before the first of these commits and after the last: in between, only
  /// links were added and removed.
  var first, last: Int64

  package var numbers: [UInt64] { [inode, UInt64(bitPattern: first), UInt64(bitPattern: last)] }
}

extension LinkedFile {
  package init(_ number: (Int) -> UInt64) {
    self.init(inode: number(0), first: Int64(bitPattern: number(1)), last: Int64(bitPattern: number(2)))
  }
}

extension InodeList<LinkedFile> {
  /// Whether commits alone have moved a file's change time since it was another one.
  package func explain(_ status: FileStatus, since changed: Int64) -> Bool {
    guard let file = record(of: status) else { return false }
    return file.last == status.changed && file.first <= changed && changed <= file.last
      && Self.isExact(changed) && Self.isExact(status.changed)
  }

  /// Adds to the list what a commit has linked.
  ///
  /// - Parameter known: the number of files of the container.
  static func record(_ linked: [LinkedFile], in state: Directory, known: Int) {
    if linked.isEmpty { return }
    let former = (try? Self(in: state)) ?? Self()
    var new = linked
    for index in new.indices {
      if let earlier = former[new[index].inode], earlier.last == new[index].first {
        new[index].first = earlier.first
      }
    }
    former.adding(new, known: known).write(in: state)
  }
}

// MARK: In a commit

extension InodeList<LinkedFile> {
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

/// A record of one inode, as numbers.
package protocol InodeRecord: Sendable {
  /// The file of the list in the state directory.
  static var file: ContainerPath { get }
  /// How many numbers a record has.
  static var width: Int { get }
  var inode: UInt64 { get }
  var numbers: [UInt64] { get }

  /// Makes a record of its numbers, by their positions.
  init(_ number: (Int) -> UInt64)
}

/// What the state directory knows of inodes: a line that names the format and the boot session, records of little-endian numbers
/// of 64 bits, and the SHA-256 of all that. After the end of the session the list is not read.
///
/// It is a cache: whoever cannot read or write it, or finds it damaged, goes on without.
package struct InodeList<Record: InodeRecord>: Sendable {
  private static var magic: [UInt8] {
    Array("drydock inodes 2 \(MachineIdentity.session ?? "unknown")\n".utf8)
  }

  /// Sorted by inode.
  private(set) var records: [Record]
  /// The file system that the inodes are of.
  private let device: UInt64?

  /// By default a list that knows no file.
  package init(_ records: [Record] = [], device: UInt64? = nil) {
    self.records = records.sorted { $0.inode < $1.inode }
    self.device = device
  }

  /// Reads the list of a container; it is empty when there is none.
  package init(of container: Container) {
    let states = (try? StateDirectory.readable(of: container).states) ?? []
    let lists = states.lazy.filter { $0.place == .beside }.compactMap { try? Self(in: $0.directory) }
    self = lists.first ?? Self()
  }

  subscript(inode: UInt64) -> Record? {
    let index = records.indices.first(since: { records[$0].inode >= inode })
    return index < records.count && records[index].inode == inode ? records[index] : nil
  }

  func record(of status: FileStatus) -> Record? { status.device == device ? self[status.inode] : nil }

  /// Whether a file system has written a time with less than seconds. With whole seconds, as ext3 has them, it does not show each
  /// change.
  static func isExact(_ nanoseconds: Int64) -> Bool { nanoseconds % 1_000_000_000 != 0 }

  /// The list with new records, which replace those of the same inodes.
  ///
  /// - Parameter known: the number of files of the container: a list with many more is of files that are gone.
  func adding(_ new: [Record], known: Int) -> Self {
    guard records.count + new.count <= 2 * known + 1000 else { return Self(new) }
    let inodes = Set(new.map(\.inode))
    return Self(new + records.filter { !inodes.contains($0.inode) })
  }

  /// - Throws: `DrydockError` when the file is missing or damaged.
  init(in state: Directory) throws {
    let bytes = try state.contents(Record.file, limit: 1 << 30)
    let (body, magic, size) = (bytes.dropLast(32), Self.magic, 8 * Record.width)
    guard body.starts(with: magic), (body.count - magic.count) % size == 0,
      try SHA256.hash(Array(body)).bytes == Array(bytes.suffix(32))
    else { throw DrydockError(.damagedState, "the list of inodes is corrupt", path: state.full(Record.file)) }
    records = body.dropFirst(magic.count).withUnsafeBytes { records in
      stride(from: 0, to: records.count, by: size).map { start in
        Record {
          UInt64(littleEndian: records.loadUnaligned(fromByteOffset: start + 8 * $0, as: UInt64.self))
        }
      }
    }
    device = try state.status().device
  }

  /// Writes the list if that is possible; without one, files are read again.
  func write(in state: Directory) {
    var bytes = Self.magic
    for number in records.lazy.flatMap(\.numbers) {
      withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }
    guard MachineIdentity.session != nil, let hash = try? SHA256.hash(bytes) else { return }
    // Not synced: what a crash leaves of it does not have its hash.
    try? state.removeFile(Record.file, missingIsFine: true)
    try? state.create(Record.file, bytes + hash.bytes)
  }
}
