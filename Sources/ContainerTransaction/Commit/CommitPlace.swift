import FileSystem

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

extension Commit {
  /// The deepest directory that everything that changes is in: it alone is built anew and exchanged, so that a commit
  /// costs what is beside the changes, not the whole container. The root, where a group changes with it, and where this
  /// user may not do so further down.
  func place(of changes: ChangeList) throws -> ContainerPath {
    guard !creates, changedGroups(changes).isEmpty else { return .root }
    var common: [[UInt8]]?
    for change in changes.changes {
      let stays = change.before?.type == .directory && change.after?.type == .directory
      let names = (stays ? change.path : change.path.parent).components
      common = common.map { Self.common($0, names) } ?? names
    }
    var place = ContainerPath(names: common ?? [])
    while !place.isRoot, try !mayExchange(place) { place = place.parent }
    return place
  }

  private static func common(_ left: [[UInt8]], _ right: [[UInt8]]) -> [[UInt8]] {
    zip(left, right).prefix { $0 == $1 }.map(\.0)
  }

  /// Whether this user may take a directory out of the one that it is in, and give that its time back.
  private func mayExchange(_ place: ContainerPath) throws -> Bool {
    let (live, user) = (staged.live, geteuid())
    // Of project quotas: nothing comes into a directory that counts for another project.
    guard try live.flags(of: place.parent)?.accepts(live.flags(of: place)) ?? true else { return false }
    if user == 0 { return true }
    return try live.status(place.parent)?.user == user && live.status(place)?.user == user
      && live.isWritable(place.parent) && live.isWritable(place)
  }
}

extension ContainerPath {
  fileprivate init(names: [[UInt8]]) { self = names.reduce(.root) { $0.appending(name: $1) } }
}
