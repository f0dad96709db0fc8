import ArchiveManifest
import ArchiveFile
import DrydockErrors
import FileSystem
import Synchronization

/// An archive that is missing or damaged, and the paths of a snapshot that need it.
public struct UnreadableArchive: Error, Sendable, Codable, Equatable {
  /// Its id.
  public var archive: String
  /// Its file and its snapshot's time, when they are known.
  public var file: String?, time: String?
  /// Why it cannot be read.
  public var reason: String
  /// The paths whose content cannot be read.
  public var affected: [ContainerPath] = []
  /// Whether its manifest cannot be read either, so that more paths may be affected: those that only it names.
  public var affectsUnknownPaths = false

  /// What is affected, in one line and a line for each of the first ten paths.
  public var summary: [String] {
    let unknown = affectsUnknownPaths ? ["the unknown paths that only this archive lists"] : []
    let known = affected.isEmpty ? [] : [affected.count == 1 ? "1 path" : "\(affected.count) paths"]
    let paths = (known + unknown).joined(separator: " and ")
    let name = "snapshot \(archive.prefix(8))" + (time.map { " of \($0)" } ?? "")
    return ["\(name) is \(file == nil ? "missing" : "damaged"), which affects \(paths)"]
      + affected.lines(10).map { "  \($0)" }
  }
}

/// The cause of an error about archives that cannot be read.
public struct UnreadableArchives: Error, Sendable, Equatable {
  /// The archives of the chain.
  public var archives: [UnreadableArchive]
}

extension DrydockError {
  /// Whether it says that an archive is missing, or not what was written.
  var meansDamage: Bool {
    switch code {
    // A damaged table also claims impossible sizes, and a damaged disk cannot be read.
    case .missingArchive, .damaged, .truncated, .notAnArchive, .payload, .header, .mac, .limit, .io: true
    default: false
    }
  }

  /// The error with the snapshots and paths that are affected.
  func naming(_ archives: [UnreadableArchive]) -> DrydockError {
    guard !archives.isEmpty else { return self }
    let lines = archives.flatMap(\.summary).map { "\n  " + $0 }
    return DrydockError(
      code, message + lines.joined(), path: path, line: line, cause: UnreadableArchives(archives: archives))
  }
}

extension Archive {
  /// Throws when an archive of the chain could not be opened, with all that cannot be read.
  ///
  /// - Parameter readingData: see ``unreadable(readingData:)``.
  func requireComplete(readingData: Bool = false) throws {
    if let gap { throw gap.reason.naming(try unreadable(readingData: readingData)) }
  }

  /// The archives of the chain that cannot be read, with all paths of the snapshot that need them.
  ///
  /// - Parameter readingData: reads all content and the headers in front of it, to find what is damaged.
  func unreadable(readingData: Bool) throws -> [UnreadableArchive] {
    var (contents, links) = (RestoredContents(keepsSetID: true), [ManifestEntry]())
    let reader = ChainSource(self, nil).reader()
    var entries = try MergedEntries(manifest)
    var members = readingData ? try parts.map { try $0.expectedMembers() } : nil
    while let entry = try entries.next(own: { members?[$0].add($1) }) {
      if entry.hardLink != nil {
        links.append(entry)
      } else if entry.size > 0, readingData || !reader.has(entry) {
        contents.append(entry, entries.place, of: self)
      }
    }
    for link in links {
      let entry = try manifest.withContent(link)
      if entry.hardLink != nil { contents.append(changed: entry, of: self) }
    }
    return try unreadable(among: contents, links: links, members)
  }

  /// The archives that contents cannot be read from. All are read to the end, each compared with its hash, and nothing is
  /// kept of them.
  ///
  /// - Parameters:
  ///   - links: hard links, affected when their first name is.
  ///   - members: what the tar must have in front of each content; nil to compare only the contents.
  func unreadable(
    among contents: RestoredContents, links: [ManifestEntry] = [], _ members: [ExpectedMembers]? = nil
  ) throws -> [UnreadableArchive] {
    let found = Mutex<(damaged: [ContainerPath: DrydockError], missing: [ContainerPath])>(([:], []))
    let source = ChainSource(self, members)
    try onAllCores(ContentPlace.groups(contents.places, isRemote: source.isRemote)) { group in
      let reader = source.reader()
      reader.expect(contents, group)
      for number in group {
        let entry = try contents.entry(Int(number), reader)
        guard reader.has(entry) else {
          found.withLock { $0.missing.append(entry.path) }
          continue
        }
        do {
          try reader.read(entry) { _ in }
        } catch let error as DrydockError where error.meansDamage {
          found.withLock { $0.damaged[entry.path] = error }
        }
      }
    }
    let (damaged, missing) = found.withLock { $0 }
    return grouped(damaged, missing: missing, links)
  }

  private func grouped(
    _ damaged: [ContainerPath: DrydockError], missing: [ContainerPath], _ links: [ManifestEntry]
  ) -> [UnreadableArchive] {
    var result: [UnreadableArchive] = []
    for (index, part) in parts.enumerated() {
      // A content of several archives with another hash is an error of the newest one, which has the hash.
      let own = damaged.filter { _, error in (parts.firstIndex { $0.path == error.path } ?? 0) == index }
      guard let first = own.min(by: { $0.key < $1.key }) else { continue }
      result.append(
        UnreadableArchive(
          archive: part.header.archive.description, file: part.path, time: part.header.time,
          reason: first.value.message, affected: Array(own.keys)))
    }
    if let gap {
      let file = gap.reason.code == .missingArchive ? nil : gap.reason.path
      result.append(
        UnreadableArchive(
          archive: gap.archive.description, file: file, reason: gap.reason.message, affected: missing,
          affectsUnknownPaths: true))
    }
    for index in result.indices {
      let paths = Set(result[index].affected)
      let linked = links.filter { $0.hardLink.map(paths.contains) ?? false }.map(\.path)
      result[index].affected = paths.union(linked).sorted()
    }
    return result
  }
}
