import ArchiveFile
import DrydockErrors
import FileSystem

extension Repository {
  /// One archive of a repository, as its header says, whatever its file is named.
  package struct Item: Sendable {
    /// The file.
    package var path: String
    /// Its size in bytes, and when it was last written, in nanoseconds since 1970.
    package var size: UInt64, modified: Int64
    /// What it is.
    package var header: ArchiveHeader
    /// How it is encrypted, when it is.
    package var encryption: ArchiveEncryption?
    /// The bytes of the archive inside of its encryption.
    var contentSize: UInt64
    /// The file itself, whatever is behind its path later.
    var identity: FileIdentity

    /// App and instance, which together own archives: `com.example.notes/red`.
    package var owner: String { ArchiveLabel(header).owner }
    /// The file's name.
    package var fileName: String { lastName(path) }
  }

  /// An encrypted archive that no key at hand opens.
  package struct Sealed: Sendable {
    /// The file.
    package var path: String
    /// Its size in bytes, and when it was last written, in nanoseconds since 1970.
    package var size: UInt64, modified: Int64
    /// What its name tells, which nothing vouches for; nil when it was named by hand.
    package var label: ArchiveLabel?
    /// How it is encrypted.
    package var encryption: ArchiveEncryption
    /// Why it could not be opened.
    package var error: DrydockError
    /// The file's name.
    package var fileName: String { lastName(path) }
  }

  /// What is named like an archive and cannot be read.
  package struct Unreadable: Sendable {
    /// The file.
    package var path: String
    /// Why, in words.
    package var reason: String
    /// Why: an error of any module.
    package var error: any Error
  }

  /// What a look at a repository found.
  package struct Listing: Sendable {
    /// The repository's path.
    package let repository: String
    /// The archives that can be read, oldest first; those of one second in the order in which they were written. A time
    /// that the archives themselves contradict does not count.
    package internal(set) var items: [Item] = []
    /// The encrypted ones that no key at hand opens, in the same order as far as their names tell a time.
    package internal(set) var sealed: [Sealed] = []
    /// What is named like an archive and cannot be read, by name.
    package internal(set) var unreadable: [Unreadable] = []

    init(repository: String) { self.repository = repository }

    /// How many digits tell all ids of the list apart, 8 or more.
    package var idLength: Int {
      let ids = Set(items.map(\.header.archive.description)).sorted()
      let shared = zip(ids, ids.dropFirst()).map { zip($0, $1).prefix { $0 == $1 }.count }
      return max(8, (shared.max() ?? 0) + 1)
    }

    /// Only what is of an app and of an instance. What cannot be read, or is sealed and does not even have a name that
    /// tells, may be of any.
    package func filtered(app: String?, instance: String?) -> Listing {
      var listing = self
      listing.items.removeAll {
        (app ?? $0.header.app) != $0.header.app || (instance ?? $0.header.instance) != $0.header.instance
      }
      listing.sealed.removeAll { sealed in
        guard let label = sealed.label else { return false }
        return app.map { ArchiveName.plain($0, 95) != label.app } ?? false
          || instance.map { ArchiveName.plain($0, 95) != label.instance } ?? false
      }
      return listing
    }

    mutating func sort() {
      items = ArchiveOrder.sorted(items, path: { $0.path }, place: { $0.place })
      sealed = ArchiveOrder.sorted(sealed, path: { $0.path }, place: { $0.place })
    }
  }
}

/// The name of a file, without the directories above it.
func lastName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
