import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// Private copies of files that an app changes together, made between two looks at all of them that saw the same.
struct FileGroupCopies {
  /// Bytes of a group up to which it is copied; the files of a larger one are stored one after the other.
  static let limit: UInt64 = 256 << 20

  enum Member {
    /// A copy, and the metadata of its original, which may have attributes whose names are not UTF-8.
    case copy(ContainerPath, FileMetadata, hasUnnamed: Bool)
    /// The group changed during each copy, or since one of its files was stored; or one of them was missing.
    case unstable
  }

  private let work: Directory
  private let reader: StableReader
  private var members: [ContainerPath: Member] = [:]
  private var copied = 0
  /// The files that were not read, because they are as the parent has them.
  private var unchanged: [ContainerPath: FileStatus] = [:]

  init(into work: Directory, _ reader: StableReader) { (self.work, self.reader) = (work, reader) }

  /// Whether its group was captured: then it is stored from there, also if it has not changed since the parent.
  func has(_ path: ContainerPath) -> Bool { members[path] != nil }

  /// Whether a file was not read, because it is as the parent has it.
  func isUnchanged(_ path: ContainerPath) -> Bool { unchanged[path] != nil }

  mutating func noteUnchanged(_ path: ContainerPath, _ status: FileStatus) {
    unchanged[path] = status
  }

  /// One of a group's files, once: the caller removes its copy. Nil when the group is too large.
  mutating func take(_ path: ContainerPath, of group: FileGroup, in directory: Directory) throws -> Member? {
    guard group.isWhole else { return .unstable }
    if members[path] == nil {
      var attempts = 0
      while attempts < StableReader.smallAttempts, try !capture(group, in: directory, path.parent) {
        attempts += 1
      }
    }
    return members.removeValue(forKey: path)
  }

  /// Captures the files of a directory.
  ///
  /// - Parameter isOld: whether a status shows that a path has not changed since the parent's capture. When all of a group are old,
  ///   it is not captured.
  /// - Returns: false when they changed meanwhile.
  mutating func capture(
    _ group: FileGroup, in directory: Directory, _ path: ContainerPath,
    isOld: (FileStatus) -> Bool = { _ in false }
  ) throws -> Bool {
    let paths = group.names.map { path.appending(unchecked: $0.bytes) }
    for path in paths { members[path] = .unstable }
    guard let before = try statuses(of: group, in: directory) else { return false }
    guard !before.allSatisfy(isOld), before.reduce(0, { $0 + $1.size }) <= Self.limit else {
      for path in paths { members[path] = nil }
      return true
    }
    guard zip(paths, before).allSatisfy({ unchanged[$0]?.hasTimesAndSize(of: $1) ?? true }),
      let copies = try copies(of: group, before, in: directory)
    else { return false }
    for (path, copy) in zip(paths, copies) { members[path] = copy }
    return true
  }

  /// The files' statuses, in their order; nil when one is missing, or the directory has others.
  private func statuses(of group: FileGroup, in directory: Directory) throws -> [FileStatus]? {
    if try group.hasGrown(in: directory) { return nil }
    let statuses = try group.names.compactMap { try directory.status($0) }
    return statuses.count == group.names.count ? statuses : nil
  }

  /// - Returns: nil when a file changed meanwhile.
  private mutating func copies(
    of group: FileGroup, _ before: [FileStatus], in directory: Directory
  ) throws -> [Member]? {
    var copies: [(name: ContainerPath, metadata: FileMetadata, hasUnnamed: Bool)] = []
    var isWhole = false
    defer { if !isWhole { for copy in copies { try? work.removeFile(copy.name, missingIsFine: true) } } }
    for name in group.names {
      var hasUnnamed = false
      guard let metadata = try directory.metadata(name, unnamed: { hasUnnamed = true }) else { return nil }
      copied += 1
      copies.append((ContainerPath(unchecked: Array("group-\(copied)".utf8)), metadata, hasUnnamed))
      do {
        try directory.copyContents(of: name, to: copies[copies.count - 1].name, in: work)
      } catch let error as DrydockError where error.code == .notFound {
        return nil
      }
    }
    guard let after = try statuses(of: group, in: directory) else { return nil }
    for (index, name) in group.names.enumerated() where !group.canOnlyGrow(name) {
      // A write in progress has set the time when it began, and one through a mapping sets none.
      guard
        try after[index].hasTimesAndSize(of: before[index])
          && (group.isDirectory || same(name, in: directory, copies[index].name))
      else { return nil }
    }
    isWhole = true
    return copies.map { .copy($0.name, $0.metadata, hasUnnamed: $0.hasUnnamed) }
  }

  private func same(_ name: ContainerPath, in directory: Directory, _ copy: ContainerPath) throws -> Bool {
    let (original, copied) = try (directory.openFile(name), work.openFile(copy))
    defer { for file in [original, copied] { try? file.close() } }
    let size = try FileStatus(of: copied, path: work.full(copy)).size
    guard let read = try reader.stream(.file(copied, size: size, path: work.full(copy)), into: nil) else {
      return false
    }
    return try reader.reads(read.digest, original, size: size, directory.full(name))
  }
}
