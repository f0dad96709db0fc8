/// One member of an archive: everything that its tar header says.
///
/// Names are raw bytes and need not be UTF-8. They are relative, with `/` between components, and have no `/`
/// at the end, directories included.
package struct ArchiveMember: Hashable, Sendable {
  /// What a member is.
  package enum Kind: Hashable, Sendable {
    /// A regular file with that many bytes of content.
    case file(size: UInt64)
    /// A directory.
    case directory
    /// A symbolic link; the target is any bytes but NUL.
    case symbolicLink(target: [UInt8])
    /// A further name of an earlier member's file.
    case hardLink(target: [UInt8])
  }

  /// An extended attribute.
  package struct Attribute: Hashable, Sendable {
    /// The name, with its namespace, such as `user.comment`.
    package var name: [UInt8]
    /// The value: any bytes.
    package var value: [UInt8]

    /// Makes an attribute.
    package init(name: [UInt8], value: [UInt8]) {
      self.name = name
      self.value = value
    }
  }

  /// The name.
  package var name: [UInt8]
  /// What it is.
  package var kind: Kind
  /// Permission bits, set-user-id, set-group-id and sticky included (07777).
  package var mode: UInt16
  /// Modification time, nanoseconds since 1970.
  package var modified: Int64
  /// The owner's number.
  package var userID: UInt32
  /// The group's number.
  package var groupID: UInt32
  /// Extended attributes. Reading gives them sorted by name.
  package var attributes: [Attribute]
  /// The inode flag `nodump`, which asks backup programs to pass the path over.
  package var isNoDump: Bool

  /// Makes a member.
  package init(
    name: [UInt8], kind: Kind, mode: UInt16, modified: Int64, userID: UInt32 = 0, groupID: UInt32 = 0,
    attributes: [Attribute] = [], isNoDump: Bool = false
  ) {
    self.name = name
    self.kind = kind
    self.mode = mode
    self.modified = modified
    self.userID = userID
    self.groupID = groupID
    self.attributes = attributes
    self.isNoDump = isNoDump
  }

  /// A regular file, by a UTF-8 name.
  package static func file(_ name: String, size: UInt64, mode: UInt16 = 0o644, modified: Int64) -> Self {
    Self(name: Array(name.utf8), kind: .file(size: size), mode: mode, modified: modified)
  }

  /// The bytes of content: a file's size, 0 for everything else.
  package var contentSize: UInt64 {
    if case .file(let size) = kind { size } else { 0 }
  }

  /// The name for messages, with odd bytes escaped.
  package var printableName: String { name.printable }
}
