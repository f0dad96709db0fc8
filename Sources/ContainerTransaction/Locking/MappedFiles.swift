import FileSystem

/// The files of a container that processes have mapped into memory, which need not be open any more.
///
/// On btrfs and overlay `/proc/PID/maps` has another device than `stat`. An inode's number alone is therefore a
/// candidate, of which the kernel is asked for the file itself.
struct MappedFiles {
  private let inodes: [FileIdentity: ContainerPath]
  /// The lower halves of the inodes' numbers: in the upper one an overlay puts the layer.
  private let numbers: Set<UInt32>

  init(_ inodes: [FileIdentity: ContainerPath]) {
    self.inodes = inodes
    numbers = Set(inodes.keys.map { UInt32(truncatingIfNeeded: $0.inode) })
  }

  /// Looks through the mappings of a process or thread.
  ///
  /// - Parameters:
  ///   - base: its directory, such as `/proc/71`.
  ///   - found: is given each file of the container.
  ///   - unclear: becomes true when there is a candidate that cannot be told from a file elsewhere.
  /// - Returns: `gone` when it has no memory of its own, as threads of the kernel and ended ones.
  func search(_ base: String, _ found: (FileIdentity) -> Void, unclear: inout Bool) -> LinkVisit {
    let bytes: [UInt8]
    do { bytes = try ProcessTable.bytes(of: base + "/maps") } catch {
      return ProcessTable.isRefusal(error) ? .refused : .gone
    }
    if bytes.isEmpty { return .gone }
    bytes.withUnsafeBufferPointer { bytes in
      var lines = MappingLines(bytes: bytes)
      var last: Mapping?
      while let line = lines.next() {
        guard line.inode != 0, numbers.contains(UInt32(truncatingIfNeeded: line.inode)) else { continue }
        // A file is mapped in several pieces, one after the other.
        if let last, last.identity == line.identity { continue }
        last = line
        if inodes[line.identity] != nil {
          found(line.identity)
        } else if let identity = identity(of: line, base, bytes) {
          if inodes[identity] != nil { found(identity) }
        } else {
          unclear = true
        }
      }
    }
    return .complete
  }

  /// The file behind a mapping: through the mapping itself, which needs privileges, or through its path as the process
  /// sees it.
  private func identity(
    of line: Mapping, _ base: String, _ bytes: UnsafeBufferPointer<UInt8>
  ) -> FileIdentity? {
    let range = "\(String(line.start, radix: 16))-\(String(line.end, radix: 16))"
    if let identity = FollowedStatus.identity("\(base)/map_files/\(range)") { return identity }
    let path = String(decoding: bytes[line.path], as: UTF8.self).replacing("\\012", with: "\n")
    guard path.hasPrefix("/"), !path.hasSuffix(" (deleted)"),
      let identity = FollowedStatus.identity("\(base)/root\(path)"),
      UInt32(truncatingIfNeeded: identity.inode) == UInt32(truncatingIfNeeded: line.inode)
    else { return nil }
    return identity
  }
}

/// A line of `/proc/PID/maps`.
private struct Mapping {
  var start: UInt64, end: UInt64
  var identity: FileIdentity
  var path: Range<Int>
  var inode: UInt64 { identity.inode }
}

/// Lines of `/proc/PID/maps`: `from-to rights offset major:minor inode path`. There are some ten thousand of them on
/// a machine, so that they are read byte by byte.
private struct MappingLines {
  let bytes: UnsafeBufferPointer<UInt8>
  private var index = 0

  init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  mutating func next() -> Mapping? {
    guard index < bytes.count else { return nil }
    let (start, end) = (number(base: 16), number(base: 16))
    for _ in 0..<2 { skip(UInt8(ascii: " ")) }
    let (major, minor) = (number(base: 16), number(base: 16))
    let inode = number(base: 10)
    while index < bytes.count, bytes[index] == UInt8(ascii: " ") { index += 1 }
    let path = index
    skip(UInt8(ascii: "\n"))
    let device = FollowedStatus.device(major: major, minor: minor)
    return Mapping(
      start: start, end: end, identity: FileIdentity(device: device, inode: inode),
      path: path..<max(path, min(index - 1, bytes.count)))
  }

  /// Moves on behind the next such byte.
  private mutating func skip(_ byte: UInt8) {
    while index < bytes.count, bytes[index] != byte { index += 1 }
    index += 1
  }

  /// Reads digits, and passes over the byte that ends them unless it ends the line.
  private mutating func number(base: UInt64) -> UInt64 {
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
