import AppContainer
import Foundation

/// How a transaction is put in place.
public enum CommitWay: Sendable, Equatable, CustomStringConvertible {
  /// The whole new tree is exchanged for the old one in one system call: at every moment any program finds the container
  /// wholly old or wholly new.
  case exchange
  /// Path by path, inside the container, because an exchange cannot work there: every Drydock command finds it wholly old
  /// or wholly new, another program could see a mixture while it lasts.
  case inPlace(reason: String)

  /// Such as `in place: a file system is mounted at the container's root`.
  public var description: String {
    switch self {
    case .exchange: "by exchange"
    case .inPlace(let reason): "in place: \(reason)"
    }
  }
}

/// Which way a transaction may take.
public enum CommitPreference: String, Sendable, CaseIterable {
  /// By exchange where that works, else in place.
  case automatic
  /// By exchange, or not at all.
  case exchange
  /// In place, even where an exchange would work.
  case inPlace = "in-place"
}

/// Chooses the way of a commit, and with it the place of the state, by trying, before anything is staged.
struct CommitChoice {
  let container: Container
  let root: Directory
  let index: TreeIndex

  /// - Throws: ``TransactionError`` with code `notWritable` when neither way works. Nothing is left behind then.
  func make(_ preference: CommitPreference) throws -> (CommitWay, StateDirectory) {
    if preference == .inPlace {
      return try (.inPlace(reason: "it was asked for"), inside("it was asked for"))
    }
    do {
      return (.exchange, try beside())
    } catch let refusal as Refusal {
      guard preference == .automatic else {
        throw TransactionError(
          .notWritable,
          "\(refusal.reason), so that the change cannot be made in one step; nothing was changed",
          path: container.root, cause: refusal.cause)
      }
      return (.inPlace(reason: refusal.reason), try inside(refusal.reason))
    }
  }

  /// Why an exchange cannot work here.
  private struct Refusal: Error {
    var reason: String
    var cause: (any Error)?
  }

  private func inside(_ reason: String) throws -> StateDirectory {
    do {
      return try StateDirectory.create(for: container, .inside)
    } catch let error as ContainerError where error.code == .permission {
      throw TransactionError(
        .notWritable,
        "the change cannot be made: \(reason), and the container itself cannot be written; "
          + "run it as the container's owner, or as root", path: container.root, cause: error)
    }
  }

  /// The state beside the container, once everything that an exchange needs has been tried.
  private func beside() throws -> StateDirectory {
    let status = try root.status()
    if status.isMountRoot { throw Refusal(reason: "a file system is mounted at the container's root") }
    if root.isOverlay() {
      throw Refusal(reason: "directories of an overlay file system may be those of a lower layer")
    }
    if let mount = index.mounts.filter({ $0.inGroup.map { !container.hasGroup($0.id) } ?? true }).min() {
      throw Refusal(reason: "another file system is mounted inside the container, at \(mount)")
    }
    let state: StateDirectory
    do {
      state = try StateDirectory.create(for: container, .beside)
    } catch let error as ContainerError where error.code == .permission {
      throw Refusal(reason: "the directory that the container is in cannot be written", cause: error)
    }
    do {
      try check(status, state)
      return state
    } catch {
      state.removeIfUnused()
      throw error
    }
  }

  // MARK: Groups

  /// The groups that cannot change in the same transaction, which matters to one that changes them, each with the reason.
  func closedGroups(_ state: StateDirectory) throws -> [String: String] {
    var closed: [String: String] = [:]
    for group in root.groups { closed[group.id] = try obstacle(group.id, group.root, state) }
    return closed
  }

  private func obstacle(_ id: String, _ group: Directory, _ state: StateDirectory) throws -> String? {
    let status = try group.status()
    let own = try state.directory.status()
    guard status.mount == own.mount, status.device == own.device else {
      return "it is on another file system or mount than the container"
    }
    if state.place == .inside { return nil }
    if status.isMountRoot { return "a file system is mounted at its root" }
    if group.isOverlay() { return "directories of an overlay file system may be those of a lower layer" }
    if let mount = index.mounts.filter({ $0.inGroup?.id == id }).min() {
      return "another file system is mounted in it, at \(mount)"
    }
    guard try group.isWritable(.root) else { return "it cannot be written" }
    let above = try CommitRoot(group: id, at: group.path, tree: .root).parent
    guard try above.isWritable(.root) else { return "the directory that it is in cannot be written" }
    let parent = try above.status()
    let user = geteuid()
    if parent.mode & 0o1000 != 0, user != 0, status.user != user, parent.user != user {
      return "only its owner may move it in the directory that it is in"
    }
    return nil
  }

  private func check(_ status: FileStatus, _ state: StateDirectory) throws {
    let above = try state.directory.status()
    guard status.mount == above.mount else {
      throw Refusal(reason: "a file system is mounted at the container's root")
    }
    guard status.device == above.device else {
      throw Refusal(reason: "the container is on another file system than the directory it is in")
    }
    guard try root.isWritable(.root) else { throw Refusal(reason: "the container's root cannot be written") }
    let parent = try state.rootParent().status()
    let user = geteuid()
    if parent.mode & 0o1000 != 0, user != 0, status.user != user, parent.user != user {
      throw Refusal(reason: "only its owner may move the container in the directory that it is in")
    }
    try tryExchange(state)
  }

  /// Exchanges two directories, one of them with each owner and mode that directories of the container have.
  private func tryExchange(_ state: StateDirectory) throws {
    let (a, b): (ContainerPath, ContainerPath) = ("probe-a", "probe-b")
    // Among the stages, where a recovery removes whatever a kill leaves.
    let stages = try state.directory.directory(StateDirectory.stage)
    for name in [a, b] { try stages.createDirectories(name) }
    defer { for name in [a, b] { try? stages.removeDirectory(name) } }
    do {
      try stages.exchange(a, in: stages, with: b)
    } catch let error as ContainerError {
      throw Refusal(reason: "this file system cannot exchange two directories", cause: error)
    }
    // A root's with all it has; of the others owner, mode and the attributes that not everybody may set, each once.
    var modes: [FileMetadata: ContainerPath] = [:]
    for (path, status) in index.paths where status.type == .directory {
      let special = try root.attributeNames(of: path).contains { !$0.hasPrefix("user.") }
      let metadata = FileMetadata(
        mode: status.mode, user: status.user, group: status.group, modified: 0,
        attributes: special ? try root.attributes(path).filter { !$0.name.hasPrefix("user.") } : [])
      modes[metadata] = path
    }
    for (metadata, path) in modes {
      try stages.apply(metadata, to: a)
      guard var made = try stages.metadata(a) else { continue }
      made.modified = 0
      guard made == metadata else {
        throw Refusal(reason: "this user cannot reproduce the owner, mode or attributes of \(path)")
      }
    }
    for path in [.root] + container.groups.map(\.path) {
      guard let metadata = try root.metadata(path) else { continue }
      try stages.apply(metadata, to: b)
      guard try stages.metadata(b) == metadata else {
        let what = path.isRoot ? "the container's root" : "the root of the group \(path.nameString)"
        throw Refusal(reason: "this user cannot reproduce the owner, mode or attributes of \(what)")
      }
    }
  }
}
