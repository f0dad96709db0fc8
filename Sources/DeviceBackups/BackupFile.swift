import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// A path of an app in a device backup.
struct BackupFile: Sendable {
  enum Kind: Sendable, Equatable {
    case file(size: UInt64)
    case directory
    case symbolicLink(target: [UInt8])
  }

  /// The name of its content: 40 hexadecimal digits.
  var id: String
  var path: ContainerPath
  var kind: Kind
  var metadata: FileMetadata
  /// What its content is encrypted with; nil in a backup that is not encrypted, and for an empty file.
  var key: ClassWrappedKey?

  var size: UInt64 { if case .file(let size) = kind { size } else { 0 } }

  /// What the column `flags` says.
  private static let (fileFlag, directoryFlag, linkFlag): (Int64, Int64, Int64) = (1, 2, 4)

  /// Reads a row of the index, whose record is a keyed archive of one `MBFile`.
  ///
  /// - Throws: `DrydockError`: `damaged` or `unsafeName`, with the path; nil for a kind of path that apps do not have.
  init?(_ row: BackupIndex.Row) throws {
    do {
      path = try ContainerPath(bytes: row.path)
      guard path.components.count <= 510 else { throw DrydockError.badPath("is too deep") }
      if let first = path.components.first,
        path.isInside(.groups) || first == ContainerPath.groups.bytes
          || first == ContainerPath.stateDirectory.bytes
      {
        throw DrydockError.badPath("has a name that Drydock uses itself")
      }
    } catch let error as DrydockError {
      throw DrydockError(
        .unsafeName, "the backup has a path that is not imported: \(error.message)",
        path: row.place)
    }
    guard try HashFunction.sha1.hash(Array(row.domain.utf8) + [UInt8(ascii: "-")] + row.path).hex == row.id
    else {
      throw BackupIndex.damaged("the name of its content is not the hash of its path", row.place)
    }
    id = row.id
    let record = try Record(row)
    switch row.flags {
    case Self.fileFlag: kind = .file(size: try record.number("Size"))
    case Self.directoryFlag: kind = .directory
    case Self.linkFlag:
      guard case .string(let target)? = record.fields["Target"], !target.isEmpty, !target.utf8.contains(0)
      else { throw BackupIndex.damaged("it is a link without a target", row.place) }
      kind = .symbolicLink(target: Array(target.utf8))
    default: return nil
    }
    metadata = try record.metadata()
    key = try record.key()
  }
}

extension DrydockError {
  fileprivate static func badPath(_ why: String) -> DrydockError { DrydockError(.badPath, "it \(why)") }
}

/// The fields of an `MBFile`.
private struct Record {
  let fields: PropertyListDictionary
  private let row: BackupIndex.Row

  private static let options: KeyedArchiveOptions = {
    var options = KeyedArchiveOptions()
    options.classes["MBFile"] = KeyedArchiveOptions.ClassRule()
    return options
  }()

  init(_ row: BackupIndex.Row) throws {
    self.row = row
    do {
      guard case .dictionary(let fields) = try KeyedArchiveReader.read(row.record, Self.options) else {
        throw BackupIndex.damaged("its record is not an MBFile", row.place)
      }
      self.fields = fields
    } catch let error as DrydockError where error.code != .damaged {
      throw BackupIndex.damaged("its record cannot be read (\(error.message))", row.place)
    }
  }

  func number(_ name: String) throws -> UInt64 {
    switch fields[name] {
    case .integer(let number)? where number >= 0: return UInt64(number)
    case .unsigned(let number)?: return number
    default: throw BackupIndex.damaged("`\(name)` of its record is not a number", row.place)
    }
  }

  func metadata() throws -> FileMetadata {
    guard case .integer(let modified)? = fields["LastModified"],
      case let (nanoseconds, overflow) = modified.multipliedReportingOverflow(by: 1_000_000_000), !overflow
    else { throw BackupIndex.damaged("`LastModified` of its record is not a time", row.place) }
    // The owner is a user of the device. Set-id bits have no use in an app's data.
    var metadata = FileMetadata(
      mode: UInt16(try number("Mode") & 0o1777), user: geteuid(), group: getegid(), modified: nanoseconds,
      attributes: try attributes())
    if case .integer(let number)? = fields["ProtectionClass"], let own = ProtectionClass(number: number) {
      metadata.protection = own
    }
    return metadata
  }

  private func attributes() throws -> [ExtendedAttribute] {
    guard let field = fields["ExtendedAttributes"], !field.isNull else { return [] }
    guard case .data(let bytes) = field, let list = try? PropertyListDocument(bytes: bytes),
      case .dictionary(let values) = list.value
    else { throw BackupIndex.damaged("`ExtendedAttributes` of its record is not a property list", row.place) }
    return try values.sorted().map { name, value in
      guard case .data(let bytes) = value, !name.isEmpty, !name.utf8.contains(0) else {
        throw BackupIndex.damaged("an extended attribute of its record is not data", row.place)
      }
      return ExtendedAttribute(name: name, value: bytes).named
    }
  }

  func key() throws -> ClassWrappedKey? {
    guard let field = fields["EncryptionKey"], !field.isNull else { return nil }
    guard case .data(let bytes) = field, let key = ClassWrappedKey(bytes) else {
      throw BackupIndex.damaged("`EncryptionKey` of its record is not a key", row.place)
    }
    return key
  }
}

extension ProtectionClass {
  /// A class by Apple's number; nil for none, as directories have it, and for an unknown one.
  init?(number: Int64) {
    switch number {
    case 1: self = .complete
    case 2: self = .completeUnlessOpen
    case 3: self = .completeUntilFirstUserAuthentication
    case 4: self = .none
    case 7: self = .completeWhenUserInactive
    default: return nil
    }
  }
}
