import AppContainer
import Cryptography
import FileSystem

/// The hashes of files that commits by exchange have written, as long as nothing has changed them: a restore need not read these
/// files to compare them. Databases are not in the list.
///
/// The list is a cache like ``LinkedFiles``.
package struct WrittenFiles: Sendable {
  private struct File {
    let inode: UInt64
    /// Its change time, nanoseconds since 1970.
    var changed: Int64
    /// The first half of its content hash.
    let hash: (UInt64, UInt64)
  }

  private static let file: ContainerPath = "written"

  /// Sorted by inode.
  private var files: [File] = []
  private var device: UInt64?

  /// Reads the list of a container; it is empty when there is none.
  package init(of container: Container) {
    let states = (try? StateDirectory.readable(of: container).states) ?? []
    for state in states where state.place == .beside {
      if let list = try? WrittenFiles(in: state.directory) { self = list }
    }
  }

  /// Knows no file.
  package init() {}

  private init(in state: Directory) throws {
    files = try InodeList.read(Self.file, width: 4, in: state) { number in
      File(inode: number(0), changed: Int64(bitPattern: number(1)), hash: (number(2), number(3)))
    }
    device = try state.status().device
  }

  private subscript(inode: UInt64) -> File? {
    let index = files.indices.first(since: { files[$0].inode >= inode })
    return index < files.count && files[index].inode == inode ? files[index] : nil
  }

  /// Whether a file has the content with a hash, by its status.
  package func hasContent(_ digest: SHA256.Digest, _ status: FileStatus) -> Bool {
    guard status.device == device, let file = self[status.inode] else { return false }
    return file.changed == status.changed && InodeList.isExact(status.changed)
      && file.hash == digest.firstHalf
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
    var list = (try? WrittenFiles(in: state)) ?? WrittenFiles()
    let former = list.files.count
    var hasMoved = false
    let moved = LinkedFiles(linked)
    for index in list.files.indices {
      guard let file = moved[list.files[index].inode], file.first == list.files[index].changed else {
        continue
      }
      list.files[index].changed = file.last
      hasMoved = true
    }
    // A clock of the kernel ticks every few milliseconds.
    let limit = time - 20_000_000
    var added: [File] = []
    for change in changes where change.granularity == .file {
      guard let after = change.after, after.type == .file, let digest = after.digest,
        let status = try? new.status(change.path.rebased(from: place, to: .root)), status.type == .file,
        status.links == 1, status.size == after.size, status.modified == after.metadata.modified,
        status.changed < limit
      else { continue }
      added.append(File(inode: status.inode, changed: status.changed, hash: digest.firstHalf))
    }
    if added.isEmpty && !hasMoved { return }
    let inodes = Set(added.map(\.inode))
    if former + added.count > 2 * known + 1000 { list.files = [] }
    list.files = (list.files.filter { !inodes.contains($0.inode) } + added).sorted { $0.inode < $1.inode }
    InodeList.write(list.files, to: file, in: state) { file, add in
      for number in [file.inode, UInt64(bitPattern: file.changed), file.hash.0, file.hash.1] { add(number) }
    }
  }
}
