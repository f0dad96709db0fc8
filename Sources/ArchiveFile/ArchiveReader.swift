import AgeEncryption
import Cryptography
import DrydockErrors

/// Reads any part of one archive.
///
/// Opening reads the end of the file only: the seek table and where the manifest is. Every frame is checked
/// against its checksum and the seek table when it is read, so what comes out is what was written. The file is
/// treated as hostile.
///
/// Used from one thread; decompression may run on others.
package final class ArchiveReader {
  package let manifest: MemberLocation
  package let fileSize: UInt64
  /// The file's path or URL, for errors.
  package let path: String?

  /// Reads ranges on this archive's own thread, ahead where it pays.
  package let ranges: RangeReader
  /// The bytes of the archive, and those of its file.
  let archive: ArchiveSource, source: ArchiveSource
  /// The age file, when it is encrypted.
  private let encrypted: AgeReader?
  private let bytesReadAtOpening: UInt64

  /// Opens an archive.
  ///
  /// - Parameters:
  ///   - path: for errors.
  ///   - keys: what opens it when it is encrypted.
  /// - Throws: `DrydockError`: `.io`, `.notAnArchive`, `.noIdentity`, `.encrypted`, `.truncated`, `.damaged`, `.limit`
  ///   or `.newerFormat`.
  package init(_ source: ArchiveSource, path: String? = nil, keys: AgeKeys = AgeKeys()) throws {
    let index: FrameIndex
    do {
      (self.source, fileSize) = (source, source.size)
      encrypted = try AgeReader.opening(source, keys: keys)
      archive = encrypted?.content(requests: source.requests) ?? source
      (index, manifest, bytesReadAtOpening) = try Self.tables(archive)
    } catch let error as DrydockError {
      throw error.at(path)
    }
    self.path = path
    ranges = RangeReader(RangeSource(archive, index, path: path))
  }

  /// Opens an archive of this machine by its path.
  package convenience init(path: String, keys: AgeKeys = AgeKeys()) throws {
    try self.init(ArchiveSource(path: path), path: path, keys: keys)
  }

  // Nothing may read from the source any more when its owner closes it.
  deinit { ranges.source.waitForJobs() }

  package var tarSize: UInt64 { ranges.index.tarSize }
  /// How the archive is encrypted; nil when it is not.
  package var encryption: ArchiveEncryption? { encrypted.map { ArchiveEncryption($0.header) } }
  /// The key of a code beside an encrypted archive; nil for one that anyone can read.
  var codeKey: SecretBytes? { encrypted?.codeKey }
  /// The bytes of the archive itself, without what encryption adds.
  package var contentSize: UInt64 { archive.size }
  package var frames: [ArchiveFrame] { ranges.index.frames }
  /// The bytes of the file that were read so far, without what was fetched ahead from a server and not used.
  package var bytesRead: UInt64 { bytesReadAtOpening + ranges.source.bytesRead }

  package func read(offset: UInt64, length: UInt64, into body: (UnsafeRawBufferPointer) throws -> Void) throws
  {
    try ranges.read(offset: offset, length: length, into: body)
  }

  /// What makes readers of ranges for other threads.
  package var rangeSource: RangeSource { ranges.source }

  /// Reads the manifest and checks its SHA-256. The check comes after the last piece: what `body` was given is not
  /// to be trusted before this returns.
  package func readManifest(into body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let digest = try SHA256()
    try read(offset: manifest.offset, length: manifest.length) { bytes in
      digest.update(bytes)
      try body(bytes)
    }
    guard try digest.finalize() == manifest.sha256 else {
      throw DrydockError.damaged("the manifest does not have the hash that the archive announces").at(path)
    }
  }

  /// Runs a step, so that its errors name the file.
  func located<T>(_ body: () throws -> T) throws -> T {
    try DrydockError.locating(path, body)
  }
}

/// Opening.
extension ArchiveReader {
  /// Enough for the header of a frame.
  private static let headSize: UInt64 = 64

  /// Checks that bytes are an archive, and reads the tables at its end.
  ///
  /// - Throws: `DrydockError`: `.notAnArchive`, `.truncated`, `.damaged`, `.limit`, `.newerFormat`, `.io`.
  private static func tables(
    _ archive: ArchiveSource
  ) throws -> (index: FrameIndex, manifest: MemberLocation, bytesRead: UInt64) {
    let size = archive.size
    guard size > 0 else { throw DrydockError.truncated("the file is empty") }
    let head = try archive.readExactly(Int(min(size, headSize)), at: 0)
    try checkHead(head)
    let footerSize = UInt64(SeekTable.footerSize)
    let footer = size > footerSize ? try archive.readExactly(SeekTable.footerSize, at: size - footerSize) : []
    guard let count = try SeekTable.frameCount(footer: footer) else { throw withoutSeekTable(head) }

    let tableSize = 8 + count * SeekTable.entrySize + SeekTable.footerSize
    guard UInt64(tableSize) < size else {
      throw DrydockError.damaged("the seek table is larger than the file")
    }
    let tableOffset = size - UInt64(tableSize)
    let entries = try SeekTable.decode(try archive.readExactly(tableSize, at: tableOffset), count: count)
    let index = try FrameIndex(entries, tableOffset: tableOffset)

    let frame = try archive.readExactly(MemberLocation.frameSize, at: index.locationOffset)
    let isSkippable = frame.withUnsafeBytes {
      $0.littleEndian(at: 0, as: UInt32.self) == ArchiveFormat.locationMagic
        && $0.littleEndian(at: 4, as: UInt32.self) == UInt32(MemberLocation.payloadSize)
    }
    guard isSkippable else {
      throw DrydockError.damaged("the manifest's location is not where the seek table says")
    }
    let manifest = try MemberLocation(frame: frame)
    guard manifest.offset <= index.tarSize, manifest.length <= index.tarSize - manifest.offset else {
      throw DrydockError.damaged("the manifest's location is outside of the archive")
    }
    return (index, manifest, UInt64(head.count + tableSize + MemberLocation.frameSize))
  }

  private static func checkHead(_ head: [UInt8]) throws {
    let magic = withUnsafeBytes(of: ArchiveFormat.frameMagic.littleEndian) { Array($0) }
    if head.count < magic.count, magic.starts(with: head) {
      throw DrydockError.truncated("the file has only \(head.count) bytes")
    }
    guard head.starts(with: magic) else {
      throw DrydockError(
        .notAnArchive,
        "not an archive: it does not start with a zstd frame; give a .tar.zst of drydock")
    }
  }

  /// A zstd file without a seek table is a cut archive or a foreign file.
  private static func withoutSeekTable(_ head: [UInt8]) -> DrydockError {
    guard !Zstd.mayBeArchive(head: head) else {
      return .truncated("the file is zstd, but its end, the seek table, is missing")
    }
    return DrydockError(
      .notAnArchive,
      "a zstd file, but not an archive of drydock: it has no seek table and other frames; give a .tar.zst of drydock"
    )
  }
}

/// How large an archive's content may be: a small hostile file must not fill a disk.
public struct ExpansionLimit: Sendable {
  private let bytes: UInt64?

  /// 1 GiB, or 250 times the archive's size where that is more.
  public static let standard = ExpansionLimit(nil)

  /// That many bytes, whatever the archive's size.
  public init(bytes: UInt64) { self.init(bytes) }

  private init(_ bytes: UInt64?) { self.bytes = bytes }

  private static let always: UInt64 = 1 << 30
  private static let ratio: UInt64 = 250

  /// Throws `DrydockError` `.limit` for more than that.
  package func check(_ what: String, _ size: UInt64, fileSize: UInt64) throws {
    let limit = bytes ?? max(Self.always, Self.product(fileSize, Self.ratio))
    guard size <= limit else {
      throw DrydockError(
        .limit,
        "\(what) expands to \(size) bytes, from a file of \(fileSize); the limit against hostile files is \(limit): "
          + "raise it if you trust the file")
    }
  }

  /// The memory for a list of paths: 240 MB for an archive of up to 2 MiB, and 400 bytes for each byte beyond. The
  /// smallest archive that a snapshot can make takes 20 bytes for a path, of an empty file.
  private static let memory: UInt64 = 240_000_000
  private static let memoryFileSize: UInt64 = 2 << 20
  private static let memoryRatio: UInt64 = 400

  /// Throws `DrydockError` `.limit` for more than that.
  package func checkMemory(_ what: String, _ need: UInt64, fileSize: UInt64) throws {
    let beyond = fileSize - min(fileSize, Self.memoryFileSize)
    let (sum, overflow) = Self.product(beyond, Self.memoryRatio).addingReportingOverflow(Self.memory)
    let limit = bytes ?? (overflow ? .max : sum)
    guard need <= limit else {
      throw DrydockError(
        .limit,
        "\(what) takes up to \(need) bytes of memory, from a file of \(fileSize); the limit against hostile files is "
          + "\(limit): raise it if you trust the file")
    }
  }

  private static func product(_ size: UInt64, _ factor: UInt64) -> UInt64 {
    let (product, overflow) = size.multipliedReportingOverflow(by: factor)
    return overflow ? .max : product
  }
}

extension ArchiveReader {
  /// Checks that the whole content stays within a limit. Holes do not count: they take no space where they are restored, and at
  /// most 4 MiB for each frame of the file.
  package func checkExpansion(_ limit: ExpansionLimit) throws {
    try located { try limit.check("the archive", ranges.index.solidSize, fileSize: fileSize) }
  }

  /// Checks that what is kept of the manifest in memory stays within a limit.
  package func checkManifestMemory(_ need: UInt64, _ limit: ExpansionLimit) throws {
    try located { try limit.checkMemory("its manifest", need, fileSize: fileSize) }
  }
}
