/// What failed, why, and what to do next: the one error that Drydock throws.
///
/// Errors of system calls and of C libraries are its `cause`.
public struct DrydockError: Error, CustomStringConvertible, Sendable {
  /// The kind of failure. Each has one exit code (``exitCode``).
  public enum Code: String, Sendable, CaseIterable {
    // MARK: Files and the system

    /// There is nothing at the path.
    case notFound
    /// A directory is needed, and the path is none.
    case notAContainer
    /// A path that is empty, absolute, or leads out of its directory.
    case badPath
    /// Not permitted.
    case permission
    /// No space is left.
    case noSpace
    /// Reading or writing failed; the cause says how.
    case io
    /// The content cannot be read.
    case unreadable
    /// The content is not of the format that it must have.
    case malformed
    /// The content, or the file system, is of a kind that is not supported.
    case unsupported
    /// A rule of an interface was broken by its caller.
    case invalidUse
    /// The command cannot be used like this.
    case usage

    // MARK: Keys and encryption

    /// The cryptographic library failed.
    case cryptography
    /// A key or recipient that cannot be read.
    case badKey
    /// The header of an age file breaks the rules of the format.
    case header
    /// A key fits, but the header is not the one that was written.
    case mac
    /// No key at hand opens the file.
    case noIdentity
    /// The encrypted content is damaged, cut short or followed by something else.
    case payload
    /// The ASCII armor around an age file breaks the rules of the format.
    case armor

    // MARK: The container

    /// `drydock.yaml`, a rule file or a variable cannot be used.
    case badConfiguration
    /// The vault is sealed, and no device key at hand opens it.
    case vaultLocked
    /// The vault's file is damaged, of another kind, or of a newer format.
    case badVault

    // MARK: The transaction

    /// Another Drydock process holds the lock.
    case locked
    /// A program has something of the container open.
    case inUse
    /// A program may have something of the container open without being seen, and that was to be refused.
    case notVisible
    /// The container changed while the transaction was prepared.
    case changedMeanwhile
    /// A commit was killed half way, or stopped and could not be undone: `recover` ends it.
    case interrupted
    /// The container, or a part of it, cannot be changed by this user in this place.
    case notWritable
    /// Two sides changed the same thing.
    case conflict
    /// A check failed.
    case checkFailed
    /// There is nothing to undo, or it is no longer kept.
    case nothingToUndo
    /// The state directory holds what cannot be understood.
    case damagedState
    /// The state directory belongs to another user, or others can write to it.
    case foreignState
    /// A named thing is not in the container.
    case missing
    /// A named thing is in the container already.
    case exists
    /// Several places or names fit.
    case ambiguous

    // MARK: Archives and repositories

    /// The file is no archive of Drydock's.
    case notAnArchive
    /// The file ends too early.
    case truncated
    /// The file contradicts itself or its checksums.
    case damaged
    /// The file is encrypted in a way that is not read.
    case encrypted
    /// The file was written by a newer version.
    case newerFormat
    /// A member's name or link could lead out of the directory that it is unpacked in, or comes twice.
    case unsafeName
    /// Larger than the format or a limit allows.
    case limit
    /// Several archives or instances fit.
    case ambiguousArchive
    /// Data of another app, another instance or another schema version.
    case mismatch
    /// The repository and the container contain each other.
    case overlap
    /// The archive does not have the path.
    case notInArchive

    // MARK: Migrations

    /// The migration files are not in order: names, gaps, syntax, unknown words.
    case catalog
    /// Nothing says which version the container has.
    case unknownVersion
    /// A container without a history has a marker whose number would stand for migrations that were never released.
    case firstContact
    /// The container was migrated by a newer release of the app.
    case newer
    /// An applied migration's files have changed.
    case edited
    /// An applied migration's files are gone.
    case missingMigration
    /// A migration was never applied, but a later one was.
    case outOfOrder
    /// A released migration was changed, removed, or one was inserted before it.
    case released
    /// A marker says less than the history, or two markers differ.
    case contradiction
    /// The history file cannot be read.
    case damagedHistory
    /// A migration has no down steps.
    case irreversible
    /// A step failed.
    case stepFailed
    /// A check after the steps failed.
    case verifyFailed
    /// A SQL statement failed, or is not allowed in a migration.
    case sql
    /// A step changes a schema that belongs to the app's own database library.
    case foreignSchema

    // MARK: Fixtures

    /// `fixture.yaml` or another file of a fixture cannot be read.
    case badFixture
    /// The container could not be built from its files.
    case notBuilt
    /// A container cannot be captured without keeping something that must not stay.
    case notCaptured
    /// A golden of a released version would change.
    case frozen
  }

  /// The kind of failure.
  public var code: Code
  /// What failed, why, and what to do next; it may begin with `file:line:column`. It never holds a secret.
  public var message: String
  /// The path that it is about.
  public var path: String?
  /// The line in that file, from 1.
  public var line: Int?
  /// The error underneath.
  public var cause: (any Error)?

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, path: String? = nil, line: Int? = nil, cause: (any Error)? = nil
  ) {
    (self.code, self.message, self.path, self.line, self.cause) = (code, message, path, line, cause)
  }
}

extension DrydockError {
  /// The path, or `path:line:1`, as editors understand it.
  public var place: String? { path.map { path in line.map { "\(path):\($0):1" } ?? path } }

  /// The message with the path: in front, or behind when the message begins with `file:line:column`.
  public var description: String {
    guard let place, !message.contains(place) else { return message }
    return beginsWithPosition ? "\(message) (\(place))" : "\(place): \(message)"
  }

  private var beginsWithPosition: Bool {
    let parts = message.prefix { $0 != "\n" }.split(separator: ":", omittingEmptySubsequences: false)
    return parts.indices.dropFirst().dropLast(2).contains { index in
      Int(parts[index]) != nil && Int(parts[index + 1]) != nil && parts[index + 2].hasPrefix(" ")
    }
  }

  /// What failed, where and why, without what to do next: for a message about something that happened after a change was
  /// made, where "run it again" would be wrong.
  package var reason: String {
    guard let end = message.utf8.indices.first(where: { message[$0...].utf8.starts(with: "; ".utf8) }) else {
      return description
    }
    return DrydockError(code, String(message[..<end]), path: path, line: line).description
  }

  /// As ``reason``, of any error.
  package static func reason(of error: any Error) -> String {
    (error as? DrydockError)?.reason ?? String(describing: error)
  }

  /// The same error, saying which file it is about.
  package func at(_ path: String?) -> DrydockError {
    guard let path, self.path == nil else { return self }
    return DrydockError(code, message, path: path, line: line, cause: cause)
  }
}

extension DrydockError.Code {
  /// The exit code of a command that fails with it.
  public var exitCode: Int32 {
    switch self {
    case .notFound, .notAContainer, .badPath, .permission, .noSpace, .io, .unreadable, .malformed,
      .unsupported,
      .invalidUse, .cryptography, .notWritable, .checkFailed, .nothingToUndo, .damagedState, .foreignState,
      .missing,
      .exists, .ambiguousArchive, .overlap, .stepFailed, .verifyFailed, .sql, .notBuilt, .notCaptured:
      1
    case .badKey, .header, .mac, .noIdentity, .payload, .armor, .badConfiguration, .vaultLocked, .badVault,
      .ambiguous, .notAnArchive, .truncated, .damaged, .encrypted, .newerFormat, .unsafeName, .limit,
      .mismatch,
      .notInArchive, .catalog, .unknownVersion, .firstContact, .newer, .edited, .missingMigration,
      .outOfOrder,
      .released, .contradiction, .damagedHistory, .irreversible, .foreignSchema, .badFixture, .frozen:
      4
    case .locked, .inUse, .notVisible, .changedMeanwhile, .interrupted: 5
    case .conflict: 6
    case .usage: 64
    }
  }
}
