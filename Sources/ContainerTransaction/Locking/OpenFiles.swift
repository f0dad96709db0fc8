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

  /// Lines of `/proc/PID/maps`: `from-to rights offset major:minor inode path`. There are some ten thousand of them on
  /// a machine, so that they are read byte by byte.
  private func mappings(of base: String) -> Set<FileIdentity> {
    guard let bytes = ProcessTable.contents(base + "/maps") else { return [] }
    var identities: Set<FileIdentity> = []
    bytes.withUnsafeBufferPointer { bytes in
      var index = 0
      while index < bytes.count {
        // Three fields to pass over, then three numbers.
        var numbers: (UInt64, UInt64, UInt64) = (0, 0, 0)
        for _ in 0..<3 { Self.skip(UInt8(ascii: " "), in: bytes, &index) }
        numbers.0 = Self.number(base: 16, in: bytes, &index)
        numbers.1 = Self.number(base: 16, in: bytes, &index)
        numbers.2 = Self.number(base: 10, in: bytes, &index)
        Self.skip(UInt8(ascii: "\n"), in: bytes, &index)
        guard numbers.2 != 0 else { continue }
        let device = FollowedStatus.device(major: numbers.0, minor: numbers.1)
        identities.insert(FileIdentity(device: device, inode: numbers.2))
      }
    }
    return identities
  }

  /// Moves on behind the next such byte.
  private static func skip(_ byte: UInt8, in bytes: UnsafeBufferPointer<UInt8>, _ index: inout Int) {
    while index < bytes.count, bytes[index] != byte { index += 1 }
    index += 1
  }

  /// Reads digits, and passes over the byte that ends them unless it ends the line.
  private static func number(
    base: UInt64, in bytes: UnsafeBufferPointer<UInt8>, _ index: inout Int
  ) -> UInt64 {
    var value: UInt64 = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        value = value &* base &+ UInt64(bytes[index] - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"):
        value = value &* base &+ UInt64(bytes[index] - UInt8(ascii: "a") + 10)
      case UInt8(ascii: "\n"): return value
      default:
        index += 1
        return value
      }
      index += 1
    }
    return value
  }
}
