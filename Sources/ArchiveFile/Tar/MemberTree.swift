import AgeEncryption

/// The names seen so far in a walk, to find what a hostile archive does with them: the same name twice, a file or
/// link used as a directory, a hard link to nothing.
///
/// It keeps 16 bytes of a SHA-256 for each name, so that a million names stay small and nobody can craft
/// collisions.
struct MemberTree {
  private struct Key: Hashable {
    let high, low: UInt64

    init(_ name: some Collection<UInt8>) throws {
      let bytes = try SHA256.hash(Array(name)).bytes
      high = bytes[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
      low = bytes[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }
  }

  private enum Use { case parent, directory, file, symbolicLink }

  private var uses: [Key: Use] = [:]
  /// Members of one directory follow one another: its ancestors need no second look.
  private var lastParent: [UInt8] = []

  /// Adds a validated member. Throws `DrydockError` `.unsafeName` when it does not fit what came before.
  ///
  /// - Parameter mayRepeat: whether a file of the same name may have come before.
  mutating func add(_ member: ArchiveMember, mayRepeat: Bool = false) throws {
    try addAncestors(of: member.name)
    let key = try Key(member.name)
    let use: Use
    switch member.kind {
    case .directory: use = .directory
    case .file: use = .file
    case .symbolicLink: use = .symbolicLink
    case .hardLink(let target):
      try MemberName.validate(target)
      guard let seen = uses[try Key(target)], seen == .file || seen == .symbolicLink else {
        throw MemberName.unsafe(
          member.name, "is a hard link to \"\(target.printable)\", which is no earlier file")
      }
      use = seen
    }
    switch uses.updateValue(use, forKey: key) {
    case nil: break
    case .parent? where use == .directory: break
    case .parent?: throw MemberName.unsafe(member.name, "is a directory of earlier members")
    case .file? where use == .file && mayRepeat: break
    default: throw MemberName.unsafe(member.name, "comes twice")
    }
  }

  private mutating func addAncestors(of name: [UInt8]) throws {
    guard let end = name.lastIndex(of: MemberName.slash) else { return }
    let parent = name[..<end]
    if parent.elementsEqual(lastParent) { return }
    var ancestor: ArraySlice<UInt8>? = parent
    while let path = ancestor {
      let key = try Key(path)
      switch uses[key] {
      case .file?, .symbolicLink?:
        throw MemberName.unsafe(name, "lies below \"\(Array(path).printable)\", which is no directory")
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
