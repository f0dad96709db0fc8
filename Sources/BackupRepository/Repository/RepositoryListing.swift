import ArchiveManifest
import AppContainer
import DrydockErrors
import FileSystem
import Formats
import Storage

extension Repository {
  /// A file that cannot be read, or a chain that cannot be compacted.
  public struct Unreadable: Sendable {
    /// The file's path.
    public var path: String
    /// Why it cannot be read.
    public var reason: String
    /// The error behind the reason.
    public var error: any Error

    init(path: String, _ error: any Error) {
      (self.path, self.error) = (path, error)
      reason = (error as? DrydockError)?.message ?? "\(error)"
    }

    var fileName: String { lastName(path) }

    /// The beginning of the id that its name has; nil for a name that was given by hand.
    package var id: String? { ArchiveLabel(fileName: fileName)?.id }
  }

  /// The archives of a repository, and the files that cannot be read.
  public struct Listing: Sendable {
    /// The repository's path.
    public let repository: String
    /// The archives that can be read, and the encrypted ones that no key at hand opens. Oldest first, those of one
    /// second in the order of writing; a time that the archives themselves contradict does not count. Locked ones that
    /// were named by hand come last.
    public internal(set) var archives: [StoredArchive] = []
    /// Files that are named like an archive and cannot be read, by name.
    public internal(set) var unreadable: [Unreadable] = []

    /// The files that were there; nil for a directory, whose lock a listing may hold.
    let present: PlaceListing?

    init(repository: String, _ present: PlaceListing?) {
      (self.repository, self.present) = (repository, present)
    }

    /// The archives that can be read, oldest first.
    public var items: [StoredArchive] { archives.filter { $0.header != nil } }
    /// The encrypted ones that no key at hand opens, in the same order as far as their names have a time.
    public var locked: [StoredArchive] { archives.filter(\.isLocked) }

    /// How many digits of an id distinguish all in the list, 8 or more.
    package func idLength() -> Int {
      let ids = Set(items.map(\.id)).sorted()
      let shared = zip(ids, ids.dropFirst()).map { zip($0, $1).prefix { $0 == $1 }.count }
      return max(8, (shared.max() ?? 0) + 1)
    }

    /// Only the archives of an app and of an instance, and files of which that is not known.
    package func filtered(app: String?, instance: String?) -> Listing {
      selecting { $0.label?.isOf(app: app, instance: instance) ?? true }
    }

    /// Only archives of that time or later, and files of which the time is not known.
    ///
    /// - Parameter time: `2026-11-14`, or another beginning of a time, in UTC.
    /// - Throws: `DrydockError` with code `malformed` for any other text.
    package func since(_ time: String) throws -> Listing {
      guard let limit = UTCTime.beginning(time) else {
        throw DrydockError(
          .malformed, "\(time.printable) is not a time; write 2026-11-14 or 2026-11-14T12:00:00Z, in UTC")
      }
      return selecting { $0.label == nil || $0.effectiveTime.prefix(limit.count) >= limit }
    }

    /// Only the newest archives of each app and instance, and files of which that is not known.
    package func newest(_ count: Int) -> Listing {
      var (seen, selected): ([String: Int], Set<String>) = ([:], [])
      for archive in archives.reversed() {
        if archive.label != nil { seen[archive.nameKey, default: 0] += 1 }
        if seen[archive.nameKey, default: 0] <= count { selected.insert(archive.path) }
      }
      return selecting { selected.contains($0.path) }
    }

    private func selecting(_ isSelected: (StoredArchive) -> Bool) -> Listing {
      var listing = self
      listing.archives = archives.filter(isSelected)
      return listing
    }

    // MARK: Owners and copies

    /// Names have no instances: those that headers have are added to archives.
    ///
    /// Where names have the same of two owners, none is: which of them an archive is of that no key opens is not known.
    func namingOwners(_ archives: [StoredArchive]) -> [StoredArchive] {
      let owners = Dictionary(grouping: items.compactMap(\.label), by: \.nameKey)
        .filter { _, labels in Set(labels.map(\.ownerKey)).count == 1 }
      return archives.map { archive in
        guard var label = archive.label, label.mark != nil, let owner = owners[label.nameKey]?.first else {
          return archive
        }
        (label.app, label.instance, label.mark) = (owner.app, owner.instance, nil)
        var named = archive
        named.label = label
        return named
      }
    }

    /// All archives of which at least the name is known, each with its copies, oldest first, then those that cannot be
    /// read.
    var withCopies: [StoredArchive] {
      var found: [StoredArchive] = []
      var places: [[String]: Int] = [:]
      for archive in archives where archive.label != nil {
        let key = [archive.ownerKey, archive.time, String(archive.id.prefix(8))]
        if let place = places[key] {
          found[place].add(copy: archive)
        } else {
          places[key] = found.count
          found.append(archive)
        }
      }
      // Never together with a readable copy, which rules may remove.
      let damaged = unreadable.map { StoredArchive(path: $0.path, access: .unreadable) }
      return found + namingOwners(damaged.filter { $0.label != nil })
    }
  }
}

func lastName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

extension String {
  /// With control characters escaped, which would act on a terminal: an archive's own texts may be hostile.
  package var printable: String {
    let isActive = { (scalar: Unicode.Scalar) in
      scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
    }
    guard unicodeScalars.contains(where: isActive) else { return self }
    return unicodeScalars.map {
      isActive($0)
        ? "\\u{\(String($0.value, radix: 16))}" : String($0)
    }.joined()
  }
}
