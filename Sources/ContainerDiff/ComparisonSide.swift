import AgeEncryption
import AppContainer
import FileSystem
import Formats

/// One of the two that are compared: a live container, a staged one, an archive, a golden.
package protocol ComparisonSide {
  /// Everything that takes part, sorted by path.
  var entries: [ComparedEntry] { get }
  /// What the side does not hold although it may exist, with all below it, and why.
  var omitted: [ContainerPath: String] { get }

  /// A file's content digest; nil for what can only be compared by what is in it.
  func digest(of path: ContainerPath) throws -> SHA256.Digest?
  /// The settings in a file; nil when it is no property list with a dictionary on top.
  func settings(of path: ContainerPath) throws -> PropertyListDictionary?
  /// What a vault's file holds; nil when the side has no more of it than its digest.
  func vault(of path: ContainerPath) throws -> ComparedVault?
  /// What tells whether two databases are the same without opening them.
  func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest
  /// The path of a closed database file that is the caller's to open, as long as the side exists.
  ///
  /// - Parameters:
  ///   - scratch: a private directory to put it into, where that is needed.
  ///   - name: its name there.
  /// - Throws: `DrydockError` with code `malformed` for what SQLite cannot open.
  func databaseFile(of path: ContainerPath, in scratch: Directory, as name: ContainerPath) throws -> String
  /// Called when a database is not needed any more.
  func forgetDatabase(_ path: ContainerPath)
}

/// What a side has of a vault.
package enum ComparedVault {
  /// The sealed file.
  case sealed([UInt8])
  /// Its items alone: neither their times, nor the fields that this version does not know, nor to whom it is sealed.
  case items([VaultItem])
}

/// What tells whether two databases are the same without opening them.
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

  /// The path.
  package var path: ContainerPath
  /// What it is.
  package var kind: Kind
  /// Whether its content takes part: what is another one in each run does not.
  package var hasContent = true
  /// Permission bits.
  package var mode: UInt16?
  /// Bytes of content.
  package var size: UInt64?
  /// What a symbolic link points to.
  package var linkTarget: [UInt8]?
  /// Extended attributes, each with the beginning of its value's digest.
  package var attributes: [String: String]?
  /// Owner, and modification time in nanoseconds since 1970.
  package var owner: [UInt32]?, modified: Int64?

  /// An entry of which nothing more is known.
  package init(_ path: ContainerPath, _ kind: Kind) {
    self.path = path
    self.kind = kind
  }

  /// Takes mode and attributes from metadata.
  package mutating func describe(_ metadata: FileMetadata) throws {
    mode = metadata.mode
    var shown: [String: String] = [:]
    // What the system itself says about a file (SELinux labels) is no part of a container.
    for attribute in metadata.attributes where attribute.name != "security.selinux" {
      shown[attribute.name] = try Self.digest(of: attribute)
    }
    attributes = shown
  }

  /// What stands for an attribute's value: the beginning of its digest.
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
  /// What a regular file is that is no database.
  package func comparedKind(ofFile path: ContainerPath) -> ComparedEntry.Kind {
    path == vaultPath ? .vault : isSettings(path) ? .settings : .file
  }
}
