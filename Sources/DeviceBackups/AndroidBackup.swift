import AppContainer
import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation
import SystemPackage

/// A file that `adb backup` writes, or MIUI: some lines of text, then a tar that may be compressed and encrypted. It is only
/// read.
package final class AndroidBackup: Sendable {
  package let path: String
  package let version: Int
  package let isCompressed: Bool
  package var isEncrypted: Bool { header.encryption != nil }
  private let header: AndroidBackupHeader
  private let file: FileDescriptor
  private let size: UInt64

  /// - Throws: `DrydockError`: `notFound`, `notAContainer` for another file, `newerFormat`, `damaged`.
  package init(at path: String) throws {
    let file = try DrydockError.translating("cannot read", path) {
      // Without waiting: a FIFO must be refused instead of hanging.
      try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
    }
    do {
      header = try AndroidBackupHeader((try? file.bytes(AndroidBackupHeader.longest, at: 0)) ?? [])
      size = try FileStatus(of: file, path: path).size
    } catch {
      try? file.close()
      throw (error as? DrydockError)?.at(path) ?? error
    }
    (self.path, self.file) = (path, file)
    (version, isCompressed) = (header.version, header.isCompressed)
  }

  deinit { try? file.close() }

  /// The key of an encrypted backup; nil for one that is not encrypted.
  ///
  /// - Throws: `DrydockError`: `badKey` for a wrong password, `limit` for absurd numbers of rounds.
  package func key(_ password: SecretBytes?) throws -> AndroidBackupKey? {
    guard let encryption = header.encryption else { return nil }
    guard let password else {
      throw DrydockError(.badKey, "the backup is encrypted, and no password was given", path: path)
    }
    return try DrydockError.locating(path) { try encryption.unlock(password, version: version) }
  }

  /// Walks all members of the tar, as ``ForeignArchive/members(limit:_:)`` does, and reads the file to its end.
  func members(
    _ key: AndroidBackupKey?, _ limit: ExpansionLimit,
    _ visit: (ArchiveMember, (_ piece: (UInt64, UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws
      -> Void
  ) throws {
    let plain = try pieces(key)
    var next = plain
    var rest: () throws -> [UInt8]? = plain
    if isCompressed {
      let inflater = try Inflater(plain)
      next = inflater.next
      rest = inflater.rest
    }
    try ForeignArchive(tarFrom: path, fileSize: size, next: next).members(limit: limit, visit)
    try DrydockError.locating(path) {
      // To the end of the compressed data, where its checksum is, and of the encrypted data, where its padding is.
      var expanded: UInt64 = 0
      while let more = try next() {
        expanded += UInt64(more.count)
        try limit.check("the file", expanded, fileSize: size)
      }
      while try rest() != nil {}
    }
  }

  /// What the file holds after its header, decrypted.
  private func pieces(_ key: AndroidBackupKey?) throws -> () throws -> [UInt8]? {
    var pieces: FilePieces? = FilePieces(file, path, from: Int64(header.length))
    guard let key else { return { try pieces?.next() } }
    let cipher = try CBCDecryption(key: key.key, iv: key.iv)
    return {
      while let piece = try pieces?.next() {
        let plain = try cipher.update(piece)
        if !plain.isEmpty { return plain }
      }
      guard pieces != nil else { return nil }
      pieces = nil
      guard let last = cipher.finish() else {
        throw DrydockError.truncated("its encrypted data does not end as it should")
      }
      return last.isEmpty ? nil : last
    }
  }
}

/// What the data of an encrypted Android backup is encrypted with.
package struct AndroidBackupKey: Sendable {
  let key: SecretBytes
  let iv: [UInt8]
}

/// The lines before the data.
struct AndroidBackupHeader: Sendable {
  /// The most bytes of all lines; those of Android have about 600.
  static let longest = 8192
  private(set) var version: Int, isCompressed: Bool
  private(set) var encryption: Encryption?
  /// Where the data begins.
  private(set) var length: Int

  struct Encryption: Sendable {
    var salt: [UInt8], checksumSalt: [UInt8]
    var rounds: UInt64
    var iv: [UInt8]
    /// The key of the data, its IV and a checksum, encrypted with a key from the password.
    var blob: [UInt8]
  }

  private struct Lines {
    var rest: ArraySlice<UInt8>

    mutating func next(_ what: String) throws -> String {
      guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else {
        throw DrydockError.truncated("the backup's header has no line with its \(what)")
      }
      defer { rest = rest[(end + 1)...] }
      return String(decoding: rest[..<end], as: UTF8.self)
    }

    mutating func bytes(_ what: String) throws -> [UInt8] {
      guard let bytes = [UInt8](hex: try next(what).utf8), !bytes.isEmpty else {
        throw DrydockError.damaged("the backup's \(what) is not hexadecimal")
      }
      return bytes
    }
  }

  init(_ bytes: [UInt8]) throws {
    var lines = Lines(rest: bytes[...])
    if bytes.starts(with: DeviceSource.miuiMagic) {
      // Its version, the package with the app's name, and two numbers: an ordinary backup follows.
      for _ in 0..<5 { _ = try lines.next("fields of MIUI") }
    }
    guard let magic = try? lines.next("magic"), magic == "ANDROID BACKUP" else {
      throw DrydockError(
        .notAContainer,
        "not a device backup: a file of `adb backup` begins with ANDROID BACKUP, and an iPhone's backup is a directory"
      )
    }
    let number = try lines.next("version")
    guard let version = Int(number), (1...5).contains(version) else {
      throw DrydockError(
        .newerFormat,
        "the Android backup is of version \(ContainerPath.printable(Array(number.utf8.prefix(20)))); "
          + "versions 1 to 5 are supported")
    }
    self.version = version
    switch try lines.next("compression") {
    case "0": isCompressed = false
    case "1": isCompressed = true
    default: throw DrydockError.damaged("the backup's header names an unknown compression")
    }
    switch try lines.next("encryption") {
    case "none": break
    case "AES-256":
      let (salt, checksumSalt) = (try lines.bytes("salt"), try lines.bytes("checksum salt"))
      guard let rounds = UInt64(try lines.next("rounds")) else {
        throw DrydockError.damaged("the backup's number of rounds is not a number")
      }
      encryption = Encryption(
        salt: salt, checksumSalt: checksumSalt, rounds: rounds, iv: try lines.bytes("initialization vector"),
        blob: try lines.bytes("key"))
    default: throw DrydockError(.encrypted, "the backup has an unknown encryption; AES-256 is supported")
    }
    length = lines.rest.startIndex
  }
}

extension AndroidBackupHeader.Encryption {
  /// - Throws: `DrydockError`: `badKey` for a wrong password, `limit`, `damaged`.
  func unlock(_ password: SecretBytes, version: Int) throws -> AndroidBackupKey {
    // Version 1 has two forms: Android used the low bytes of characters only, until 4.4.
    if let key = try attempt(password, usesLowBytes: false) { return key }
    if version == 1, let key = try attempt(Self.lowBytes(of: password), usesLowBytes: true) { return key }
    throw DrydockError(.badKey, "the password does not open the backup; give the one that it was made with")
  }

  private func attempt(_ password: SecretBytes, usesLowBytes: Bool) throws -> AndroidBackupKey? {
    let own = try password.passwordKey(salt: salt, rounds: rounds, .sha1)
    let cipher = try CBCDecryption(key: own, iv: iv)
    var plain = try cipher.update(blob)
    guard let rest = cipher.finish() else { return nil }
    plain += rest
    defer { _ = SecretBytes(wiping: &plain) }
    var fields: [[UInt8]] = []
    var left = plain[...]
    for _ in 0..<3 {
      guard let length = left.popFirst(), left.count >= Int(length) else { return nil }
      fields.append(Array(left.prefix(Int(length))))
      left = left.dropFirst(Int(length))
    }
    guard fields[0].count == CBCDecryption.blockSize, fields[1].count == 32 else { return nil }
    let key = SecretBytes(fields[1])
    let text = usesLowBytes ? key : Self.javaText(of: fields[1])
    let checksum = try text.passwordKey(salt: checksumSalt, rounds: rounds, .sha1)
    guard checksum == SecretBytes(fields[2]) else { return nil }
    return AndroidBackupKey(key: key, iv: fields[0])
  }

  /// Android makes characters of the key's bytes, which Java extends with their sign, and UTF-8 of the characters.
  private static func javaText(of key: [UInt8]) -> SecretBytes {
    var text: [UInt8] = key.flatMap { byte -> [UInt8] in
      byte < 0x80 ? [byte] : [0xEF, 0xBC | (byte >> 6 & 0x03), 0x80 | (byte & 0x3F)]
    }
    return SecretBytes(wiping: &text)
  }

  private static func lowBytes(of password: SecretBytes) -> SecretBytes {
    var bytes = password.withBytes {
      String(decoding: $0, as: UTF8.self).utf16.map { UInt8(truncatingIfNeeded: $0) }
    }
    return SecretBytes(wiping: &bytes)
  }
}
