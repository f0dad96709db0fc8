import DrydockErrors
import Storage

/// The archives of a repository by the names of their files, which are listed once for many containers. An archive that was
/// renamed by hand is not in it.
package struct ArchiveIndex: Sendable {
  private let path: String
  /// By owner: the labels, and the names of the files.
  private var archives: [String: [(label: ArchiveLabel, name: String)]] = [:]
  /// The ids of archives with tags, by their first 8 digits.
  private var tagged: [String: [String]] = [:]

  /// - Throws: ``DrydockError``: `notFound`, `permission`, `io`.
  package init(_ repository: Repository) throws {
    path = repository.path
    do {
      let listing = try Places.open(path).list()
      tagged = Dictionary(grouping: listing.names.compactMap(ArchiveTags.id)) { String($0.prefix(8)) }
      for (name, label) in listing.archives {
        if let label { archives[label.nameKey, default: []].append((label, name.nameString)) }
      }
    } catch let error as DrydockError {
      throw DrydockError.unusable("the repository", path: path, error)
    }
  }

  /// The path of the newest archive of a container, by the times in the names.
  package func newest(app: String, instance: String) -> String? {
    let own = archives[ArchiveLabel.nameKey(app, instance), default: []]
    return own.max { ($0.label.time, $0.name) < ($1.label.time, $1.name) }.map { path + "/" + $0.name }
  }

  /// The path of an archive of a container that has a tag; nil for none.
  ///
  /// - Throws: ``DrydockError`` with code `damaged` for tags that cannot be read.
  package func archive(app: String, instance: String, tagged tag: String) throws -> String? {
    let own = archives[ArchiveLabel.nameKey(app, instance), default: []]
    for archive in own.sorted(by: { $1.label.time < $0.label.time }) {
      for id in tagged[String(archive.label.id.prefix(8)), default: []] where id.hasPrefix(archive.label.id) {
        if try ArchiveTags.read(of: id, in: Places.open(path)).contains(tag) {
          return path + "/" + archive.name
        }
      }
    }
    return nil
  }

  /// What the names of all archives of one container have in common, such as `com.example.notes_#1f2e3d4c`; of a file that was
  /// named by hand its name.
  package static func owner(ofFile name: String) -> String { ArchiveLabel(fileName: name)?.nameKey ?? name }
}
