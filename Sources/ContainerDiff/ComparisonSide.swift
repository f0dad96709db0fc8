import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// One of the two that are compared: a live container, a staged one, an archive, a golden.
package protocol ComparisonSide {
  /// Starts a walk over everything that takes part.
  func walk() throws -> SideWalk

  /// A file's content digest; nil for what can only be compared by what is in it.
  func digest(of entry: ComparedEntry) throws -> SHA256.Digest?
  /// A small file's content, to show what differs inside; nil when the side has no more of it than its digest.
  func contents(of entry: ComparedEntry) throws -> [UInt8]?
  /// The settings in a file; nil when it is not a property list with a dictionary on top.
  func settings(of path: ContainerPath) throws -> PropertyListDictionary?
  /// What a vault's file holds; nil when the side has no more of it than its digest.
  func vault(of path: ContainerPath) throws -> ComparedVault?
  /// Decides whether two databases are the same without opening them.
  func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest
  /// The path of a closed database file that is the caller's to open, as long as the side exists.
  ///
  /// - Parameters:
  ///   - scratch: a private directory to put it into, where that is needed.
  ///   - name: its name there.
  /// - Throws: `DrydockError` with code `malformed` for what SQLite cannot open.
  func databaseFile(of path: ContainerPath, in scratch: Directory, as name: ContainerPath) throws -> String
  /// Called when a database is no longer needed.
  func forgetDatabase(_ path: ContainerPath)
}

/// Gives one step after the other, and nil at the end: a container may have a million paths, of which only two are in memory
/// at a time.
package typealias SideWalk = () throws -> SideStep?

package enum SideStep {
  /// The entries come in the order of their paths.
  case entry(ComparedEntry)
  /// A path that the side does not hold although it may exist, with all below it, and why. It comes before any entry behind it.
  case omitted(ContainerPath, String)
}

extension ComparisonSide {
  /// Everything in a walk at once, of a small side.
  package func listed(_ next: SideWalk) throws -> (
    entries: [ComparedEntry], omitted: [ContainerPath: String]
  ) {
    var (entries, omitted): ([ComparedEntry], [ContainerPath: String]) = ([], [:])
    while let step = try next() {
      switch step {
      case .entry(let entry): entries.append(entry)
      case .omitted(let path, let reason): omitted[path] = reason
      }
    }
    return (entries, omitted)
  }

  /// A walk over what is in memory.
  ///
  /// - Parameter entries: sorted by path.
  package func walk(_ entries: [ComparedEntry], omitting omitted: [ContainerPath: String]) -> SideWalk {
    var steps = omitted.map { SideStep.omitted($0, $1) }.makeIterator()
    var rest = entries.makeIterator()
    return { steps.next() ?? rest.next().map { .entry($0) } }
  }
}

/// What a side has of a vault.
package enum ComparedVault {
  /// The sealed file.
  case sealed([UInt8])
  /// Its items alone: neither their times, nor the fields that this version does not know, nor to whom it is sealed.
  case items([VaultItem])
}

/// Decides whether two databases are the same without opening them.
package enum DatabaseDigest: Equatable {
  /// The digest of its captured content.
  case image(SHA256.Digest)
  /// SQLite cannot open it: the digests of its files, by the ending of their names.
  case raw([String: SHA256.Digest])
  /// Only its schema and rows can be compared.
  case unknown
}

/// One path of a side. What a side does not know about it is nil and not compared.
package struct ComparedEntry: Sendable {
  /// What a path is.
  package enum Kind: String, Sendable {
    case directory, file, link, settings, database, vault
    /// A socket, FIFO or device.
    case other
  }

  package var path: ContainerPath
  package var kind: Kind
  /// Whether its content takes part: a nondeterministic value does not.
  package var hasContent = true
  package var mode: UInt16?
  package var size: UInt64?
  /// The content's, where the side knows it without reading the content.
  package var digest: SHA256.Digest?
  /// What a symbolic link points to.
  package var linkTarget: [UInt8]?
  /// Extended attributes, each with the beginning of its value's digest.
  package var attributes: [String: String]?
  /// Owner, and modification time in nanoseconds since 1970.
  package var owner: [UInt32]?, modified: Int64?

  package init(_ path: ContainerPath, _ kind: Kind) {
    self.path = path
    self.kind = kind
  }

  /// Takes mode and attributes from metadata, and the size of what is compared byte by byte.
  package mutating func describe(_ metadata: FileMetadata, size: UInt64? = nil) throws {
    mode = metadata.mode
    if [.file, .settings, .vault].contains(kind) { self.size = size }
    var shown: [String: String] = [:]
    // What the system itself says about a file (SELinux labels) is not part of a container, nor is Drydock's own note.
    let others = ["security.selinux", ExtendedAttribute.ownNote]
    for attribute in metadata.attributes where !others.contains(attribute.name) {
      shown[attribute.name] = try Self.digest(of: attribute)
    }
    attributes = shown
  }

  /// The name of the recorded class of data protection, by its digest.
  func protection() throws -> String? {
    guard let digest = attributes?[ProtectionClass.attribute] else { return nil }
    let known = try ProtectionClass.allCases.first {
      try Self.digest(of: ExtendedAttribute(name: ProtectionClass.attribute, value: Array($0.appleName.utf8)))
        == digest
    }
    return known?.rawValue ?? "unknown"
  }

  /// A short form of an attribute's value: the beginning of its digest.
  package static func digest(of attribute: ExtendedAttribute) throws -> String {
    try attribute.value.withUnsafeBytes { String(try SHA256.hash($0).hex.prefix(16)) }
  }

  /// What it is to a file system.
  var type: FileType {
    switch kind {
    case .directory: .directory
    case .link: .symbolicLink
    case .other: .other
    case .file, .settings, .database, .vault: .file
    }
  }
}

extension Container {
  /// What a regular file is, unless it is a database.
  package func comparedKind(ofFile path: ContainerPath) -> ComparedEntry.Kind {
    path == vaultPath ? .vault : isSettings(path) ? .settings : .file
  }
}
