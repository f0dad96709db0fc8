import ArchiveFile
import FileSystem

extension WorkProgress {
  /// Begins a phase that reads an archive and those that it needs: what is read of their bytes is the measure. Frames that are
  /// read again, such as those of the manifest, may make it more than all.
  func begin(_ phase: Phase, reading archive: Archive) {
    let (size, sources) = (archive.fileSize, archive.parts.map(\.reader.rangeSource))
    begin(phase, totalBytes: size) { min(size, sources.reduce(0) { $0 + $1.bytesRead }) }
  }
}
