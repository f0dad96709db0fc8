import AppContainer
import DrydockErrors
import FileSystem
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A file of the stage that is being written.
package final class StageFile {
  /// Zeros in a whole block of this size become a hole: a disk image or a preallocated file takes no more room than
  /// it did, and what is next to each other elsewhere stays so.
  private static let holeSize = 64 << 10
  /// Given several MiB at once, Linux takes five times as long to find the memory for them.
  private static let pieceSize = 256 << 10

  private let file: FileDescriptor
  private let path: String
  private var size: Int64 = 0
  private var endsInHole = false
  private var isOpen = true

  init(_ stage: Directory, _ name: ContainerPath) throws {
    file = try stage.createFile(name)
    path = stage.full(name)
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

  /// Appends bytes.
  package func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

  /// Appends bytes.
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
