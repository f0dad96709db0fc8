/// The one error that Drydock throws: what failed, why, and what to do next.
///
/// Errors of system calls and C libraries are its `cause`.
public struct DrydockError: Error, CustomStringConvertible, Sendable {
  /// The kind of failure; the raw values are part of the JSON output.
  public enum Code: String, Sendable, CaseIterable {
    // MARK: Files and the system

    /// The path does not exist.
    case notFound
    /// The path is not a directory.
    case notAContainer
    /// The path is empty, absolute, or leads out of its directory.
    case badPath
    case permission
    case noSpace
    /// Reading or writing failed; see the cause.
    case io
    /// The content cannot be read.
    case unreadable
    /// The content does not have the required format.
    case malformed
    /// The content or the file system is of an unsupported kind.
    case unsupported
    /// The caller violated a precondition of the interface.
    case invalidUse
    /// The command line is invalid.
    case usage

    // MARK: Keys and encryption

    /// The cryptographic library failed.
    case cryptography
    /// The key or recipient is invalid.
    case badKey
    /// The header of an age file is malformed.
    case header
    /// A key fits, but the header was modified.
    case mac
    /// None of the keys opens the file.
    case noIdentity
    /// The encrypted content is corrupt, truncated, or followed by other data.
    case payload
    /// The ASCII armor around an age file is malformed.
    case armor

    // MARK: The container

    /// `drydock.yaml`, a rule file or a variable is invalid.
    case badConfiguration
    /// None of the device keys opens the vault.
    case vaultLocked
    /// The vault file is corrupt, not a vault, or of a newer format.
    case badVault

    // MARK: The transaction

    /// Another Drydock process holds the lock.
    case locked
    /// A process has something in the container open.
    case inUse
    /// Open files of other processes cannot be detected, and the caller requires that they are.
    case notVisible
    /// The container changed while the transaction was prepared.
    case changedMeanwhile
    /// A commit was interrupted and could not be undone; `recover` completes it.
    case interrupted
    /// This user cannot change the container, or a part of it, in this place.
    case notWritable
    /// Both sides changed the same thing.
    case conflict
    case checkFailed
    /// There is nothing to undo, or the undo log no longer has it.
    case nothingToUndo
    /// The state directory is corrupt.
    case damagedState
    /// The state directory belongs to another user, or others can write to it.
    case foreignState
    /// The container does not have the named thing.
    case missing
    /// The container already has the named thing.
    case exists
    /// Several places or names match.
    case ambiguous

    // MARK: Archives and repositories

    /// The file is not a Drydock archive.
    case notAnArchive
    /// The file is truncated.
    case truncated
    /// The file is corrupt: it contradicts itself or its checksums.
    case damaged
    /// The file uses an unsupported kind of encryption.
    case encrypted
    /// A newer version wrote the file.
    case newerFormat
    /// The name or link of a member leads out of the target directory, or occurs twice.
    case unsafeName
    /// The format's size, or a limit, is exceeded.
    case limit
    /// Several archives or instances fit.
    case ambiguousArchive
    /// The data is of another app, another instance or another schema version.
    case mismatch
    /// The repository is inside the container, or the other way around.
    case overlap
    /// The archive does not have the path.
    case notInArchive
    /// An archive that an incremental one needs is not there.
    case missingArchive
    /// No trusted key has signed the archive.
    case untrusted
    /// A signature or its payload is malformed, forged, or of another archive.
    case badSignature

    // MARK: Migrations

    /// The migration files are invalid: names, gaps, syntax, unknown words.
    case catalog
    /// The container's schema version cannot be determined.
    case unknownVersion
    /// A marker of a container without history names a version that was never released, or another tool's record one
    /// whose schema the database does not have.
    case unconfirmedVersion
    /// A newer release of the app migrated the container.
    case newer
    /// The files of an applied migration were edited.
    case edited
    /// The files of an applied migration are missing.
    case missingMigration
    /// A migration was not applied, but a later one was.
    case outOfOrder
    /// A released migration was edited or removed, or one was inserted before it.
    case released
    /// A marker is behind the history, or two markers differ.
    case contradiction
    /// The history file is corrupt.
    case damagedHistory
    /// A migration has no down steps.
    case irreversible
    case stepFailed
    /// A check after the steps failed.
    case verifyFailed
    /// A SQL statement failed, or is not allowed in a migration.
    case sql
    /// A step changes a schema that the app's own database library manages.
    case foreignSchema

    // MARK: Fixtures

    /// A file of a fixture is invalid.
    case badFixture
    /// The fixture's container could not be built.
    case notBuilt
    /// A container cannot be captured without keeping data that must not be kept.
    case notCaptured
    /// A golden of a released version would change.
    case frozen
  }

  /// The kind of failure.
  public var code: Code
  /// What failed, why, and, after a `; `, what to do next. It may begin with `file:line:column`, and has no secrets.
  public var message: String
  /// The file or directory concerned.
  public var path: String?
  /// The line in that file, from 1.
  public var line: Int?
  /// The underlying error.
  public var cause: (any Error)?

  /// An error from its parts.
  public init(
    _ code: Code, _ message: String, path: String? = nil, line: Int? = nil, cause: (any Error)? = nil
  ) {
    (self.code, self.message, self.path, self.line, self.cause) = (code, message, path, line, cause)
  }
}

extension DrydockError {
  /// The path, or `path:line:1`, which editors understand.
  public var place: String? { path.map { path in line.map { "\(path):\($0):1" } ?? path } }

  /// The path and the message; the path comes last when the message begins with `file:line:column`.
  public var description: String {
    // A name without a slash may be a word of the message.
    guard let place, !(place.contains("/") ? message.contains(place) : message.hasPrefix(place)) else {
      return message
    }
    return beginsWithPosition ? "\(message) (\(place))" : "\(place): \(message)"
  }

  private var beginsWithPosition: Bool { position != nil }

  /// The file, line and column that the message begins with.
  private var position: (file: String, line: Int, column: Int)? {
    let parts = message.prefix { $0 != "\n" }.split(separator: ":", omittingEmptySubsequences: false)
    for index in parts.indices.dropFirst().dropLast(2) {
      guard let line = Int(parts[index]), let column = Int(parts[index + 1]), parts[index + 2].hasPrefix(" ")
      else { continue }
      return (parts[..<index].joined(separator: ":"), line, column)
    }
    return nil
  }

  /// The place and the message without it. The file is the one that the message begins with, or else the path.
  package var located: (file: String?, line: Int?, column: Int?, message: String) {
    guard let (file, line, column) = position else { return (path, line, nil, message) }
    let rest = message.dropFirst("\(file):\(line):\(column):".count).drop { $0 == " " }
    return (file, line, column, String(rest))
  }

  /// The description without what to do next: for failures after a change was made, where "run it again" is wrong.
  package var reason: String {
    guard let end = message.utf8.indices.first(where: { message[$0...].utf8.starts(with: "; ".utf8) }) else {
      return description
    }
    return DrydockError(code, String(message[..<end]), path: path, line: line).description
  }

  /// The ``reason`` of any error.
  package static func reason(of error: any Error) -> String {
    (error as? DrydockError)?.reason ?? String(describing: error)
  }

  /// The same error with a path, unless it has one.
  package func at(_ path: String?) -> DrydockError {
    guard let path, self.path == nil else { return self }
    return DrydockError(code, message, path: path, line: line, cause: cause)
  }

  /// Calls the body; its errors without a path are of this one.
  package static func locating<Value>(_ path: @autoclosure () -> String?, _ body: () throws -> Value) throws
    -> Value
  {
    do { return try body() } catch let error as DrydockError { throw error.at(path()) }
  }
}

extension DrydockError.Code {
  /// The exit code of a command that fails with this code.
  package var exitCode: Int32 {
    switch self {
    // 1: failed, nothing was changed.
    case .notFound, .notAContainer, .badPath, .permission, .noSpace, .io, .unreadable, .malformed,
      .unsupported,
      .invalidUse, .cryptography,
      .notWritable, .checkFailed, .nothingToUndo, .damagedState, .foreignState, .missing, .exists,
      .ambiguousArchive, .overlap, .stepFailed, .verifyFailed, .sql, .notBuilt, .notCaptured:
      1
    // 4: validation failed.
    case .badKey, .header, .mac, .noIdentity, .payload, .armor,
      .badConfiguration, .vaultLocked, .badVault, .ambiguous,
      .notAnArchive, .truncated, .damaged, .encrypted, .newerFormat, .unsafeName, .limit, .mismatch,
      .notInArchive, .missingArchive, .untrusted, .badSignature,
      .catalog, .unknownVersion, .unconfirmedVersion, .newer, .edited, .missingMigration, .outOfOrder,
      .released,
      .contradiction, .damagedHistory, .irreversible, .foreignSchema,
      .badFixture, .frozen:
      4
    // 5: locked, in use, or changed meanwhile.
    case .locked, .inUse, .notVisible, .changedMeanwhile, .interrupted: 5
    // 6: conflict.
    case .conflict: 6
    // 64: usage, as in sysexits.h.
    case .usage: 64
    }
  }
}
