import AgeEncryption
import AppContainer
import Dispatch
import DrydockErrors
import FileSystem
import Synchronization
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A file that is to be put with others, its content still to come.
package struct NewFile: Sendable {
  package var path: ContainerPath
  package var metadata: FileMetadata
  /// SHA-256 of the content, which the filler checks.
  package var digest: SHA256.Digest?
  package var size: UInt64
  /// Whether it is a database, or a part of one.
  package var isDatabase: Bool

  package init(
    path: ContainerPath, metadata: FileMetadata, digest: SHA256.Digest?, size: UInt64, isDatabase: Bool
  ) {
    (self.path, self.metadata, self.digest, self.size) = (path, metadata, digest, size)
    self.isDatabase = isDatabase
  }
}

extension StagedContainer {
  /// See ``Stage/startWriting(_:)``. In a dry run nothing is to be kept.
  func startWriting(_ name: ContainerPath?) {
    if !transaction.isEmpty { stage.startWriting(name) }
  }

  /// Fills a file, by its number.
  package typealias Filler = (Int, StageFile) throws -> Void

  /// Puts many files, filled on all cores: making a file, writing and hashing it take one core longer than a disk
  /// takes. Each group is filled in its order by one thread.
  ///
  /// - Parameters:
  ///   - groups: the numbers of the files. With a million of them there is no room for each to be in several lists.
  ///   - file: a file by its number.
  ///   - filler: makes what fills a group's files, on the group's own thread.
  /// - Throws: ``DrydockError``: the first failure, also of a filler.
  package func putFiles(
    _ groups: [[Int]], _ file: @Sendable (Int) -> NewFile, filler: @escaping @Sendable () throws -> Filler
  ) throws {
    let size = groups.joined().reduce(0) { $0 &+ file($1).size }
    if let first = groups.first?.first {
      try stage.requireSpace(size, for: file(first).path)
    }
    for number in groups.joined() { try createDirectory(file(number).path.parent) }
    stage.directory.spreadDirectories()
    let folders = groups.map { _ in stage.newName() }
    let made = Mutex<[Int: [FileMetadata?]]>([:])
    let failure = Mutex<(any Error)?>(nil)
    let directory = stage.directory
    DispatchQueue.concurrentPerform(iterations: groups.count) { number in
      guard failure.withLock({ $0 == nil }) else { return }
      do {
        let metadata = try Self.make(groups[number], file, in: folders[number], of: directory, filler()) {
          failure.withLock { $0 != nil }
        }
        made.withLock { $0[number] = metadata }
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    if size > Stage.largeSize { startWriting(nil) }
    let metadata = made.withLock { $0 }
    for (number, group) in groups.enumerated() {
      for (index, file) in group.lazy.map(file).enumerated() {
        var inode = StagedInode(
          name: folders[number].appending(name: Self.name(index)), type: .file, digest: file.digest)
        inode.made = metadata[number]?[index].map { ($0, file.size, file.isDatabase) }
        try replace(file.path, with: .inode(inode))
      }
    }
  }

  /// Makes a group's files in a separate folder: two threads do not wait for each other's names.
  ///
  /// - Returns: what each file has then, which a user who is not root may not have been able to set.
  private static func make(
    _ numbers: [Int], _ file: (Int) -> NewFile, in folder: ContainerPath, of stage: Directory, _ fill: Filler,
    isCancelled: () -> Bool
  ) throws -> [FileMetadata?] {
    try stage.createDirectory(folder)
    let directory = try stage.directory(folder)
    return try numbers.enumerated().map { index, number in
      if isCancelled() { return nil }
      let name = ContainerPath(name: name(index))
      try StageFile.make(name, in: directory, file(number).metadata) { try fill(number, $0) }
      return try directory.metadata(name)
    }
  }

  private static func name(_ number: Int) -> [UInt8] { Array(String(number).utf8) }
}

package final class StageFile {
  /// Zeros in a whole block of this size become a hole: a disk image or a preallocated file takes no more room than
  /// it did.
  private static let holeSize = 64 << 10
  /// Given several MiB at once, Linux takes five times as long to find the memory for them.
  private static let pieceSize = 256 << 10

  private let file: FileDescriptor
  private let path: String
  private var size: Int64 = 0
  private var endsInHole = false
  private var isOpen = true

  init(_ directory: Directory, _ name: ContainerPath) throws {
    file = try directory.createFile(name)
    path = directory.full(name)
  }

  deinit { close() }

  /// Makes a file, filled and with its metadata; none stays when that fails.
  static func make(
    _ name: ContainerPath, in stage: Directory, _ metadata: FileMetadata?, fill: (StageFile) throws -> Void
  ) throws {
    let file = try StageFile(stage, name)
    do {
      try fill(file)
      try file.finish()
      if let metadata { try stage.apply(metadata, to: name) }
    } catch {
      file.close()
      try? stage.removeFile(name, missingIsFine: true)
      throw error
    }
  }

  package func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

  package func write(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      // Pieces end where blocks of the file do, so that a block is looked at as a whole.
      let room = Self.pieceSize - Int(size) % Self.pieceSize
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(room))
      rest = rest.dropFirst(piece.count)
      try writePiece(piece)
    }
  }

  private func writePiece(_ piece: UnsafeRawBufferPointer) throws {
    var rest = piece[...]
    while !rest.isEmpty {
      let zeros = zeroBytes(rest)
      if zeros > 0 {
        size += Int64(zeros)
        endsInHole = true
        rest = rest.dropFirst(zeros)
        continue
      }
      let data = UnsafeRawBufferPointer(rebasing: rest.prefix(Self.bytesBeforeZeros(rest)))
      do {
        _ = try file.writeAll(toAbsoluteOffset: size, data)
      } catch let error as Errno {
        throw DrydockError.system("cannot write the staged file", path, error)
      }
      size += Int64(data.count)
      endsInHole = false
      rest = rest.dropFirst(data.count)
    }
  }

  /// The length of the zeros at the start: whole blocks, and what is left of a hole that began before.
  private func zeroBytes(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
    var count = 0
    while count < bytes.count {
      let block = bytes.dropFirst(count).prefix(Self.holeSize)
      guard block.count == Self.holeSize || count > 0 || endsInHole, Self.isZero(block) else { break }
      count += block.count
    }
    return count
  }

  private static func bytesBeforeZeros(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
    var count = 0
    while bytes.count - count >= holeSize {
      if isZero(bytes.dropFirst(count).prefix(holeSize)) { return count }
      count += holeSize
    }
    return bytes.count
  }

  private static func isZero(_ block: Slice<UnsafeRawBufferPointer>) -> Bool {
    // Every byte equals the next one, and the first is zero; most blocks differ in their first bytes.
    guard block.first == 0, let start = UnsafeRawBufferPointer(rebasing: block).baseAddress else {
      return false
    }
    return memcmp(start, start + 1, block.count - 1) == 0
  }

  /// Ends the file: what ends in a hole gets its length.
  func finish() throws {
    do {
      if endsInHole { try file.resize(to: size) }
    } catch let error as Errno {
      throw DrydockError.system("cannot write the staged file", path, error)
    }
    // The disk is at work while the next files are made. Many small ones are better written together.
    if size >= 64 << 10 { file.beginWriting() }
    close()
  }

  func close() {
    if isOpen { try? file.close() }
    isOpen = false
  }
}
