import DrydockErrors
import FileSystem
import Foundation

/// The index on disk, for a recovery: one record a path, ended by NUL, fields by spaces and the path last. Plain
/// text because it is written in every commit, and JSON of a large container would take longer than the commit.
extension TreeIndex {
  static let file: ContainerPath = "index"

  /// The index as bytes.
  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(paths.count * 128)
    for (path, s) in paths {
      bytes.append(contentsOf: s.type.rawValue.utf8)
      for number in [
        s.identity.device, s.identity.inode, s.size, UInt64(s.mode), UInt64(s.user), UInt64(s.group),
      ] {
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: String(number).utf8)
      }
      for time in [s.modified, s.changed] {
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: String(time).utf8)
      }
      bytes.append(UInt8(ascii: " "))
      bytes.append(contentsOf: path.bytes)
      bytes.append(0)
    }
    return bytes
  }

  /// An index from bytes.
  ///
  /// - Parameter device: the container's device as it is now: it has another number after a restart of the machine.
  /// - Throws: ``DrydockError`` with code `damagedState`.
  init(decoding bytes: [UInt8], path file: String, device: UInt64? = nil) throws {
    paths = [:]
    for record in bytes.split(separator: 0) {
      let fields = record.split(separator: UInt8(ascii: " "), maxSplits: 9, omittingEmptySubsequences: false)
      let texts = fields.prefix(9).map { String(decoding: $0, as: UTF8.self) }
      let numbers = texts.dropFirst().prefix(6).compactMap { UInt64($0) }
      let times = texts.dropFirst(7).compactMap { Int64($0) }
      guard fields.count == 10, let type = FileType(rawValue: texts[0]), numbers.count == 6, times.count == 2
      else {
        throw DrydockError(
          .damagedState, "the index of an interrupted transaction cannot be read; nothing was removed",
          path: file)
      }
      paths[try ContainerPath(bytes: fields[9])] = IndexedStatus(
        type: type, identity: FileIdentity(device: device ?? numbers[0], inode: numbers[1]), size: numbers[2],
        modified: times[0], changed: times[1], mode: UInt16(truncatingIfNeeded: numbers[3]),
        user: UInt32(truncatingIfNeeded: numbers[4]), group: UInt32(truncatingIfNeeded: numbers[5]))
    }
  }
}
