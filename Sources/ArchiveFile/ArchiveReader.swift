import AgeEncryption
import DrydockErrors
import SystemPackage

/// Reads any part of one archive.
///
/// Opening reads the end of the file only: the seek table and where the manifest is. Every frame is checked
/// against its checksum and the seek table when it is read, so what comes out is what was written. Everything in
/// the file is taken for hostile.
///
/// Used from one thread; decompression may run on others.
package final class ArchiveReader {
  /// Where the manifest is.
  package let manifest: ManifestLocation
  /// The bytes of the file.
  package let fileSize: UInt64
  /// The file's path, when it was opened by one; errors carry it.
  package let path: String?

  let frameReader: FrameReader
  /// Reads ranges on this archive's own thread, ahead where it pays.
  package let ranges: RangeReader
  let archive: ArchiveBytes
  private let file: FileDescriptor
  private let closesFile: Bool
  private let bytesReadAtOpening: UInt64

  /// Opens an archive by path.
  ///
  /// - Parameter keys: what opens it when it is encrypted.
  /// - Throws: `DrydockError`: `.io`, `.notAnArchive`, `.noIdentity`, `.encrypted`, `.truncated`, `.damaged`, `.limit`
  ///   or `.unsupported`.
  package convenience init(path: String, keys: AgeKeys = AgeKeys()) throws {
    let file: FileDescriptor
    do {
      file = try FileDescriptor.openArchive(path)
    } catch let error as DrydockError {
      throw error.at(path)
    }
    do {
      try self.init(file, path: path, closesFile: true, keys)
    } catch {
      try? file.close()
      throw error
    }
  }

  /// Opens an archive by an open descriptor, which must stay open as long as the reader lives and which the
  /// reader does not close. Its position is moved.
  ///
  /// - Throws: as `init(path:keys:)`.
  package convenience init(_ file: FileDescriptor, keys: AgeKeys = AgeKeys()) throws {
    try self.init(file, path: nil, closesFile: false, keys)
  }

  private init(_ file: FileDescriptor, path: String?, closesFile: Bool, _ keys: AgeKeys) throws {
    let probe: ArchiveProbe
    do {
      fileSize = try file.size()
      archive = try ArchiveBytes(file, size: fileSize, keys: keys)
      probe = try ArchiveProbe(archive)
    } catch let error as DrydockError {
      throw error.at(path)
    }
    self.file = file
    self.path = path
    self.closesFile = closesFile
    manifest = probe.manifest
    bytesReadAtOpening = probe.bytesRead
    frameReader = FrameReader(archive, probe.index)
    ranges = RangeReader(frameReader, path: path)
  }

  deinit {
    frameReader.stop()
    if closesFile { try? file.close() }
  }

  /// The bytes of the tar stream.
  package var tarSize: UInt64 { frameReader.index.tarSize }
  /// How the archive is encrypted; nil when it is not.
  package var encryption: ArchiveEncryption? { archive.encryption }
  /// The bytes of the archive itself, without what encryption adds.
  package var contentSize: UInt64 { archive.size }
  /// The data frames, in order.
  package var frames: [ArchiveFrame] { frameReader.index.frames }
  /// The bytes of the file that were read so far, those that were read ahead included.
  package var bytesRead: UInt64 { bytesReadAtOpening + frameReader.bytesRead }

  /// Reads a range of the tar stream, decompressing only its frames. `body` gets it piece by piece, in order; a
  /// piece is valid during the call only.
  ///
  /// - Throws: `DrydockError` (`.damaged` for a range outside of the stream, as ranges come from manifests), or
  ///   what `body` throws.
  package func read(offset: UInt64, length: UInt64, into body: (UnsafeRawBufferPointer) throws -> Void) throws
  {
    try ranges.read(offset: offset, length: length, into: body)
  }

  /// What makes readers of ranges for other threads.
  package var rangeSource: RangeSource { RangeSource(frameReader.decoder, frameReader.index, path: path) }

  /// Reads the manifest and checks its SHA-256. The check comes after the last piece: what `body` was given is not
  /// to be trusted before this returns.
  ///
  /// - Throws: `DrydockError`, or what `body` throws.
  package func readManifest(into body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let digest = try SHA256()
    try read(offset: manifest.offset, length: manifest.length) { bytes in
      digest.update(bytes)
      try body(bytes)
    }
    guard try digest.finalize() == manifest.sha256 else {
      throw DrydockError.damaged("the manifest is not the one that the archive announces").at(path)
    }
  }

  /// Runs a step, so that its errors name the file.
  func located<T>(_ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DrydockError {
      throw error.at(path)
    }
  }
}
