import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// Refuses a container that is in use, and keeps its databases locked while it is changed.
struct UseGuard {
  /// Exclusive locks on every database of the container, by main file.
  let locks: [ContainerPath: DatabaseLock]
  /// What could not be seen; nil when everything was.
  let unseen: UnseenProcesses?

  /// - Parameters:
  ///   - own: other directories that Drydock itself has open.
  ///   - index: the container as it is now.
  ///   - requiresVisible: refuses where a process may have the container open without being seen.
  /// - Throws: ``DrydockError`` with code `inUse`, naming each process and path; `notVisible`.
  init(
    _ container: Container, root: Directory, own: [Directory], index: TreeIndex, requiresVisible: Bool = false
  ) throws {
    var roots = [try root.status().identity: ContainerPath.root]
    for group in root.groups { roots[try group.root.status().identity] = .group(group.id) }
    let known = [root] + root.groups.map(\.root) + own
    let search = OpenFileSearch(
      inodes: container.isScratch ? [:] : roots, tree: container.isScratch ? nil : InodePaths(index),
      own: Set(known.map(\.descriptor.rawValue)), owner: try Self.owner(root.status())
    ).run()
    guard search.found.isEmpty else {
      let advice =
        search.found.allSatisfy(\.isWorkingDirectory) ? "leave that directory" : "close it"
      throw DrydockError(
        .inUse, "in use: \(search.found.shown); \(advice) and run it again", path: container.root)
    }
    unseen = search.unseen.isEmpty ? nil : search.unseen
    if requiresVisible, let unseen {
      throw DrydockError(
        .notVisible,
        "not all processes can be seen: \(unseen.description); run this as root and outside of "
          + "containers", path: container.root)
    }
    var locks: [ContainerPath: DatabaseLock] = [:]
    let units = try index.databaseCandidates(named: root.databases).compactMap { path in
      try root.status(path).flatMap { try root.databaseUnit(path, status: $0) }.map { (path, $0) }
    }
    try requireOpenFiles(units.count, for: "databases, which are kept locked", path: container.root)
    for (path, unit) in units {
      guard let lock = try Self.lock(unit.main, in: root) else {
        throw DrydockError(
          .inUse, "in use: another program holds SQLite's lock on \(path); close it and run it again",
          path: container.root)
      }
      locks[path] = lock
    }
    self.locks = locks
  }

  /// The only user whose processes may be an app that changes the container: nobody else may write there, except for root,
  /// whose services are not the app. Nil when everybody may.
  private static func owner(_ status: FileStatus) -> UInt32? { status.mode & 0o022 == 0 ? status.user : nil }

  /// As with open files: a program that is just being started holds this process's locks for a moment, too.
  static func lock(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    for _ in 0..<3 {
      if let lock = try DatabaseLock.acquire(main, in: root) { return lock }
      Thread.sleep(forTimeInterval: 0.05)
    }
    return try DatabaseLock.acquire(main, in: root)
  }
}

package struct OpenFile: Sendable, Hashable, CustomStringConvertible {
  package var process: Int32
  package var processName: String
  package var path: ContainerPath
  package var mode: String
  static let workingDirectory = "its working directory"
  var isWorkingDirectory: Bool { mode == Self.workingDirectory }
  /// Whether the process is a program that this one is just starting: a copy of this process, with all its descriptors.
  var isStarting = false

  /// Such as `process 71 (notes) has Documents/database.sqlite open`.
  package var description: String {
    let place = path.isRoot ? "the container's directory" : path.description
    return switch mode {
    case "open": "process \(process) (\(processName)) has \(place) open"
    case "mapped": "process \(process) (\(processName)) has \(place) mapped into memory"
    default: "process \(process) (\(processName)) has \(place) as \(mode)"
    }
  }
}

extension [OpenFile] {
  var shown: String { listed(5, separator: "; ") }
}

/// The processes of this machine, as far as the system shows them.
enum ProcessTable {}

/// Looks through all processes for open files, mappings and working directories in a container. By inode, not by
/// name: a container bind-mounted elsewhere is the same container.
struct OpenFileSearch {
  /// The inodes, with a path that leads to each; none in a scratch container, which no other process uses.
  let inodes: [FileIdentity: ContainerPath]
  /// The inodes of a whole tree.
  var tree: InodePaths?
  /// Descriptors of this process that are Drydock's own.
  let own: Set<Int32>
  /// The only user, besides root, whose processes may use what is looked for; nil when all may.
  var owner: UInt32?

  /// The path of an inode; nil for one that is not looked for.
  func path(of identity: FileIdentity) -> ContainerPath? { inodes[identity] ?? tree?[identity] }

  /// Whether an inode is looked for, which takes no search for its path.
  func contains(_ identity: FileIdentity) -> Bool {
    inodes[identity] != nil || tree?.contains(identity) == true
  }

  typealias Result = (found: [OpenFile], unseen: UnseenProcesses)

  func run() -> Result {
    if inodes.isEmpty { return ([], UnseenProcesses()) }
    return Self.decided {
      let processes = ProcessTable.identifiers()
      var result = (found: [OpenFile](), unseen: UnseenProcesses.ofThisMachine(processes))
      search(processes, &result)
      return result
    }
  }

  /// So many looks in a row show that a file is really open.
  private static let enoughLooks = 4
  /// Then what is found counts in any case.
  static let mostLooks = 400

  /// Repeats a look until what is found is really open.
  ///
  /// A program that another thread of this process is just starting holds copies of all descriptors until it runs, which
  /// takes long on a busy machine; and another Drydock command that tries for the lock has the root open for a moment. So
  /// only what the same process still has open a little later counts.
  static func decided(pausing seconds: Double = 0.05, _ look: () -> Result) -> Result {
    // How often in a row each was found, by process.
    var counts: [Int32: [ContainerPath: Int]] = [:]
    var result = look()
    for _ in 1..<mostLooks where !result.found.isEmpty {
      var now: [Int32: [ContainerPath: Int]] = [:]
      for file in result.found {
        let before = counts[file.process]?[file.path] ?? 0
        now[file.process, default: [:]][file.path] = file.isStarting ? 0 : before + 1
      }
      counts = now
      if counts.values.contains(where: { $0.values.contains { $0 >= enoughLooks } }) { break }
      Thread.sleep(forTimeInterval: seconds)
      result = look()
    }
    return result
  }
}

/// The files that processes had mapped into memory at one moment so that what they write changes the file, under no lock and without
/// a time that shows each change.
package struct FilesMappedForWriting {
  /// The processes, by the lower halves of inodes' numbers: some file systems show other devices there.
  private let candidates: [UInt32: Set<Int32>] = Self.candidates()

  package init() {}

  /// Whether a file may be one of them.
  package func mayHave(_ identity: FileIdentity) -> Bool {
    candidates[InodePaths.half(identity.inode)] != nil
  }

  /// The processes that still have such files mapped.
  package func users(of files: [FileIdentity: ContainerPath]) -> [OpenFile] {
    let inodes = Dictionary(files.map { ($1, InodePaths.half($0.inode)) }) { first, _ in first }
    return OpenFileSearch(inodes: files, own: []).run().found.filter { file in
      file.mode == "mapped" && inodes[file.path].flatMap { candidates[$0] }?.contains(file.process) == true
    }
  }
}

/// Processes that may have something of a container open without being seen.
package struct UnseenProcesses: Sendable, Hashable, Encodable {
  /// Processes that this user may not look into, of those that may change the container: such as `812 (notes)`.
  package var unreadable: [String] = []
  /// How many more there are, which do not change it.
  package var uninvolved = 0
  /// Whether `/proc` hides processes of other users (its mount option `hidepid`), or all.
  package var hidden = false
  /// Whether this process is not in the first PID namespace: those outside of its own are not in `/proc`.
  package var outsideNamespace = false

  var isEmpty: Bool { self == UnseenProcesses() }

  mutating func add(unreadable process: Int32) {
    unreadable.append("\(process) (\(ProcessTable.name(of: process)))")
  }

  /// Such as `2 processes cannot be inspected: 812 (notes), 813 (sync); /proc hides some (hidepid)`.
  package var description: String {
    let count = unreadable.count + uninvolved
    let names = unreadable.isEmpty ? "" : ": \(unreadable.listed(3))"
    let parts = [
      count == 0 ? nil : "\(NumberText.count(count, "process", "processes")) cannot be inspected\(names)",
      hidden ? "/proc hides some (hidepid)" : nil,
      outsideNamespace ? "those outside this PID namespace are hidden" : nil,
    ]
    return parts.compactMap { $0 }.joined(separator: "; ")
  }

  /// One line for the user; nil where the processes of all that use the container can be seen.
  package var note: String? {
    var involved = self
    involved.uninvolved = 0
    if involved.isEmpty { return nil }
    return
      "not all processes can be seen: \(involved.description); make sure that none of them uses the container"
  }
}
