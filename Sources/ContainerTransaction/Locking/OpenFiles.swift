import FileSystem
import Formats
import Foundation

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
  private let tree: InodePaths?
  /// Descriptors of this process that are Drydock's own.
  let own: Set<Int32>
  /// The only user, besides root, whose processes may use what is looked for; nil when all may.
  let owner: UInt32?
  /// The lower halves of the inodes' numbers: in the upper one an overlay puts the layer.
  private let halves: Set<UInt32>

  init(
    inodes: [FileIdentity: ContainerPath], tree: InodePaths? = nil, own: Set<Int32>, owner: UInt32? = nil
  ) {
    (self.inodes, self.tree, self.own, self.owner) = (inodes, tree, own, owner)
    halves = Set(inodes.keys.map { InodePaths.half($0.inode) })
  }

  /// The path of an inode; nil for one that is not looked for.
  func path(of identity: FileIdentity) -> ContainerPath? { inodes[identity] ?? tree?[identity] }

  /// Whether an inode is looked for, which takes no search for its path.
  func contains(_ identity: FileIdentity) -> Bool {
    inodes[identity] != nil || tree?.contains(identity) == true
  }

  /// Whether an inode of this number may be looked for.
  func mayContain(_ inode: UInt64) -> Bool {
    let half = InodePaths.half(inode)
    return halves.contains(half) || tree?.contains(half: half) == true
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
