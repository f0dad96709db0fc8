import AppContainer
import Foundation
import SystemPackage

/// A process that has something of a container open.
public struct OpenFile: Sendable, Hashable, CustomStringConvertible {
  /// The process and its name.
  public var process: Int32
  /// See ``process``.
  public var processName: String
  /// The path in the container.
  public var path: ContainerPath
  /// How: `open`, `mapped`, `its working directory`.
  public var manner: String

  /// Such as `process 71 (notes) has Documents/database.sqlite open`.
  public var description: String {
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
    /// Processes that this user may not look into.
    var unseen = 0
  }

  func run() -> Result {
    var result = Result()
    for process in ProcessTable.identifiers() { search(process, &result) }
    return result
  }

  private func search(_ process: Int32, _ result: inout Result) {
    let base = "/proc/\(process)"
    guard let names = try? Directory(base + "/fd").names() else {
      // A process that ended meanwhile holds nothing; one of another user cannot be looked into.
      if (try? Directory(base)) != nil { result.unseen += 1 }
      return
    }
    let isOwn = process == ProcessInfo.processInfo.processIdentifier
    var seen: Set<FileIdentity> = []
    func note(_ identity: FileIdentity?, _ manner: String) {
      guard let identity, let path = inodes[identity], seen.insert(identity).inserted else { return }
      result.found.append(
        OpenFile(process: process, processName: ProcessTable.name(of: process), path: path, manner: manner))
    }
    for name in names {
      guard let number = Int32(String(decoding: name, as: UTF8.self)) else { continue }
      if isOwn && ownDescriptors.contains(number) { continue }
      note(FollowedStatus.identity("\(base)/fd/\(number)"), "open")
    }
    note(FollowedStatus.identity(base + "/cwd"), "its working directory")
    note(FollowedStatus.identity(base + "/root"), "its root directory")
    for identity in mappings(of: base) { note(identity, "mapped") }
  }

  /// Lines of `/proc/PID/maps`: `from-to rights offset major:minor inode path`.
  private func mappings(of base: String) -> [FileIdentity] {
    guard let bytes = FileManager.default.contents(atPath: base + "/maps") else { return [] }
    var identities: Set<FileIdentity> = []
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
      guard fields.count >= 5, let inode = UInt64(String(decoding: fields[4], as: UTF8.self)), inode != 0
      else {
        continue
      }
      let numbers = String(decoding: fields[3], as: UTF8.self).split(separator: ":")
      guard numbers.count == 2, let major = UInt64(numbers[0], radix: 16),
        let minor = UInt64(numbers[1], radix: 16)
      else { continue }
      identities.insert(FileIdentity(device: FollowedStatus.device(major: major, minor: minor), inode: inode))
    }
    return Array(identities)
  }
}
