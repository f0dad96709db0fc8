import AppContainer
import Cryptography
import DrydockErrors
import Formats
import Foundation

/// `drydock.json`, the first member of an archive: enough to list it.
public struct ArchiveHeader: Sendable, Codable, Equatable {
  /// The version of the format that this program writes.
  package static let currentFormat = 2
  package static let memberName = "drydock.json"
  /// A larger one is refused.
  package static let sizeLimit = 1 << 20

  /// Whether it needs other archives.
  public enum Kind: String, Sendable, Codable {
    /// It needs no other archive.
    case full
    /// It holds what changed since its parent, which is needed to read it.
    case incremental
  }

  /// The version of the archive format.
  public var format: Int
  /// Whether it needs other archives.
  public var kind: Kind
  /// Its ID.
  public var archive: ArchiveID
  /// Bundle id or package, and which instance of it.
  public var app: String, instance: String
  /// What is where in the container.
  public var layout: ContainerLayout
  /// The ids of the groups that it holds, sorted; nil when the container had none.
  public var groups: [String]?
  /// The number of the last migration that was applied; nil when it is not known.
  public var schemaVersion: Int?
  /// When the capture began, UTC: `2026-11-20T10:15:00Z`.
  public var time: String
  /// The program that wrote it, with its version.
  public var tool: String
  /// The machine's boot session in which it was captured, ``MachineIdentity/session``.
  package var session: String?
  /// The beginnings of the ids, 8 digits or more, of the archives of the same app and instance that the repository had with a
  /// later time: a clock was wrong, and this archive is newer than all of them. Nil when there was none.
  package var follows: [String]?
  /// The same of archives with the same time; only a full one names them.
  package var followsOfSecond: [String]?
  /// All archives that it names as older, but for its parent.
  package var older: [String] { (follows ?? []) + (followsOfSecond ?? []) }
  /// The archive whose manifest an incremental one's is the difference to; nil for a full one.
  public var parent: ArchiveID?
  /// The archive whose snapshot this one is a copy of, when it was exported.
  public var exportedFrom: ArchiveID?
  /// The archive in whose place this one is, with the same snapshot, since a compaction.
  public var compactedFrom: ArchiveID?

  /// The time in nanoseconds since 1970, which is that of the members that are not paths of the container.
  package var captured: Int64? {
    (try? Date(time, strategy: .iso8601)).map { Int64($0.timeIntervalSince1970) * 1_000_000_000 }
  }

  package func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    return [UInt8](try encoder.encode(self)) + [UInt8(ascii: "\n")]
  }

  /// Reads a header.
  ///
  /// - Throws: `DrydockError`: `newerFormat`, `damaged`.
  package init(decoding bytes: [UInt8], path: String) throws {
    struct Format: Codable { var format: Int }
    // The decoder would also accept UTF-16 and UTF-32, in which all ASCII has zeros, and a byte-order mark.
    guard !bytes.contains(0), !bytes.starts(with: "\u{FEFF}".utf8),
      String(validating: bytes, as: UTF8.self) != nil
    else { throw DrydockError(.damaged, "its \(Self.memberName) is not in UTF-8", path: path) }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      let format = try decoder.decode(Format.self, from: Data(bytes)).format
      guard format <= Self.currentFormat else {
        throw DrydockError(
          .newerFormat,
          "written in format \(format), and this version reads format \(Self.currentFormat); "
            + "use a newer Drydock", path: path)
      }
      guard format == Self.currentFormat else {
        throw DrydockError(
          .unsupported,
          "written in format \(format), which only versions before 1.0 have; read it with the version that wrote it",
          path: path)
      }
      self = try decoder.decode(ArchiveHeader.self, from: Data(bytes))
      // Archives are sorted and chosen by it as text.
      guard UTCTime.isWhole(time) else {
        throw DrydockError(.damaged, "its \(Self.memberName) has no time in UTC", path: path)
      }
    } catch let error as DecodingError {
      throw DrydockError(.damaged, "its \(Self.memberName) cannot be read", path: path, cause: error)
    }
    guard (kind == .incremental) == (parent != nil), parent != archive else {
      throw DrydockError(.damaged, "its \(Self.memberName) has no valid parent", path: path)
    }
    // Times are used as nanoseconds since 1970.
    guard ("1970"..<"2200").contains(String(time.prefix(4))) else {
      throw DrydockError(.damaged, "its \(Self.memberName) has an invalid time", path: path)
    }
    let names = groups ?? []
    guard groups?.isEmpty != true, Set(names).count == names.count,
      names.allSatisfy(ContainerGroup.isID)
    else {
      throw DrydockError(.damaged, "its \(Self.memberName) has an invalid id in `groups`", path: path)
    }
    let areIDs = older.allSatisfy { (8...32).contains($0.count) && ArchiveID.isBeginning($0.lowercased()) }
    guard areIDs, follows?.isEmpty != true, followsOfSecond?.isEmpty != true else {
      throw DrydockError(.damaged, "its \(Self.memberName) has an invalid id in `follows`", path: path)
    }
  }

  package init(
    archive: ArchiveID, app: String, instance: String, layout: ContainerLayout, groups: [String] = [],
    schemaVersion: Int?, time: String, tool: String = DrydockVersion.tool,
    parent: ArchiveID? = nil
  ) {
    (format, kind, self.parent) = (Self.currentFormat, parent == nil ? .full : .incremental, parent)
    (self.archive, self.app, self.instance, self.layout) = (archive, app, instance, layout)
    self.groups = groups.isEmpty ? nil : groups
    (self.schemaVersion, self.time, self.tool) = (schemaVersion, time, tool)
  }
}

/// The random id of an archive, 128 bits: extents and parents refer to it.
public struct ArchiveID: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The ID as text.
  public let description: String

  package static func new() throws -> ArchiveID {
    ArchiveID(unchecked: try RandomBytes.make(16).hex)
  }

  package init(unchecked text: String) { description = text }

  /// Nil for a text that is not an id.
  package init?(_ text: String) {
    guard Self.isWellFormed(text) else { return nil }
    description = text
  }

  private static func isWellFormed(_ text: String) -> Bool { text.utf8.count == 32 && isBeginning(text) }

  /// Whether a text can be the beginning of one.
  package static func isBeginning(_ text: String) -> Bool { text.utf8.allSatisfy(\.isLowercaseHexDigit) }

  /// The first 8 digits, as in file names.
  public var short: String { String(description.prefix(8)) }

  public init(from decoder: any Decoder) throws {
    description = try decoder.text("an archive id", Self.isWellFormed)
  }

  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}
