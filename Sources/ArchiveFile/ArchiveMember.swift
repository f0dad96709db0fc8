import Cryptography
import DrydockErrors
import FileSystem

/// One member of an archive: all fields of its tar header.
///
/// Names are raw bytes and need not be UTF-8. They are relative, with `/` between components, and have no `/`
/// at the end, directories included.
package struct ArchiveMember: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// A regular file with that many bytes of content.
    case file(size: UInt64)
    case directory
    /// The target is any bytes but NUL.
    case symbolicLink(target: [UInt8])
    /// A hard link to an earlier member's file.
    case hardLink(target: [UInt8])
    /// A device, FIFO or socket, which only foreign archives have.
    case special
  }

  package var name: [UInt8]
  package var kind: Kind
  /// Reading gives attributes sorted by the bytes of their names.
  package var metadata: FileMetadata

  package init(name: [UInt8], kind: Kind, metadata: FileMetadata) {
    (self.name, self.kind, self.metadata) = (name, kind, metadata)
  }

  /// A regular file, by a UTF-8 name.
  package static func file(_ name: String, size: UInt64, mode: UInt16 = 0o644, modified: Int64) -> Self {
    Self(
      name: Array(name.utf8), kind: .file(size: size),
      metadata: FileMetadata(mode: mode, user: 0, group: 0, modified: modified, attributes: []))
  }

  /// The bytes of content: a file's size, 0 for everything else.
  package var contentSize: UInt64 {
    if case .file(let size) = kind { size } else { 0 }
  }

  package var printableName: String { name.printable }
}

package enum MemberName {
  package static let maximumLength = 65_536
  /// The most components: a walk holds a directory open for each, and a process has about a thousand descriptors.
  package static let maximumDepth = 512

  /// Throws `DrydockError` (`.unsafeName`, or `.limit` when too long) unless the name is relative and clean: not
  /// empty, no leading or trailing `/`, no NUL, no component that is empty, `.` or `..`.
  package static func validate(_ name: [UInt8]) throws {
    guard !name.isEmpty else { throw unsafe(name, "is empty") }
    guard name.count <= maximumLength else {
      throw DrydockError(
        .limit, "a member's name has \(name.count) bytes, more than \(maximumLength); leave that path out")
    }
    guard name.first != slash else { throw unsafe(name, "is absolute") }
    guard !name.contains(0) else { throw unsafe(name, "has a NUL byte") }
    let depth = name.count { $0 == slash } + 1
    guard depth <= maximumDepth else {
      throw DrydockError(
        .limit, "a member is \(depth) directories deep, more than \(maximumDepth); leave that path out")
    }
    var rest = name[...]
    while true {
      let component = rest.prefix { $0 != slash }
      if component.isEmpty { throw unsafe(name, "has an empty component") }
      if component.count <= 2, component.allSatisfy({ $0 == dot }) {
        throw unsafe(name, "has the component \"\(component.count == 1 ? "." : "..")\"")
      }
      if component.endIndex == name.endIndex { return }
      rest = name[(component.endIndex + 1)...]
    }
  }

  static let slash = UInt8(ascii: "/")
  private static let dot = UInt8(ascii: ".")

  static func unsafe(_ name: [UInt8], _ why: String) -> DrydockError {
    DrydockError(
      .unsafeName,
      "the member name \"\(name.printable)\" \(why); such an archive is neither written nor unpacked"
    )
  }
}

/// The names seen so far in a walk, to find what a hostile archive does with them: the same name twice, a file or
/// link used as a directory, a hard link to nothing.
///
/// It keeps 16 bytes of a SHA-256 for each name, so that a million names stay small and collisions cannot be crafted.
struct MemberTree {
  private enum Use { case parent, directory, file, symbolicLink }

  private var uses: [SHA256.Half: Use] = [:]
  /// Members of one directory follow one another: its ancestors are checked once.
  private var lastParent: [UInt8] = []

  /// Adds a validated member. Throws `DrydockError` `.unsafeName` when it does not fit what came before.
  ///
  /// - Parameter mayRepeat: whether a file of the same name may have come before.
  mutating func add(_ member: ArchiveMember, mayRepeat: Bool = false) throws {
    try addAncestors(of: member.name)
    let key = try SHA256.hash(member.name).firstHalf
    let use: Use
    switch member.kind {
    case .directory: use = .directory
    case .file, .special: use = .file
    case .symbolicLink: use = .symbolicLink
    case .hardLink(let target):
      try MemberName.validate(target)
      guard let seen = uses[try SHA256.hash(target).firstHalf], seen == .file || seen == .symbolicLink else {
        throw MemberName.unsafe(
          member.name, "is a hard link to \"\(target.printable)\", which is not an earlier file")
      }
      use = seen
    }
    switch uses.updateValue(use, forKey: key) {
    case nil: break
    case .parent? where use == .directory: break
    case .parent?: throw MemberName.unsafe(member.name, "is a directory of earlier members")
    case .file? where use == .file && mayRepeat: break
    default: throw MemberName.unsafe(member.name, "occurs twice")
    }
  }

  private mutating func addAncestors(of name: [UInt8]) throws {
    guard let end = name.lastIndex(of: MemberName.slash) else { return }
    let parent = name[..<end]
    if parent.elementsEqual(lastParent) { return }
    var ancestor: ArraySlice<UInt8>? = parent
    while let path = ancestor {
      let key = try SHA256.hash(Array(path)).firstHalf
      switch uses[key] {
      case .file?, .symbolicLink?:
        throw MemberName.unsafe(name, "lies below \"\(Array(path).printable)\", which is not a directory")
      case .parent?: ancestor = nil  // Its own ancestors were added with it.
      case .directory?: ancestor = nil
      case nil:
        uses[key] = .parent
        ancestor = path.lastIndex(of: MemberName.slash).map { path[..<$0] }
      }
    }
    lastParent = Array(parent)
  }
}
