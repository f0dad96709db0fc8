import Cryptography
import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Synchronization

/// A file that commits by exchange have linked into new trees and not changed, or have written.
struct CommittedFile: Sendable {
  let inode: UInt64
  /// Its change times (nanoseconds since 1970) before the first of these commits and after the last: in between, only
  /// links were added and removed. Of one that was written: since it was in its place.
  var first, last: Int64
  /// The first half of its content hash, once a commit has written it; else zero.
  var hash = SHA256.Half(high: 0, low: 0)
}

/// What commits by exchange know of files as long as nothing else has changed these. They link each file that does not change
/// into the new tree and remove its name in the old one, and each of both sets the change time: without this list, the next
/// snapshot would have to read all of them. Of files that they have written it has the hashes, so that a restore need not
/// read them to compare them; of a database, while it has no log or journal.
///
/// The list is a cache: whoever cannot read or write it, or finds it damaged, goes on without.
package struct CommittedFiles: Sendable {
  /// Sorted by inode.
  private(set) var files: [CommittedFile]
  /// The file system that the inodes are of.
  private let device: UInt64?

  init(_ files: consuming [CommittedFile], device: UInt64? = nil) {
    files.sort { $0.inode < $1.inode }
    self.files = files
    self.device = device
  }

  /// Reads the list of a container; it is empty when there is none.
  package init(of container: Container) {
    let state = try? StateDirectory.existing(for: container)
    self = state.flatMap { try? CommittedFiles(in: $0.directory) } ?? .none
  }

  /// Knows no file.
  package static let none = CommittedFiles([])

  private subscript(inode: UInt64) -> CommittedFile? {
    // A list is searched three times for each file of a container, so this is done where the optimizer is.
    let index = files.withUnsafeBytes { $0.firstRecord(width: Self.width, at: Self.place, since: inode) }
    return index < files.count && files[index].inode == inode ? files[index] : nil
  }

  /// What is known of a file that nothing else has changed.
  private func file(_ status: FileStatus) -> CommittedFile? {
    guard status.device == device, let file = self[status.inode], file.last == status.changed,
      Self.isExact(status.changed)
    else { return nil }
    return file
  }

  /// Whether a file system has written a time with less than seconds. With whole seconds, as ext3 has them, it does not show each
  /// change.
  private static func isExact(_ nanoseconds: Int64) -> Bool { nanoseconds % 1_000_000_000 != 0 }

  /// Whether commits alone have moved a file's change time since it was another one.
  package func explain(_ status: FileStatus, since changed: Int64) -> Bool {
    guard let file = file(status) else { return false }
    return file.first <= changed && changed <= file.last && Self.isExact(changed)
  }

  /// Whether a file has the content with a hash, by its status.
  package func hasContent(_ digest: SHA256.Digest, _ status: FileStatus) -> Bool {
    file(status).map { $0.hash == digest.firstHalf } ?? false
  }
}

// MARK: In a commit

extension CommittedFiles {
  /// Links a file into a new tree. One that is gone is left out: what has changed meanwhile is found before the exchange.
  ///
  /// - Returns: its change times before and after; nil for a file with several names.
  static func link(
    _ name: ContainerPath, from source: Directory, to target: Directory
  ) throws -> CommittedFile? {
    guard let before = try source.status(name), before.type != .directory else { return nil }
    try source.link(name, in: target, to: name)
    guard before.links == 1, let after = try target.status(name), after.links == 2, after.isSame(as: before)
    else { return nil }
    return CommittedFile(inode: before.inode, first: before.changed, last: after.changed)
  }

  /// Removes an old tree whose files are linked into a new one.
  ///
  /// - Parameter take: the last name of a file, and its path in the tree; true when it was taken out of its directory.
  /// - Returns: the files that nothing else has changed since they were linked.
  func removeTree(
    _ old: ContainerPath, in folder: Directory, linkedInto new: Directory,
    unless take: @Sendable (FileStatus, ContainerPath) throws -> Bool
  ) throws -> [CommittedFile] {
    let kept = Mutex<[CommittedFile]>([])
    let names = Mutex(())
    try folder.removeTree(old) { files, directory, path in
      let own = path.rebased(from: old, to: .root)
      let twin = try? new.directory(own)
      var found: [CommittedFile] = []
      func remove(_ name: ContainerPath, _ status: FileStatus?) throws {
        if let status, status.links == 1, try take(status, own.appending(name: name.bytes)) { return }
        try directory.removeFile(name, missingIsFine: true)
      }
      for name in files {
        let before = try directory.status(name)
        let known = before.flatMap { self[$0.inode] }
        if known == nil, before?.links ?? 1 > 1 {
          // Of two threads that remove the last two names of a file at once, each would leave the file to the other name.
          try names.withLock { _ in try remove(name, directory.status(name)) }
          continue
        }
        try remove(name, before)
        guard let twin, let before, var file = known, file.last == before.changed,
          before.links == 2,
          let after = try twin.status(name), after.links == 1,
          after.isSame(as: before)
        else { continue }
        file.last = after.changed
        found.append(file)
      }
      kept.withLock { $0 += found }
    }
    return kept.withLock { $0 }
  }

  /// Adds to the list what a commit has linked and written.
  ///
  /// - Parameters:
  ///   - linked: what it has linked.
  ///   - changes: those of the commit, below its place.
  ///   - new: the tree that it has put in place.
  ///   - time: before that, nanoseconds since 1970: what another program changed has a later change time.
  ///   - known: the number of paths of the container: a list with many more is of files that are gone.
  static func record(
    _ linked: [CommittedFile], _ changes: ChangeRecords, in new: Directory, below place: ContainerPath,
    before time: Int64, to state: Directory, known: Int
  ) {
    let former = (try? CommittedFiles(in: state)) ?? .none
    var files = linked
    for index in files.indices {
      guard let earlier = former[files[index].inode], earlier.last == files[index].first else { continue }
      (files[index].first, files[index].hash) = (earlier.first, earlier.hash)
    }
    // A clock of the kernel ticks every few milliseconds.
    let limit = time - 20_000_000
    let new = LastDirectory(new)
    // A million files take 40 MB: one array of them is made, and sorted where it is.
    files.reserveCapacity(files.count + changes.count)
    for change in changes where [.file, .database].contains(change.granularity) {
      guard let after = change.after, after.type == .file, let digest = after.digest,
        let status = try? new.status(of: change.path.rebased(from: place, to: .root)), status.type == .file,
        status.links == 1, status.size == after.size, status.modified == after.metadata.modified,
        status.changed < limit
      else { continue }
      files.append(
        CommittedFile(
          inode: status.inode, first: status.changed, last: status.changed, hash: digest.firstHalf))
    }
    if files.isEmpty { return }
    var list = CommittedFiles(consume files)
    if former.files.count + list.files.count <= 2 * known + 1000 {
      let others = former.files.filter { list[$0.inode] == nil }
      if !others.isEmpty { list = CommittedFiles(list.files + others) }
    }
    list.write(to: state)
  }
}

/// On disk: a line that names the format and the boot session, the records as this machine has them in memory, and the
/// SHA-256 of all that. After the end of the session the list is not read.
extension CommittedFiles {
  private static let file: ContainerPath = "files"
  private static let start = Array("drydock files 1 \(MachineIdentity.session ?? "unknown")\n".utf8)
  private static let width = MemoryLayout<CommittedFile>.stride
  /// Where a record has its inode.
  private static let place = MemoryLayout<CommittedFile>.offset(of: \.inode) ?? 0

  /// - Throws: `DrydockError` when the file is missing or damaged.
  private init(in state: Directory) throws {
    let (path, first) = (state.full(Self.file), Self.start.count)
    let damaged = DrydockError(.damagedState, "the list of files is corrupt", path: path)
    let file = try state.openFile(Self.file)
    defer { try? file.close() }
    let size = Int(clamping: try FileStatus(of: file, path: path).size) - first - 32
    guard (0...1 << 30).contains(size), size % Self.width == 0, try file.bytes(first, at: 0) == Self.start
    else { throw damaged }
    let hash = try SHA256()
    Self.start.withUnsafeBytes(hash.update)
    // Read to where they stay: a million take 40 MB.
    files = try [CommittedFile](unsafeUninitializedCapacity: size / Self.width) { buffer, count in
      let records = UnsafeMutableRawBufferPointer(buffer)
      guard try file.fill(records, at: UInt64(first)) == size else { throw damaged }
      hash.update(UnsafeRawBufferPointer(records))
      count = buffer.count
    }
    guard try file.bytes(32, at: Int64(first + size)) == hash.finalize().bytes else { throw damaged }
    device = try state.status().device
  }

  /// Writes the list if that is possible; without one, files are read again.
  private func write(to state: Directory) {
    guard MachineIdentity.session != nil else { return }
    // Not synced: what a crash leaves of it does not have its hash.
    try? state.removeFile(Self.file, missingIsFine: true)
    try? state.create(Self.file) { write in
      let hash = try SHA256()
      func add(_ bytes: [UInt8]) throws {
        bytes.withUnsafeBytes(hash.update)
        try write(bytes)
      }
      try add(Self.start)
      for first in stride(from: 0, to: files.count, by: 20_000) {
        try add(files[first...].prefix(20_000).withUnsafeBytes(Array.init))
      }
      try write(hash.finalize().bytes)
    }
  }
}
