import AppContainer
import Cryptography
import FileSystem

/// The hashes of files that commits by exchange have written, as long as nothing has changed them: a restore need not read these
/// files to compare them. Databases are not in the list.
package typealias WrittenFiles = InodeList<WrittenFile>

package struct WrittenFile: InodeRecord {
  package static let file: ContainerPath = "written"
  package static let width = 4

  package let inode: UInt64
  /// Its change time, nanoseconds since 1970.
  var changed: Int64
  /// The first half of its content hash.
  let hash: (UInt64, UInt64)

  package var numbers: [UInt64] { [inode, UInt64(bitPattern: changed), hash.0, hash.1] }
}

extension WrittenFile {
  package init(_ number: (Int) -> UInt64) {
    self.init(inode: number(0), changed: Int64(bitPattern: number(1)), hash: (number(2), number(3)))
  }
}

extension InodeList<WrittenFile> {
  /// Whether a file has the content with a hash, by its status.
  package func hasContent(_ digest: SHA256.Digest, _ status: FileStatus) -> Bool {
    guard let file = record(of: status) else { return false }
    return file.changed == status.changed && Self.isExact(status.changed) && file.hash == digest.firstHalf
  }

  /// Adds to the list what a commit has written.
  ///
  /// - Parameters:
  ///   - changes: those of the commit, below its place.
  ///   - new: the tree that it has put in place.
  ///   - time: before that, nanoseconds since 1970: what another program changed has a later change time.
  ///   - linked: what the commit has only linked.
  static func record(
    _ changes: ChangeRecords, in new: Directory, below place: ContainerPath, before time: Int64,
    _ linked: [LinkedFile],
    to state: Directory, known: Int
  ) {
    let former = (try? Self(in: state)) ?? Self()
    var hasMoved = false
    let moved = LinkedFiles(linked)
    let present = former.records.map { file in
      guard let linked = moved[file.inode], linked.first == file.changed else { return file }
      hasMoved = true
      return WrittenFile(inode: file.inode, changed: linked.last, hash: file.hash)
    }
    // A clock of the kernel ticks every few milliseconds.
    let limit = time - 20_000_000
    var added: [WrittenFile] = []
    for change in changes where change.granularity == .file {
      guard let after = change.after, after.type == .file, let digest = after.digest,
        let status = try? new.status(change.path.rebased(from: place, to: .root)), status.type == .file,
        status.links == 1, status.size == after.size, status.modified == after.metadata.modified,
        status.changed < limit
      else { continue }
      added.append(WrittenFile(inode: status.inode, changed: status.changed, hash: digest.firstHalf))
    }
    if added.isEmpty && !hasMoved { return }
    Self(present).adding(added, known: known).write(in: state)
  }
}
