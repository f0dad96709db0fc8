/// Lines of `/proc/PID/maps`: `from-to rights offset major:minor inode path`. There are some ten thousand of them on
/// a machine, so that they are read byte by byte.
package struct MappingLines: IteratorProtocol {
  /// A line: its addresses, whether what the process writes there changes the file, and where the path is in the bytes.
  package typealias Element = (
    addresses: Range<UInt64>, changesFile: Bool, identity: FileIdentity, path: Range<Int>
  )

  private let bytes: UnsafeBufferPointer<UInt8>
  private var index = 0

  package init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  package mutating func next() -> Element? {
    guard index < bytes.count else { return nil }
    let (start, end) = (number(base: 16), number(base: 16))
    // Such as `rw-s`.
    let rights = bytes[min(index, bytes.count)..<min(index + 4, bytes.count)]
    let changesFile = rights.dropFirst().first == UInt8(ascii: "w") && rights.last == UInt8(ascii: "s")
    for _ in 0..<2 { skip(UInt8(ascii: " ")) }
    let (major, minor) = (number(base: 16), number(base: 16))
    let inode = number(base: 10)
    while index < bytes.count, bytes[index] == UInt8(ascii: " ") { index += 1 }
    let path = index
    skip(UInt8(ascii: "\n"))
    let device = FollowedStatus.device(major: major, minor: minor)
    return (
      start..<max(start, end), changesFile, FileIdentity(device: device, inode: inode),
      path..<max(path, min(index - 1, bytes.count))
    )
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
