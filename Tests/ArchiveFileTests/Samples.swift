import AgeEncryption
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import ArchiveFile

extension ArchiveMember {
  init(
    name: [UInt8], kind: Kind, mode: UInt16, modified: Int64, userID: UInt32 = 0, groupID: UInt32 = 0,
    attributes: [ExtendedAttribute] = []
  ) {
    self.init(
      name: name, kind: kind,
      metadata: FileMetadata(
        mode: mode, user: userID, group: groupID, modified: modified, attributes: attributes))
  }
}

/// A member with its content.
struct Sample {
  var member: ArchiveMember
  var content: [UInt8] = []

  init(_ member: ArchiveMember, _ content: [UInt8] = []) {
    self.member = member
    self.content = content
  }

  /// A file by a UTF-8 name.
  init(_ name: String, _ content: [UInt8], modified: Int64 = 1_700_000_000_123_456_789) {
    member = .file(name, size: UInt64(content.count), modified: modified)
    self.content = content
  }
}

/// A finished archive in memory.
struct BuiltArchive {
  var bytes: [UInt8]
  let fileSize: UInt64
  let offsets: [UInt64]
}

/// Writes an archive; a last member `manifest.sqlite` is its manifest.
@discardableResult
func writeArchive(
  _ samples: [Sample], to path: String, manifest: [UInt8] = Array("the manifest".utf8), threads: Int = 2,
  encryption: AgeTarget? = nil
) throws -> BuiltArchive {
  let file = try emptyFile(path)
  return try file.closeAfter {
    let writer = try ArchiveWriter(to: file, threads: threads, encryption: encryption)
    var offsets = try samples.map { try writer.addMember($0.member, contents: $0.content) }
    let offset = try writer.addMember(
      .file("manifest.sqlite", size: UInt64(manifest.count), modified: 0), contents: manifest)
    offsets.append(offset)
    let fileSize = try writer.finish(
      manifest: MemberLocation(
        offset: offset, length: UInt64(manifest.count), sha256: try SHA256.hash(manifest)))
    return BuiltArchive(bytes: try stored(path), fileSize: fileSize, offsets: offsets)
  }
}

/// Everything that the walk of an archive gives.
func readAll(_ reader: ArchiveReader) throws -> [(sample: Sample, offset: UInt64)] {
  var result: [(Sample, UInt64)] = []
  let walk = try reader.walk()
  while let (member, offset) = try walk.next() {
    var bytes: [UInt8] = []
    try reader.read(offset: offset, length: member.contentSize) { bytes += $0 }
    result.append((Sample(member, bytes), offset))
  }
  return result
}

func readAll(_ path: String) throws -> [(sample: Sample, offset: UInt64)] {
  try readAll(try ArchiveReader(path: path))
}

/// The whole tar stream.
func tarStream(_ reader: ArchiveReader) throws -> [UInt8] {
  var tar: [UInt8] = []
  try reader.read(offset: 0, length: reader.tarSize) { tar += $0 }
  return tar
}

/// Runs a stock program to its end, with times in UTC.
func run(_ program: String, _ arguments: [String], in directory: String? = nil) throws -> CommandResult {
  try Command.run(
    Tools.system(program), arguments, environment: ["LC_ALL": "C.UTF-8", "TZ": "UTC"], directory: directory)
}

func store(_ bytes: [UInt8], at path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

func stored(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

/// A file to write an archive into.
func emptyFile(_ path: String) throws -> FileDescriptor {
  try FileDescriptor.open(
    FilePath(path), .readWrite, options: [.create, .truncate], permissions: .ownerReadWrite)
}

/// The code of the `DrydockError` that a step throws; nil when it throws none.
func errorCode(_ body: () throws -> Void) -> DrydockError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? DrydockError)?.code
  }
}

/// An encoder whose frames go to a file, to look at tar bytes.
struct FrameSinkProbe {
  let encoder: TarEncoder
  private let output: ArchiveSink
  private let frames: FrameWriter
  private let path: String

  init(_ path: String) throws {
    self.path = path
    let file = try emptyFile(path)
    output = try ArchiveSink(file)
    frames = FrameWriter(output, level: 1, workers: 1)
    encoder = try TarEncoder(frames)
  }

  /// The tar bytes so far, by the zstd program.
  func contents() throws -> [UInt8] {
    encoder.flush()
    _ = try frames.finish()
    try output.finish()
    return try run("zstd", ["-dcq", path]).outputBytes
  }
}

/// Puts any bytes into an archive as its tar stream, whatever they are.
func seal(_ tar: [UInt8], at path: String) throws {
  let file = try emptyFile(path)
  try file.closeAfter {
    let output = try ArchiveSink(file)
    let frames = FrameWriter(output, level: 1, workers: 2)
    let encoder = try TarEncoder(frames)
    #expect(tar.withUnsafeBytes { encoder.append($0) })
    encoder.flush()
    let entries = try frames.finish()
    try output.finish()
    let location = MemberLocation(offset: 0, length: 0, sha256: try SHA256.hash([]))
    try file.writeAll(toAbsoluteOffset: Int64(output.fileSize), tail(entries, location))
  }
}

/// The end of an archive: the manifest's location and the seek table.
func tail(_ entries: [SeekTable.Entry], _ location: MemberLocation) throws -> [UInt8] {
  let frame = try location.frame()
  let last = SeekTable.Entry(
    compressedSize: UInt32(frame.count), plainSize: 0, checksum: ArchiveFormat.checksumOfNothing)
  return frame + (try SeekTable.encode(entries + [last]))
}
