import DrydockErrors
import FileSystem
import SystemPackage

/// A header that SQLite refuses, on the main file of a database that a commit has replaced.
///
/// A program may have waited for the lock of the replaced file. It would go on with that and, by path, with the new
/// file's log. With the mark it gets SQLITE_NOTADB. The bytes that an idle connection compares before it trusts what it
/// has in memory are inverted, too, so that it reads the header again.
///
/// The mark needs no record: it is recognizable, and taking it away gives back the bytes that were there.
package enum ReplacedMark {
  static let text = Array("Drydock replaced".utf8)
  /// Change counter, size, freelist and schema cookie: what SQLite's pager compares.
  private static let compared = 24..<40

  /// Marks a main file, whose modification time stays what is given. Nothing happens to what has no header of SQLite's,
  /// or has it marked already.
  ///
  /// A file that has further names is not marked: a backup may share it.
  ///
  /// - Parameter links: the number of names that it has within Drydock's reach.
  package static func set(
    on file: FileDescriptor, modified: Int64, links: UInt64 = 1, path: String
  ) throws {
    let status = try FileStatus(of: file, path: path)
    guard status.links <= links, status.size >= DatabaseFormat.smallestPage else { return }
    try exchange(DatabaseFormat.headerMagic, for: text, file, modified, path)
  }

  /// Takes the mark away.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  package static func remove(from file: FileDescriptor, modified: Int64, path: String) throws -> Bool {
    try exchange(text, for: DatabaseFormat.headerMagic, file, modified, path)
  }

  /// Takes the mark from bytes that were read from the start of a file.
  package static func remove(from bytes: inout [UInt8]) {
    guard isSet(bytes) else { return }
    invert(&bytes, DatabaseFormat.headerMagic)
  }

  /// Whether bytes from the start of a file carry the mark.
  package static func isSet(_ bytes: [UInt8]) -> Bool { isHeader(bytes, text) }

  /// A header has these fractions in any case (https://www.sqlite.org/fileformat2.html, 1.3.4): a file of the app's that
  /// happens to begin with the text is none.
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
    var bytes = [UInt8](repeating: 0, count: compared.upperBound)
    do {
      let count = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
      guard count == bytes.count, isHeader(bytes, old) else { return false }
      invert(&bytes, new)
      // One call: a reader finds the whole mark, or none of it.
      _ = try file.writeAll(toAbsoluteOffset: 0, bytes)
    } catch Errno.badFileDescriptor {
      // Open to be read only, since this user may not write it.
      return false
    } catch let error as Errno {
      throw DrydockError.system("cannot change the header of the replaced database", path, error)
    }
    try file.setModified(modified, path: path)
    return true
  }
}

extension Directory {
  /// Whether a file carries the mark of a main file that was replaced.
  package func isReplaced(_ path: ContainerPath) throws -> Bool {
    guard let status = try status(path), status.type == .file,
      status.size >= DatabaseFormat.smallestPage
    else { return false }
    return ReplacedMark.isSet(try prefix(of: path, DatabaseFormat.headerLength))
  }

  /// Marks a main file (``ReplacedMark``); nothing happens to another one, and to what this user may not write.
  package func markReplaced(_ path: ContainerPath, modified: Int64, links: UInt64 = 1) throws {
    guard let status = try status(path), status.type == .file else { return }
    do {
      let file = LockedFile(try open(path, .readWrite, options: [.nonBlocking]))
      try ReplacedMark.set(on: file.descriptor, modified: modified, links: links, path: full(path))
    } catch let error as DrydockError where error.code == .permission {}
  }

  /// Takes the mark of a main file away; nothing happens where there is none.
  package func unmarkReplaced(_ path: ContainerPath, modified: Int64) throws {
    guard try isReplaced(path) else { return }
    let file = LockedFile(try open(path, .readWrite, options: [.nonBlocking]))
    try ReplacedMark.remove(from: file.descriptor, modified: modified, path: full(path))
    try syncFile(file.descriptor, path)
  }
}
