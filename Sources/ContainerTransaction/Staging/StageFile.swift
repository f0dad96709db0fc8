import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Synchronization
import SystemPackage

/// A file of the stage while it is written.
package final class StageFile {
  private let file: FileDescriptor
  /// The file as a place for its metadata.
  private let own: Directory
  private var path: String { own.path }
  private let output: FileOutput
  private var isOpen = true
  private var isClone = false

  init(_ directory: Directory, _ name: ContainerPath, size: UInt64, _ block: FileOutput.Block) throws {
    file = try directory.createFile(name)
    own = directory.view(of: file, name)
    output = FileOutput(file, block, size: size)
  }

  deinit { close() }

  /// Makes a file, filled and with its metadata; none stays when that fails.
  ///
  /// - Parameters:
  ///   - size: the bytes that `fill` is expected to write.
  ///   - block: the memory for what is written.
  /// - Returns: the metadata that it has then, if any was given: a user who is not root may not have been able to set all.
  @discardableResult
  static func make(
    _ name: ContainerPath, in stage: Directory, _ metadata: FileMetadata?, size: UInt64,
    _ block: FileOutput.Block = .init(),
    fill: (StageFile) throws -> Void
  ) throws -> FileMetadata? {
    let file = try StageFile(stage, name, size: size, block)
    do {
      try fill(file)
      try file.finish()
      defer { file.close() }
      guard let metadata else { return nil }
      let mayHaveAttributes = try file.own.apply(metadata, to: .root)
      return FileMetadata(
        try file.own.status(), attributes: mayHaveAttributes ? try file.own.attributes(.root) : [])
    } catch {
      file.close()
      try? stage.removeFile(name, missingIsFine: true)
      throw error
    }
  }

  package func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

  package func write(_ bytes: UnsafeRawBufferPointer) throws {
    try DrydockError.translating("cannot write the staged file", path) { try output.appendWithHoles(bytes) }
  }

  /// Starts with the content of a live file, where the file system lets both share their blocks.
  ///
  /// - Parameter size: of the content that it is to get: the rest of a longer file is cut off.
  /// - Returns: false where it does not.
  package func clone(_ live: FileDescriptor, size: UInt64) throws -> Bool {
    guard output.size == 0, file.clone(live) else { return false }
    isClone = true
    try DrydockError.translating("cannot write the staged file", path) { try file.resize(to: Int64(size)) }
    return true
  }

  /// Reads the content of a clone from its start.
  package func readClone(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    var data: Range<UInt64> = 0..<0
    try readInPieces { offset, buffer in
      try DrydockError.translating("cannot read the staged file", path) {
        try file.fillAroundHoles(buffer, at: offset, data: &data, path: path)
      }
    } _: {
      try body($0)
    }
  }

  /// Replaces a part of a clone's content.
  package func replace(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws {
    try DrydockError.translating("cannot write the staged file", path) {
      _ = try file.writeAll(toAbsoluteOffset: Int64(offset), bytes)
    }
  }

  func finish() throws {
    let cached = try DrydockError.translating("cannot write the staged file", path) { try output.finish() }
    // The disk is at work while the next files are made. Many small ones are better written together.
    if isClone || cached >= 64 << 10 { file.beginWriting() }
  }

  func close() {
    if isOpen { try? file.close() }
    isOpen = false
  }
}

extension StagedContainer {
  /// See ``Stage/startWriting(_:)``. In a dry run nothing is to be kept.
  func startWriting(_ name: ContainerPath?) {
    if !transaction.isEmpty { stage.startWriting(name) }
  }

  /// A file that is to be put with others: what writes its content, which has that SHA-256, if it is known, and that size.
  package typealias NewFile = (
    metadata: FileMetadata, digest: SHA256.Digest?, size: UInt64, isDatabase: Bool,
    fill: (StageFile) throws -> Void
  )
  /// Gives a file by its number.
  package typealias Filler = (Int) throws -> NewFile

  /// Puts many files, filled on all cores: making a file, writing and hashing it take one core longer than a disk
  /// takes. Each group is filled in its order by one thread, in a folder of its own; the files of a large new directory, but for
  /// databases, in a folder that becomes that directory (``Stage/moveFolder(of:to:as:)``).
  ///
  /// - Parameters:
  ///   - paths: the path of each file by its number, best in their order. A list of a million files would be large.
  ///   - groups: the numbers of the files.
  ///   - size: bytes of all files.
  ///   - filler: makes what fills a group's files, from their numbers, on the group's own thread.
  /// - Throws: ``DrydockError``: the first failure, also of a filler.
  package func putFiles(
    _ paths: some RandomAccessCollection<ContainerPath> & Sendable, _ groups: [[UInt32]], size: UInt64,
    filler: @escaping @Sendable (_ group: [UInt32]) throws -> Filler
  ) throws {
    if let first = paths.first { try stage.requireSpace(size, for: first) }
    stage.directory.spreadDirectories()
    let directories = try makeFolders(paths)
    let folders = groups.map { _ in stage.newNumber() }
    // By the files' numbers: where each is, and whether it is a database.
    typealias File = (place: Overlay.Folder, isDatabase: Bool)
    let none: File = (.group(0), false)
    let first = stage.overlay.made.reserve(paths.count)
    let made = Mutex((records: stage.overlay.made, files: Array(repeating: none, count: paths.count)))
    stage.overlay.made = NodeTable()
    let hasFailed = Atomic(false)
    let directory = stage.directory
    let result = Result {
      try onAllCores(Array(zip(folders, groups)), waits: true) { number, group in
        do {
          try directory.createDirectory(Stage.name(number))
          let filler = try filler(group)
          let block = FileOutput.Block(size < Stage.cachedSize ? .never : .whileFast)
          let target = LastDirectory(directory)
          for file in group where !hasFailed.load(ordering: .relaxed) {
            let new = try filler(Int(file))
            // SQLite makes files beside a database.
            let own = directories.isEmpty || new.isDatabase ? 0 : directories[Int(file)]
            let place = own == 0 ? Overlay.Folder.group(number) : .directory(own)
            let (folder, name) = try target.location(
              of: place.name(first + file, paths[paths.index(paths.startIndex, offsetBy: Int(file))]))
            let metadata = try StageFile.make(
              name, in: folder, new.metadata, size: new.size, block, fill: new.fill)
            let record = NodeRecord(
              type: .file, metadata: metadata ?? new.metadata, size: new.size, digest: new.digest)
            made.withLock {
              $0.records[first + file] = record
              $0.files[Int(file)] = (place, new.isDatabase)
            }
          }
        } catch {
          hasFailed.store(true, ordering: .relaxed)
          throw error
        }
      }
    }
    let files = made.withLock { made in
      defer { made = (NodeTable(), []) }
      return made
    }
    stage.overlay.made = files.records
    try result.get()
    if size > Stage.largeSize { startWriting(nil) }
    let live = LastDirectory(live)
    for (number, path) in paths.enumerated() {
      let file = files.files[number]
      try prepareReplacement(of: path, isLive: live.status(of: path) != nil)
      stage.overlay.set(first + UInt32(number), in: file.place, isDatabase: file.isDatabase, at: path)
    }
  }

  /// Makes the directories of files that are to be put, and a folder for each that is new and large.
  ///
  /// - Returns: by the files' numbers, the folders of their directories, 0 where a directory has none; empty without any folder.
  private func makeFolders(_ paths: some RandomAccessCollection<ContainerPath>) throws -> [UInt32] {
    var folders: [ContainerPath: UInt32] = [:]
    var (last, count): (ContainerPath?, Int) = (nil, 0)
    for path in paths {
      let parent = path.parent
      if parent != last {
        try createDirectory(parent)
        (last, count) = (parent, 0)
      }
      count += 1
      guard count == Stage.largeDirectory, stage.overlay.folders[parent] == nil,
        try live.status(parent) == nil
      else { continue }
      let folder = stage.newNumber()
      try stage.directory.createDirectory(Stage.name(folder))
      (folders[parent], stage.overlay.folders[parent]) = (folder, folder)
    }
    if folders.isEmpty { return [] }
    last = nil
    var folder: UInt32 = 0
    let lastLetters = Set(DatabaseFormat.sidecarSuffixes.compactMap(\.utf8.last))
    return paths.map { path in
      let parent = path.parent
      if parent != last { (last, folder) = (parent, folders[parent] ?? 0) }
      guard folder != 0, let letter = path.bytes.last, lastLetters.contains(letter | 0x20) else {
        return folder
      }
      // Nothing may be beside a file that SQLite would read with it: the archive's word for what is a database is not enough.
      let name = path.nameString.lowercased()
      return DatabaseFormat.sidecarSuffixes.contains(where: name.hasSuffix) ? 0 : folder
    }
  }
}
