import FileSystem
import Foundation
import SystemPackage

/// A process that has something of a container open.
package struct OpenFile: Sendable, Hashable, CustomStringConvertible {
  /// The process and its name.
  package var process: Int32
  /// See ``process``.
  package var processName: String
  /// The path in the container.
  package var path: ContainerPath
  /// How: `open`, `mapped`, `its working directory`.
  package var manner: String
  static let workingDirectory = "its working directory"
  /// Whether it is in the directory, and has nothing open.
  var isWorkingDirectory: Bool { manner == Self.workingDirectory }

  /// Such as `process 71 (notes) has Documents/database.sqlite open`.
  package var description: String {
    let place = path.isRoot ? "the container's directory" : path.description
    return switch manner {
    case "open": "process \(process) (\(processName)) has \(place) open"
    case "mapped": "process \(process) (\(processName)) has \(place) mapped into memory"
    default: "process \(process) (\(processName)) has \(place) as \(manner)"
    }
  }
}

/// Looks through all processes for open files, mappings and working directories in a container. By inode, not by
/// name: a container bind-mounted elsewhere is the same container.
struct OpenFileSearch {
  /// Every inode of the container, and a path that leads to it.
  let inodes: [FileIdentity: ContainerPath]
  /// Descriptors of this process that are Drydock's own.
  let ownDescriptors: Set<Int32>

  struct Result {
    var found: [OpenFile] = []
    /// What may have been missed.
    var unseen = UnseenProcesses()
  }

  func run() -> Result {
    let processes = ProcessTable.identifiers()
    var result = Result(unseen: .ofThisMachine(processes))
    let mapped = MappedFiles(inodes)
    // The kernel compares threads by the numbers of the caller's PID namespace, which may not be those of `/proc`.
    let comparesThreads = ProcessTable.status("NSpid")?.contains("\t") == false
    for process in processes { search(process, mapped, comparesThreads, &result) }
    return result
  }

  private func search(
    _ process: Int32, _ mapped: MappedFiles, _ comparesThreads: Bool, _ result: inout Result
  ) {
    let base = "/proc/\(process)"
    var found: [OpenFile] = []
    var seen: Set<FileIdentity> = []
    func note(_ identity: FileIdentity, _ manner: String) {
      guard let path = inodes[identity], seen.insert(identity).inserted else { return }
      found.append(
        OpenFile(process: process, processName: ProcessTable.name(of: process), path: path, manner: manner))
    }
    let isOwn = process == ProcessTable.own
    let own = isOwn ? ownDescriptors : []
    var (isRefused, isUnclear) = (false, false)
    /// Gives false where there is no use in looking further.
    func look(at thread: String, descriptors: Bool, directories: Bool) -> Bool {
      var visits: [LinkVisit] = []
      if descriptors {
        visits.append(
          .numbers(in: thread + "/fd") { if !own.contains($0) { note($1, "open") } })
      }
      // Where this process was started from is no use of it: it goes on at the same path (``WorkingDirectory``).
      if directories && !isOwn && visits.first != .refused {
        visits.append(.link(thread + "/cwd") { note($0, OpenFile.workingDirectory) })
        visits.append(.link(thread + "/root") { note($0, "its root directory") })
      }
      return !visits.contains(.refused)
    }
    let threads = ProcessTable.threads(of: process)
    var memory = mapped.search(base, { note($0, "mapped") }, unclear: &isUnclear)
    // A thread of the kernel, or a process that has ended.
    if memory == .gone && threads.count < 2 { return }
    if !look(at: base, descriptors: true, directories: true) {
      switch ProcessTable.kind(of: process) {
      case .program: isRefused = true
      case .zombie: break
      case .kernel, nil: return
      }
    }
    if !isRefused {
      // Threads share these with the one before, but for those that asked for tables of their own.
      var (files, directories) = (process, process)
      for thread in threads where thread != process {
        let path = "\(base)/task/\(thread)"
        let hasFiles = !(comparesThreads && ThreadTables.sharesDescriptors(files, thread))
        let hasDirectories = !(comparesThreads && ThreadTables.sharesDirectories(directories, thread))
        if !look(at: path, descriptors: hasFiles, directories: hasDirectories) { isRefused = true }
        if hasFiles { files = thread }
        if hasDirectories { directories = thread }
        // The first thread has nothing mapped any more when it has ended before the others.
        if memory == .gone { memory = mapped.search(path, { note($0, "mapped") }, unclear: &isUnclear) }
      }
    }
    if isRefused || isUnclear { result.unseen.unreadable += 1 }
    result.found += found
  }
}
