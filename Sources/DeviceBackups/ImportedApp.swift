import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// An app's data in a backup of a device, from which a container can be made.
package protocol ImportedApp {
  /// Its bundle id or package.
  var app: String { get }
  var layout: ContainerLayout { get }
  /// The ids of the groups that come with it.
  var groups: [String] { get }
  /// The backup's path.
  var source: String { get }
  /// Stages all of its data into an empty container, which has these groups.
  func stage(into staged: StagedContainer) throws -> ImportReport
}

/// What an import brought, and what it left out.
package struct ImportReport: Sendable {
  package struct LeftOut: Sendable, Codable, Equatable {
    /// A path, with the group in front of one in a group; or the name of a vault item.
    package var name: String
    package var reason: String
  }

  /// Files and the bytes of their contents; of the groups too.
  package var files = 0, bytes: UInt64 = 0
  package var groups: [String: Int] = [:]
  /// The names of the items that are now in the vault.
  package var vaultItems: [String] = []
  /// What should have come and did not.
  package var leftOut: [LeftOut] = []
  /// What is not part of a container, or was not asked for.
  package var notes: [String] = []
  /// Files whose content the backup does not have, or that cannot be read; they are left out.
  package var missingFiles = 0
  /// Files of another size than the backup's index says.
  var otherSizes = 0
  /// Files of the app's program and of the backup itself, which are not data.
  var programFiles = 0

  package init() {}

  package var isIncomplete: Bool { !leftOut.isEmpty }

  mutating func leaveOut(_ name: String, _ reason: String) {
    leftOut.append(LeftOut(name: name, reason: reason))
  }

  static func missing(_ app: String, among apps: [String], _ path: String) -> DrydockError {
    let near = NearestWord.to(app, among: apps).map {
      "; did you mean \(ContainerPath.printable(Array($0.utf8)))?"
    }
    return DrydockError(
      .missing,
      "the backup has no data of \(ContainerPath.printable(Array(app.utf8)))" + (near ?? "; list its apps"),
      path: path)
  }
}

extension ContainerPath {
  /// A path of a group, or of the app itself, in the container.
  func inContainer(_ group: String?) -> ContainerPath {
    group.map { rebased(from: .root, to: .group($0)) } ?? self
  }
}

/// A container that an import fills. No path may come twice: one content would hide the other.
struct ImportTarget {
  var report = ImportReport()
  let staged: StagedContainer
  private var seen: Set<ContainerPath> = []
  /// A directory gets its time at the end, when it is filled.
  private var directories: [(path: ContainerPath, metadata: FileMetadata)] = []

  init(_ staged: StagedContainer) {
    self.staged = staged
    staged.progress?.begin(.restore)
  }

  private mutating func place(_ path: ContainerPath, _ group: String?) throws -> ContainerPath {
    let place = path.inContainer(group)
    guard group != nil || !path.isInside(.groups), path != ContainerPath.groups,
      path != ContainerPath.stateDirectory,
      !path.isInside(.stateDirectory)
    else {
      throw DrydockError(
        .unsafeName, "the backup has a path with a name that Drydock uses itself", path: "\(place)")
    }
    guard seen.insert(place).inserted else {
      throw DrydockError(.unsafeName, "the backup has the path twice", path: "\(place)")
    }
    return place
  }

  mutating func putDirectory(_ path: ContainerPath, _ group: String?, _ metadata: FileMetadata) throws {
    // The roots are not the app's.
    if path.isRoot { return }
    directories.append((try place(path, group), Self.safe(metadata)))
  }

  mutating func putLink(
    _ path: ContainerPath, _ group: String?, to target: [UInt8], _ metadata: FileMetadata
  ) throws {
    var metadata = metadata
    // Linux has no attributes of links.
    metadata.attributes = []
    try staged.putLink(at: place(path, group), target: target, metadata: metadata)
  }

  /// - Parameters:
  ///   - space: what the content takes at most.
  ///   - fill: writes the content, and returns its size, or why there is none: then the file is left out.
  /// - Returns: the size; nil for a file that was left out.
  @discardableResult
  mutating func putFile(
    _ path: ContainerPath, _ group: String?, _ metadata: FileMetadata, space: UInt64,
    _ fill: (StageFile) throws -> (size: UInt64, missing: String?)
  ) throws -> UInt64? {
    let place = try place(path, group)
    guard !path.isRoot else {
      throw DrydockError(.unsafeName, "the backup has a file in the place of a directory", path: "\(place)")
    }
    do {
      var size: UInt64 = 0
      try staged.putFile(at: place, metadata: Self.safe(metadata), size: space) {
        let (count, missing) = try fill($0)
        if let missing { throw Missing(reason: missing) }
        size = count
      }
      report.files += 1
      report.bytes += size
      if let group { report.groups[group, default: 0] += 1 }
      staged.progress?.add(bytes: size, files: 1)
      return size
    } catch let error as Missing {
      report.leaveOut("\(place)", error.reason)
      report.missingFiles += 1
      return nil
    }
  }

  /// Without attributes that give rights, such as capabilities: a backup is not to be trusted with them.
  private static func safe(_ metadata: FileMetadata) -> FileMetadata {
    var metadata = metadata
    #if os(Linux)
      metadata.attributes.removeAll { !$0.name.hasPrefix("user.") }
    #endif
    return metadata
  }

  private struct Missing: Error { var reason: String }

  /// Gives directories their metadata, parents first.
  mutating func finished() throws -> ImportReport {
    try staged.requireDistinctNames(seen.sorted())
    for (path, metadata) in directories.sorted(by: { $0.path < $1.path }) {
      try staged.putDirectory(at: path, metadata: staged.attainable(metadata, for: .directory))
    }
    if report.otherSizes > 0 {
      report.notes.append(
        "files that have another size than the backup's index says, as databases often do, were imported as they are: "
          + "\(report.otherSizes)")
    }
    if report.programFiles > 0 {
      report.notes.append(
        "the app's program and the backup's own description are not data, and were not imported")
    }
    return report
  }
}
