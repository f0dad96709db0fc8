import CLibZstd
import DrydockErrors

/// One frame of an archive: where it lies in the file, and which part of the tar stream it holds.
package struct ArchiveFrame: Sendable, Hashable {
  /// Where the frame starts in the file.
  package let fileOffset: UInt64
  /// Its bytes in the file.
  package let compressedSize: Int
  /// Where its content starts in the tar stream.
  package let tarOffset: UInt64
  /// Its bytes in the tar stream.
  package let plainSize: Int
  /// The low half of XXH64 of the content.
  package let checksum: UInt32

  /// Where the next frame's content starts in the tar stream.
  package var tarEnd: UInt64 { tarOffset + UInt64(plainSize) }
}

/// The data frames of an archive, checked against each other and against the file's size.
struct FrameIndex: Sendable {
  let frames: [ArchiveFrame]
  /// Where the frame with the manifest's location starts.
  let locationOffset: UInt64

  /// The bytes of the tar stream.
  var tarSize: UInt64 { frames.last?.tarEnd ?? 0 }

  /// Expects the table's entries and its own place in the file. Throws `DrydockError` when they do not fit.
  init(_ entries: [SeekTable.Entry], tableOffset: UInt64) throws {
    guard let last = entries.last else { throw DrydockError.damaged("the seek table is empty") }
    guard last.plainSize == 0, last.compressedSize == UInt32(LocationFrame.size),
      last.checksum == ArchiveFormat.checksumOfNothing
    else {
      throw DrydockError(
        .notAnArchive,
        "this is a seekable zstd file, but it does not say where a drydock manifest is; give an archive")
    }
    let largest = ZSTD_compressBound(ArchiveFormat.frameSize)
    var frames: [ArchiveFrame] = []
    frames.reserveCapacity(entries.count - 1)
    var file: UInt64 = 0
    var tar: UInt64 = 0
    for (index, entry) in entries.dropLast().enumerated() {
      guard (1...ArchiveFormat.frameSize).contains(Int(entry.plainSize)) else {
        throw DrydockError(
          .limit,
          "frame \(index) claims \(entry.plainSize) bytes, outside of 1 to \(ArchiveFormat.frameSize); "
            + "the archive is damaged or made to harm")
      }
      guard (ArchiveFormat.smallestFrame...largest).contains(Int(entry.compressedSize)) else {
        throw DrydockError.damaged(
          "frame \(index) claims an impossible size of \(entry.compressedSize) bytes")
      }
      frames.append(
        ArchiveFrame(
          fileOffset: file, compressedSize: Int(entry.compressedSize), tarOffset: tar,
          plainSize: Int(entry.plainSize), checksum: entry.checksum))
      file += UInt64(entry.compressedSize)
      tar += UInt64(entry.plainSize)
    }
    guard file + UInt64(LocationFrame.size) == tableOffset else {
      throw DrydockError.damaged("the seek table's sizes do not add up to the file's")
    }
    self.frames = frames
    locationOffset = file
  }

  /// The frame that holds a place of the tar stream, which must lie inside of it.
  func frame(at tarOffset: UInt64) -> Int {
    var low = 0
    var high = frames.count - 1
    while low < high {
      let middle = (low + high) / 2
      if frames[middle].tarEnd <= tarOffset { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
