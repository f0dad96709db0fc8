import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem
import Formats
import Foundation
import SystemPackage

/// What all archives have around their content, and their way to their place: the header in front, the manifest behind.
struct ArchiveAssembly {
  let header: ArchiveHeader
  /// The time of the capture.
  let time: Date
  /// To whom the archive is encrypted; nil for one that everybody can read.
  var encryption: AgeLock?

  /// Whether the archive is encrypted: else it must hold nothing that may not be read by everybody.
  var isEncrypted: Bool { encryption != nil }

  /// Writes an archive and publishes it, never replacing a file; a killed run leaves none.
  ///
  /// - Parameter body: adds the members and ends the manifest; what it gives makes the result. It gets a private
  ///   directory for what it must put on disk meanwhile.
  func publish<T>(
    _ publication: Publication,
    _ body: (Directory, ArchiveWriter, ManifestWriter) throws -> (String, ArchiveSummary) -> T
  ) throws -> T {
    try publication.with { scratch in
      let name: ContainerPath = "archive"
      // A plain archive holds what was readable by its owner only.
      let file = try scratch.createFile(name, mode: isEncrypted ? 0o644 : 0o600)
      defer { try? file.close() }
      let archive = try ArchiveWriter(to: file, encryption: encryption)
      let json = try header.encoded()
      _ = try archive.addMember(
        .file(ArchiveHeader.memberName, size: UInt64(json.count), modified: modified), contents: json)
      // The header alone is what a list of archives reads.
      try archive.startFrame()
      let (report, location) = try withWork(scratch) { work in
        let manifestName: ContainerPath = "manifest"
        let manifest = try ManifestWriter(path: work.full(manifestName), archive: header.archive)
        return (try body(work, archive, manifest), try store(manifestName, work, archive))
      }
      let summary = try archive.finish(manifest: location)
      try scratch.syncFile(file, name)
      let path = try publication.publish(
        name, in: scratch,
        as: ArchiveName.candidates(
          app: header.app, instance: header.instance, time: UTCTime.compact(time), id: header.archive,
          isEncrypted: isEncrypted))
      return report(path, summary)
    }
  }

  /// Runs a body with a place for plain data: beside the archive, or when that is encrypted, never in the repository,
  /// which may be on somebody else's disk. The directory for temporary files is cleaned by whichever command is next.
  private func withWork<T>(_ scratch: Directory, _ body: (Directory) throws -> T) throws -> T {
    guard isEncrypted else { return try body(scratch) }
    return try ScratchDirectory.withTemporary { work in
      do {
        return try body(work)
      } catch var error as DrydockError
        where error.code == .noSpace && error.path?.hasPrefix(work.path) == true
      {
        error.message +=
          "; what will be encrypted is prepared below TMPDIR, which may be set to another place"
        throw error
      }
    }
  }

  /// The time of members that no path of the container stands for, nanoseconds since 1970.
  var modified: Int64 { Int64(time.timeIntervalSince1970) * 1_000_000_000 }

  private func store(
    _ manifest: ContainerPath, _ scratch: Directory, _ archive: ArchiveWriter
  ) throws -> ManifestLocation {
    let file = try scratch.open(manifest, .readOnly)
    defer { try? file.close() }
    let size = try scratch.status(manifest)?.size ?? 0
    try archive.startFrame()
    let offset = try archive.beginMember(.file(MemberNames.manifest, size: size, modified: modified))
    let hash = try SHA256()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    while true {
      let count: Int
      do { count = try file.read(into: buffer) } catch let error as Errno {
        throw DrydockError.system("cannot read", scratch.full(manifest), error)
      }
      if count == 0 { break }
      let chunk = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      hash.update(chunk)
      try archive.write(chunk)
    }
    _ = try archive.endMember()
    return ManifestLocation(offset: offset, length: size, sha256: try hash.finalize())
  }
}
