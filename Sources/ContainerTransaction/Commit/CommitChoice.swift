import AppContainer
import DrydockErrors
import FileSystem
import Foundation

/// Chooses the strategy of a commit, and with it the place of the state, by trying, before anything is staged.
struct CommitChoice {
  let container: Container
  let root: Directory
  let index: TreeIndex

  /// - Parameter wanted: the place of the state; nil for beside the container where that works, else in it.
  /// - Returns: the state, beside the container for an exchange; and why it is inside otherwise.
  /// - Throws: ``DrydockError`` with code `notWritable` when neither strategy works. It leaves nothing then.
  func make(_ wanted: StateDirectory.Place?) throws -> (state: StateDirectory, reason: String?) {
    if try root.status().isImmutable {
      throw DrydockError(.notWritable, "the container's root \(Self.immutable)", path: container.root)
    }
    var reason = "it was requested"
    if wanted != .inside {
      let found = try beside()
      if let state = found.state { return (state, nil) }
      reason = found.reason
      guard wanted == nil else {
        // What the system said, such as `Permission denied`.
        let cause = found.cause?.cause.map { " (\($0))" } ?? ""
        throw DrydockError(
          .notWritable, "the change cannot be made in one step: \(reason)\(cause); nothing was changed",
          path: container.root, cause: found.cause)
      }
    }
    return (try inside(reason), reason)
  }

  /// What an immutable path cannot do, and what to do about it.
  static let immutable =
    "is immutable or append-only (lsattr shows i or a); nothing was changed, clear that with chattr and run it again"

  private func inside(_ reason: String) throws -> StateDirectory {
    do {
      let state = try StateDirectory.create(for: container, .inside)
      _ = state.endProjectInheritance()
      return state
    } catch let error as DrydockError where error.code == .permission {
      throw DrydockError(
        .notWritable,
        "the change cannot be made: \(reason), and the container itself cannot be written; "
          + DrydockError.permissionAdvice, path: container.root, cause: error)
    }
  }

  /// The state beside the container, once everything that an exchange needs has been tried; nil with the reason why there
  /// can be none, and the error behind that.
  private func beside() throws -> (state: StateDirectory?, reason: String, cause: DrydockError?) {
    let isOwn = { (path: ContainerPath) in path.inGroup.map { !container.hasGroup($0.id) } ?? true }
    if let reason = try contentObstacle("the container", root, isOwn) { return (nil, reason, nil) }
    let state: StateDirectory
    do {
      state = try StateDirectory.create(for: container, .beside)
    } catch let error as DrydockError where error.code == .permission {
      return (nil, "the container's parent directory cannot be written", error)
    }
    do {
      var cause: DrydockError?
      guard let reason = try obstacle(state, &cause) else { return (state, "", nil) }
      state.removeIfUnused()
      return (nil, reason, cause)
    } catch {
      state.removeIfUnused()
      throw error
    }
  }

  /// Why a group cannot change in one step with the container; nil when it can.
  func obstacle(toChanging group: ContainerGroup, with state: StateDirectory) throws -> String? {
    let (id, group) = (group.id, try root.directory(group.path))
    let status = try group.status()
    let own = try state.directory.status()
    guard status.mount == own.mount, status.device == own.device else {
      return "it is on another file system or mount than the container"
    }
    if state.place == .inside { return nil }
    if status.isImmutable { return "its root is immutable or append-only" }
    if let reason = try contentObstacle("the group", group, { $0.inGroup?.id == id }) { return reason }
    let above = try Directory(ContainerPath.split(group.path).directory)
    guard try above.isWritable(.root) else { return "its parent directory cannot be written" }
    return try parentObstacle("the group", group, above)
  }

  /// Why a root cannot be exchanged with all that is in it.
  private func contentObstacle(
    _ name: String, _ root: Directory, _ isPart: (ContainerPath) -> Bool
  ) throws -> String? {
    if try root.status().isMountRoot { return "a file system is mounted at \(name)'s root" }
    if root.isOverlay() { return "directories of an overlay file system may belong to a lower layer" }
    if let mount = index.mounts.filter(isPart).min() {
      return "another file system is mounted inside \(name), at \(mount)"
    }
    // A scratch container is mounted nowhere else.
    if !container.isScratch, let place = try root.otherMount() {
      return "\(name), or a directory in it, is also mounted at \(place)"
    }
    return try linkObstacle(root, isPart)
  }

  /// Why this user cannot move a root in the directory above it.
  private func parentObstacle(_ name: String, _ root: Directory, _ above: Directory) throws -> String? {
    guard try root.isWritable(.root) else { return "\(name)'s root cannot be written" }
    let (status, parent, user) = (try root.status(), try above.status(), geteuid())
    if parent.isImmutable { return "\(name)'s parent directory is immutable or append-only" }
    // Of project quotas: nothing comes into a directory that counts for another project.
    if above.flags()?.accepts(root.flags()) == false {
      return "\(name)'s parent directory counts for another project"
    }
    if parent.mode & 0o1000 != 0, user != 0, status.user != user, parent.user != user {
      return "only its owner may move \(name) in its parent directory"
    }
    return nil
  }

  private func obstacle(_ state: StateDirectory, _ cause: inout DrydockError?) throws -> String? {
    let (status, own) = (try root.status(), try state.directory.status())
    if status.mount != own.mount { return "a file system is mounted at the container's root" }
    if status.device != own.device {
      return "the container is on another file system than its parent directory"
    }
    if let reason = try parentObstacle("the container", root, state.rootParent()) { return reason }
    if !state.endProjectInheritance() {
      return "the container's parent directory counts for another project"
    }
    return try exchangeObstacle(state, &cause)
  }

  /// Exchanges two directories, one of them with each owner and mode that directories of the container have.
  private func exchangeObstacle(_ state: StateDirectory, _ cause: inout DrydockError?) throws -> String? {
    let (a, b): (ContainerPath, ContainerPath) = ("probe-a", "probe-b")
    // Among the stages, where a recovery removes whatever a kill leaves.
    let stages = try state.directory.directory(StateDirectory.stage)
    for name in [a, b] { try stages.createDirectories(name) }
    // What is left of it is removed with the next transaction's leftovers.
    defer { for name in [a, b] { try? stages.removeDirectory(name) } }
    do {
      try stages.exchange(a, in: stages, with: b)
    } catch let error as DrydockError {
      cause = error
      return "this file system cannot exchange two directories"
    }
    // A root's with all it has; of the others owner, mode, flags and the attributes that not everybody may set, each once.
    var kinds: [NodeRecord: ContainerPath] = [:]
    for (path, status) in index where status.type == .directory {
      let special = try root.attributeNames(of: path).contains { !$0.hasPrefix("user.") }
      let metadata = FileMetadata(
        mode: status.mode, user: status.user, group: status.group, modified: 0,
        attributes: special ? try root.attributes(path).filter { !$0.name.hasPrefix("user.") } : [])
      let flags = try root.directory(path).flags()
      kinds[NodeRecord(type: .directory, metadata: metadata, size: 0, flags: flags)] = path
    }
    let refusal = "this user cannot reproduce the owner, mode, flags or attributes of"
    for (kind, path) in kinds where try !stages.reproduces(kind, at: a, withTime: false) {
      return "\(refusal) \(path)"
    }
    for path in [.root] + container.groups.map(\.path) {
      guard let metadata = try root.metadata(path) else { continue }
      let own = NodeRecord(type: .directory, metadata: metadata, size: 0, flags: try root.flags(of: path))
      if try stages.reproduces(own, at: b, withTime: true) { continue }
      return path.isRoot
        ? "\(refusal) the container's root" : "\(refusal) the root of the group \(path.nameString)"
    }
    return nil
  }

  /// Why not all files of a root can be linked into a new tree, and the old tree removed; found out by looking alone.
  private func linkObstacle(_ root: Directory, _ isPart: (ContainerPath) -> Bool) throws -> String? {
    let (device, user) = (try root.status().device, geteuid())
    let protectsOthers = user != 0 && Self.protectsHardLinks
    lazy var limit = root.linkLimit
    var names: [FileIdentity: UInt64] = [:]
    for (path, status) in index where isPart(path) {
      if status.isImmutable { return "\(path) is immutable or append-only (chattr +i, +a)" }
      // Each subvolume of a mount has another device.
      if status.device != device { return "\(path) is in another subvolume" }
      if protectsOthers, status.user != user, status.type != .directory, try !mayLink(path, status) {
        return "this user may not link \(path), which belongs to another user"
      }
      // Each of its names in the container is linked once more. Any file system allows a hundred.
      guard status.links > 100 else { continue }
      names[status.identity, default: 0] += 1
      if status.links + names[status.identity, default: 0] > limit {
        return "\(path) has as many hard links as this file system may allow"
      }
    }
    return nil
  }

  /// Whether Linux lets this user link another one's file: a plain one that he could write anyway.
  private func mayLink(_ path: ContainerPath, _ status: FileStatus) throws -> Bool {
    try status.type == .file && status.mode & 0o4000 == 0 && status.mode & 0o2010 != 0o2010
      && root.isReadableAndWritable(path)
  }

  private static var protectsHardLinks: Bool {
    #if os(Linux)
      let setting = try? String(contentsOfFile: "/proc/sys/fs/protected_hardlinks", encoding: .utf8)
      return setting?.hasPrefix("0") != true
    #else
      return false
    #endif
  }
}

extension Directory {
  /// Whether this user can give a directory below all of it; found out by trying.
  fileprivate func reproduces(
    _ wanted: NodeRecord, at path: ContainerPath, withTime: Bool
  ) throws -> Bool {
    if let flags = wanted.flags, try !setFlags(flags, of: path) { return false }
    try apply(wanted.metadata, to: path)
    guard var made = try metadata(path) else { return true }
    if !withTime { made.modified = wanted.metadata.modified }
    return made == wanted.metadata
  }
}

extension StateDirectory {
  /// What is made in the state, and moved into it, is of any project (quotas): what a container's directories hand
  /// down is set on what goes there.
  ///
  /// - Returns: false where this user cannot say so.
  func endProjectInheritance() -> Bool {
    let folders = [Self.stage, Self.undo, Self.conflict].compactMap { try? directory.directory($0) }
    return ([directory] + folders).allSatisfy { folder in
      guard let flags = folder.flags(), flags.hasProjectInheritance else { return true }
      return folder.setFlags(flags.withoutProjectInheritance)
    }
  }
}
