import DrydockErrors
import FileSystem
import Formats
import SystemPackage

/// Reads the entitlements in the code signature of a Mach-O program, thin or universal, of 64 bits.
///
/// The signature is not verified: it says what the app asks for. The file is hostile input: each offset is checked.
enum CodeSignature {
  private static let thin: UInt32 = 0xfeed_facf
  private static let fat: UInt32 = 0xcafe_babe
  private static let signatureCommand: UInt32 = 0x1d
  private static let superBlob: UInt32 = 0xfade_0cc0
  private static let entitlementsBlob: UInt32 = 0xfade_7171
  private static let limit = 16 << 20

  /// The entitlements of a program; nil when it has none, or is of another format.
  static func entitlements(of path: ContainerPath, in directory: Directory) throws -> PropertyListDictionary?
  {
    let file = try directory.openFile(path)
    defer { try? file.close() }
    func read(_ offset: Int, _ count: Int) throws -> [UInt8]? {
      guard offset >= 0, count >= 0, count <= limit else { return nil }
      let bytes = try DrydockError.translating("cannot read", directory.full(path)) {
        try file.bytes(count, at: Int64(offset))
      }
      return bytes.count == count ? bytes : nil
    }
    guard let start = try slice(read), let signature = try signature(at: start, read) else { return nil }
    return entitlements(inSignature: signature)
  }

  /// Where the program for one processor starts.
  private static func slice(_ read: (Int, Int) throws -> [UInt8]?) throws -> Int? {
    guard let head = try read(0, 20) else { return nil }
    if little(head, 0) == thin { return 0 }
    // The offset of the first one is the third number of its entry.
    return big(head, 0) == fat ? big(head, 16).map(Int.init) : nil
  }

  private static func signature(at start: Int, _ read: (Int, Int) throws -> [UInt8]?) throws -> [UInt8]? {
    guard let header = try read(start, 32), little(header, 0) == thin, let count = little(header, 16),
      let size = little(header, 20), let commands = try read(start + 32, Int(size))
    else { return nil }
    var offset = 0
    for _ in 0..<min(count, 10_000) {
      guard let command = little(commands, offset), let length = little(commands, offset + 4), length >= 8
      else {
        return nil
      }
      if command == signatureCommand, let place = little(commands, offset + 8),
        let size = little(commands, offset + 12)
      {
        return try read(start + Int(place), Int(size))
      }
      offset += Int(length)
    }
    return nil
  }

  static func entitlements(inSignature bytes: [UInt8]) -> PropertyListDictionary? {
    guard big(bytes, 0) == superBlob, let count = big(bytes, 8) else { return nil }
    for index in 0..<Int(min(count, 100)) {
      guard let place = big(bytes, 12 + 8 * index + 4).map(Int.init), big(bytes, place) == entitlementsBlob,
        let length = big(bytes, place + 4).map(Int.init), length >= 8, place + length <= bytes.count
      else { continue }
      return try? PropertyListFile(bytes: Array(bytes[(place + 8)..<(place + length)])).root
    }
    return nil
  }

  private static func big(_ bytes: [UInt8], _ offset: Int) -> UInt32? {
    guard offset >= 0, offset + 4 <= bytes.count else { return nil }
    return bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }

  private static func little(_ bytes: [UInt8], _ offset: Int) -> UInt32? { big(bytes, offset)?.byteSwapped }
}
