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
package enum ReplacedMark {
  static let text = Array("Drydock replaced".utf8)
  /// Change counter, size, freelist and schema cookie, which SQLite's pager compares.
  private static let compared = 24..<40

  /// Marks a main file, keeping a modification time. Does nothing without SQLite's header, or if it is marked already.
  ///
  /// - Parameter links: the number of hard links within Drydock's reach. A file with more is not marked: a backup may share
  ///   it.
  package static func set(
    on file: FileDescriptor, modified: Int64, links: UInt64 = 1, path: String
  ) throws {
    let status = try FileStatus(of: file, path: path)
    guard status.links <= links, status.size >= DatabaseFormat.smallestPage else { return }
    try exchange(DatabaseFormat.headerMagic, for: text, file, modified, path)
  }

  /// Removes the mark.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  package static func remove(from file: FileDescriptor, modified: Int64, path: String) throws -> Bool {
    try exchange(text, for: DatabaseFormat.headerMagic, file, modified, path)
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

  @discardableResult
  private static func exchange(
    _ old: [UInt8], for new: [UInt8], _ file: FileDescriptor, _ modified: Int64, _ path: String
  ) throws -> Bool {
    do {
      var bytes = try file.bytes(compared.upperBound, at: 0)
      guard bytes.count == compared.upperBound, isHeader(bytes, old) else { return false }
      invert(&bytes, new)
      // One call, so that a reader finds the whole mark or none.
      _ = try file.writeAll(toAbsoluteOffset: 0, bytes)
    } catch Errno.badFileDescriptor {
      // Opened read-only, since this user may not write it.
      return false
    } catch let error as Errno {
      throw DrydockError.system("cannot change the header of the replaced database", path, error)
    }
    try file.setModified(modified, path: path)
    return true
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

  /// Marks a main file (``ReplacedMark``). Does nothing for other files, and for files that this user may not write.
  package func markReplaced(_ path: ContainerPath, modified: Int64, links: UInt64 = 1) throws {
    guard let status = try status(path), status.type == .file else { return }
    do {
      let file = LockedFile(try open(path, .readWrite, options: [.nonBlocking]))
      try ReplacedMark.set(on: file.descriptor, modified: modified, links: links, path: full(path))
    } catch let error as DrydockError where error.code == .permission {}
  }

  package func unmarkReplaced(_ path: ContainerPath, modified: Int64) throws {
    guard try isReplaced(path) else { return }
    let file = LockedFile(try open(path, .readWrite, options: [.nonBlocking]))
    try ReplacedMark.remove(from: file.descriptor, modified: modified, path: full(path))
    try syncFile(file.descriptor, path)
  }
}
