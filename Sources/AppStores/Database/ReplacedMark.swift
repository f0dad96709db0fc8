import DrydockErrors
import FileSystem
import SystemPackage

/// Marks the main file of a database that a commit has replaced with a header that SQLite rejects.
///
/// A program may have waited for the lock of the replaced file. It would continue with that file and, by path, with the new
/// file's log; with the mark it gets SQLITE_NOTADB. The bytes that an idle connection compares before it trusts its cache are
/// inverted, so that it reads the header again.
///
/// The mark is recognizable and reversible: removing it restores the original bytes.
///
/// Setting or removing it moves the modification time for a moment. A power cut can keep this time and lose the bytes:
/// an app seems to have written to the file. So a note is on the file meanwhile, an extended attribute, which reaches
/// the disk no later than the time. Where the file system, its free space or this user's rights allow none, it is left
/// out: a kill or a power cut in this moment can then leave a conflict copy that no app has caused.
package enum ReplacedMark {
  static let text = Array("Drydock replaced".utf8)
  /// Change counter, size, freelist and schema cookie, which SQLite's pager compares.
  private static let compared = 24..<40

  /// Marks a main file and keeps its modification time. Does nothing without SQLite's header, or if it is marked.
  ///
  /// - Parameter links: the number of hard links within Drydock's reach. A file with more is not marked: a backup may share
  ///   it.
  package static func set(on file: FileDescriptor, links: UInt64 = 1, path: String) throws {
    let status = try FileStatus(of: file, path: path)
    guard status.links <= links, status.size >= DatabaseFormat.smallestPage else { return }
    try exchange(DatabaseFormat.headerMagic, for: text, file, status.modified, path)
  }

  /// Removes the mark.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  package static func remove(from file: FileDescriptor, path: String) throws -> Bool {
    let modified = try FileStatus(of: file, path: path).modified
    return try exchange(text, for: DatabaseFormat.headerMagic, file, modified, path)
  }

  /// Removes the mark from bytes read from the start of a file.
  package static func remove(from bytes: inout [UInt8]) {
    guard isSet(bytes) else { return }
    invert(&bytes, DatabaseFormat.headerMagic)
  }

  /// Whether bytes from the start of a file have the mark.
  package static func isSet(_ bytes: [UInt8]) -> Bool { isHeader(bytes, text) }

  /// Every header has these fractions (https://www.sqlite.org/fileformat2.html, 1.3.4), unlike other files that happen to start
  /// with the text.
  private static func isHeader(_ bytes: [UInt8], _ start: [UInt8]) -> Bool {
    bytes.count >= compared.upperBound && bytes.starts(with: start)
      && bytes[21..<24].elementsEqual([64, 32, 32])
  }

  private static func invert(_ bytes: inout [UInt8], _ start: [UInt8]) {
    bytes.replaceSubrange(..<start.count, with: start)
    for index in compared { bytes[index] = ~bytes[index] }
  }

  /// The time that a file is to keep, the time now, and the bytes that each commit of SQLite changes.
  static func note(keeping modified: Int64, at moment: Int64, header: [UInt8]) -> [UInt8] {
    [modified, moment].flatMap { withUnsafeBytes(of: $0.littleEndian, Array.init) } + header[compared]
  }

  /// The time that a note keeps, if only Drydock has written to the file since.
  fileprivate static func time(keptBy note: [UInt8], _ modified: Int64, header: [UInt8]) -> Int64? {
    guard note.count == 16 + compared.count, header.count >= compared.upperBound else { return nil }
    let times = note.withUnsafeBytes { note in
      [0, 8].map { Int64(littleEndian: note.loadUnaligned(fromByteOffset: $0, as: Int64.self)) }
    }
    // The kernel's clock for files is coarse, and some file systems keep whole seconds.
    let earliest: Int64 = modified % 1_000_000_000 == 0 ? -1_000_000_000 : -10_000_000
    guard modified == times[0] || (earliest...100_000_000).contains(modified &- times[1]) else { return nil }
    let (noted, now) = (note[16...], header[compared])
    return now.elementsEqual(noted) || now.elementsEqual(noted.map(~)) ? times[0] : nil
  }

  @discardableResult
  private static func exchange(
    _ old: [UInt8], for new: [UInt8], _ file: FileDescriptor, _ modified: Int64, _ path: String
  ) throws -> Bool {
    do {
      var bytes = try file.bytes(compared.upperBound, at: 0)
      guard bytes.count == compared.upperBound, isHeader(bytes, old) else { return false }
      file.setOwnNote(note(keeping: modified, at: FileStatus.timeOfChangesNow(), header: bytes))
      defer { file.setOwnNote(nil) }
      invert(&bytes, new)
      // One call, so that a reader finds the whole mark or none.
      _ = try file.writeAll(toAbsoluteOffset: 0, bytes)
      try file.setModified(modified, path: path)
      return true
    } catch Errno.badFileDescriptor {
      // Opened read-only, since this user may not write it.
      return false
    } catch let error as Errno {
      throw DrydockError.system("cannot change the header of the replaced database", path, error)
    }
  }
}

extension Directory {
  /// Whether a file has the mark of a replaced main file.
  package func isReplaced(_ path: ContainerPath) throws -> Bool {
    guard let status = try status(path), status.type == .file,
      status.size >= DatabaseFormat.smallestPage
    else { return false }
    return ReplacedMark.isSet(try prefix(of: path, DatabaseFormat.headerLength))
  }

  /// Restores the modification time of a file whose mark was being set or removed when a kill or a power cut came,
  /// unless an app has written to it since. Does nothing for other files, and for files that this user may not write.
  ///
  /// - Returns: whether the file has the restored time.
  @discardableResult
  package func settleMark(_ path: ContainerPath) throws -> Bool {
    guard let status = try status(path), status.type == .file, status.size >= DatabaseFormat.smallestPage,
      let note = try attribute(ExtendedAttribute.ownNote, of: path)
    else { return false }
    do {
      let header = try prefix(of: path, DatabaseFormat.headerLength)
      let time = ReplacedMark.time(keptBy: note, status.modified, header: header)
      if let time { try setModified(time, of: path) }
      try removeAttribute(ExtendedAttribute.ownNote, of: path)
      return time != nil
    } catch let error as DrydockError where error.code == .permission {
      return false
    }
  }

  /// Marks a main file (``ReplacedMark``). Does nothing for other files, and for files that this user may not write.
  package func markReplaced(_ path: ContainerPath, links: UInt64 = 1) throws {
    try settleMark(path)
    guard try status(path)?.type == .file else { return }
    do {
      let file = LockedFile(try open(path, .readWrite, options: [.nonBlocking]))
      try ReplacedMark.set(on: file.descriptor, links: links, path: full(path))
    } catch let error as DrydockError where error.code == .permission {}
  }

  package func unmarkReplaced(_ path: ContainerPath) throws {
    try settleMark(path)
    guard try isReplaced(path) else { return }
    let file = LockedFile(try open(path, .readWrite, options: [.nonBlocking]))
    try ReplacedMark.remove(from: file.descriptor, path: full(path))
    try syncFile(file.descriptor, path)
  }
}
