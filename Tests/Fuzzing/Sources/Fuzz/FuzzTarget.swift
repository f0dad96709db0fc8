import ContainerTransaction
import DrydockErrors
import Foundation
import SystemPackage

@testable import AppContainer
@testable import ArchiveFile
@testable import ArchiveManifest
@testable import BackupRepository
@testable import Cryptography
@testable import DeviceBackups
@testable import Formats

/// What can be fed with any bytes. Each either accepts them or throws one of Drydock's own errors: everything else, a
/// crash, an endless loop, too much memory, another error, is a find.
///
/// Checksums stop most of what a fuzzer does to a whole archive, so that there are ways in behind them.
enum FuzzTarget: String, CaseIterable {
  /// A whole file: open, walk, verify every byte.
  case archive
  /// A tar stream, sealed into an archive with right checksums and a right place of the manifest.
  case tar
  /// The same, restored: whatever comes of it, nothing beside its place may change.
  case restore
  /// A manifest as SQLite's bytes.
  case manifest
  /// The seek table and the frame with the manifest's location.
  case tables
  /// `drydock.json`.
  case header
  /// A property list in any form and encoding.
  case plist
  /// A property list in OpenStep's or GNUstep's text form: what is accepted is written, and read again as the same.
  case openstep
  /// SharedPreferences: what is accepted is written, and read again as the same.
  case preferences
  /// A DataStore file, likewise.
  case datastore
  /// A keyed archive: what is read is written as JSON and as a property list, and these are read again.
  case unarchive
  /// A document in a value, as it is decoded to be shown and compared.
  case decoded
  /// An age file, armored or not.
  case age
  /// The stanzas of an age header, with the right authentication code.
  case stanzas
  /// How a payload is cut into chunks.
  case chunks
  /// A file of age keys.
  case keys
  /// A schema that Room exported: the database that it declares is made in memory.
  case roomschema
  /// The document in a vault: what is accepted is written, and read again as the same.
  case vault
  /// The keybag of a device backup.
  case keybag
  /// A record of a file in a device backup.
  case mbfile
  /// The index of a device backup as SQLite's bytes.
  case backupindex
  /// A whole file of `adb backup`.
  case androidbackup
  /// The attributes of a keychain item.
  case keychain

  func run(_ bytes: [UInt8]) {
    do {
      switch self {
      case .archive: try verify(bytes)
      case .tar: try verify(sealed(bytes))
      case .restore: try restore(sealed(bytes))
      case .manifest: try readManifest(bytes)
      case .tables: try readTables(bytes)
      case .header: _ = try Archive.Header(decoding: bytes, path: "header")
      case .plist: _ = try PropertyListDocument(bytes: bytes)
      case .openstep: try readOpenStep(bytes)
      case .preferences: try readSettings(bytes, "shared_prefs/a.xml")
      case .datastore: try readSettings(bytes, "a.preferences_pb")
      case .unarchive: try readKeyedArchive(bytes)
      case .decoded: decode(bytes)
      case .age: try openAge(bytes)
      case .stanzas: try openStanzas(bytes)
      case .chunks: try openChunks(bytes)
      case .keys: try readKeys(bytes)
      case .roomschema: try readRoomSchema(bytes)
      case .vault: try readVault(bytes)
      case .keybag: _ = try BackupKeybag(bytes)
      case .mbfile: try readRecord(bytes)
      case .backupindex: try readIndex(bytes)
      case .androidbackup: try readAndroidBackup(bytes)
      case .keychain: try readKeychainItem(bytes)
      }
    } catch is DrydockError {
      // Refused: what is to be done with nearly everything.
    } catch {
      fatalError("not an error of ours: \(error)")
    }
  }

  private func readOpenStep(_ bytes: [UInt8]) throws {
    guard let text = TextEncoding.plain.decode(bytes), let (value, form) = try OpenStepReader.read(text)
    else { return }
    let written = try OpenStepWriter.write(value, form)
    let again = try OpenStepReader.read(written)?.value
    guard again == value else { fatalError("read differently than written") }
  }

  // MARK: Whole archives

  private func verify(_ bytes: [UInt8]) throws {
    try MemoryFile.with(bytes) { path in
      // Each step by itself: what one refuses must not hide the next from the fuzzer.
      let steps: [() throws -> Void] = [
        {
          let reader = try ArchiveReader(path: path)
          try reader.read(offset: 0, length: reader.tarSize) { _ in }
        },
        { _ = try Verification.run(Archive(path: path), data: true) },
      ]
      for step in steps {
        do {
          try step()
        } catch is DrydockError {}
      }
    }
  }

  private func restore(_ bytes: [UInt8]) throws {
    let files = FileManager.default
    let place = NSTemporaryDirectory() + "/restore"
    let outside = Data("untouched".utf8)
    defer { try? files.removeItem(atPath: place) }
    try files.createDirectory(atPath: place, withIntermediateDirectories: true)
    try outside.write(to: URL(fileURLWithPath: place + "/outside"))
    defer {
      let names = Set((try? files.contentsOfDirectory(atPath: place)) ?? []).filter {
        !$0.hasPrefix(".drydock-")
      }
      let isUntouched = files.contents(atPath: place + "/outside") == outside
      guard isUntouched, names.isSubset(of: ["outside", "box"]) else {
        fatalError("touched outside: \(names)")
      }
    }
    try MemoryFile.with(bytes) { path in
      let archive = try Archive(path: path)
      let target = try Restore.target(
        place + "/box", for: archive, configuration: ContainerConfiguration(), fromOther: true)
      _ = try Restore.run(archive, target)
    }
  }

  /// An archive around a tar stream; the first database at the start of a block counts as its manifest.
  private func sealed(_ tar: [UInt8]) throws -> [UInt8] {
    guard !tar.isEmpty else { return [] }
    let magic = Array("SQLite format 3\0".utf8)
    let offset = stride(from: 512, to: max(512, tar.count), by: 512).first { tar[$0...].starts(with: magic) }
    let length = offset.map { offset in
      let digits = tar[offset - 512 + 124..<offset - 512 + 135]
      return min(Int(String(decoding: digits, as: UTF8.self), radix: 8) ?? 0, tar.count - offset)
    }
    let start = offset ?? 0
    let manifest = Array(tar[start..<start + max(0, length ?? 0)])
    return try MemoryFile.with([]) { path in
      let file = try FileDescriptor.open(FilePath(path), .readWrite)
      return try file.closeAfter {
        let output = try ArchiveSink(file)
        let frames = FrameWriter(output, level: 1, workers: 1)
        let encoder = try TarEncoder(frames)
        guard tar.withUnsafeBytes({ encoder.append($0) }) else { return [] }
        encoder.flush()
        var entries = try frames.finish()
        try output.finish()
        var tail = try MemberLocation(
          offset: UInt64(start), length: UInt64(manifest.count), sha256: try SHA256.hash(manifest)
        ).frame()
        entries.append(
          SeekTable.Entry(
            compressedSize: UInt32(tail.count), plainSize: 0, checksum: ArchiveFormat.checksumOfNothing))
        tail += try SeekTable.encode(entries)
        try file.writeAll(toAbsoluteOffset: Int64(output.fileSize), tail)
        return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
      }
    }
  }

  // MARK: Parts

  private func readManifest(_ bytes: [UInt8]) throws {
    let id = Archive.ID(unchecked: "00112233445566778899aabbccddeeff")
    let header = Archive.Header(
      archive: id, app: "com.example.fuzz", instance: "box", layout: .generic, schemaVersion: nil,
      time: "2026-11-20T10:15:00Z")
    let manifest = try ManifestReader(
      header, tarSize: 1 << 30, fileSize: 1 << 30, path: "manifest", size: UInt64(bytes.count)
    ) { file in
      try file.writeAll(bytes)
    }
    let steps: [() throws -> Void] = [
      { _ = try manifest.properties() }, { _ = try manifest.contentSize() },
      { try Manifest([manifest]).entries { _ in } },
      { _ = try Manifest([manifest]).kinds() },
      { _ = try manifest.excluded() }, { _ = try manifest.skipped() }, { _ = try manifest.replacedMembers() },
    ]
    for step in steps {
      do {
        try step()
      } catch is DrydockError {}
    }
  }

  private func readTables(_ bytes: [UInt8]) throws {
    let frame = bytes.prefix(MemberLocation.frameSize)
    if frame.count == MemberLocation.frameSize { _ = try? MemberLocation(frame: Array(frame)) }
    guard let count = try SeekTable.frameCount(footer: Array(bytes.suffix(SeekTable.footerSize))) else {
      return
    }
    let entries = try SeekTable.decode(bytes, count: count)
    let sum = entries.dropLast().reduce(UInt64(MemberLocation.frameSize)) { $0 + UInt64($1.compressedSize) }
    let index = try FrameIndex(entries, tableOffset: sum)
    for offset in [0, index.tarSize / 2, index.tarSize] { _ = index.frame(at: offset) }
  }
}

/// A file that is written anew for each input, for code that takes a path.
enum MemoryFile {
  static func with<T>(_ bytes: [UInt8], _ body: (String) throws -> T) throws -> T {
    let path = NSTemporaryDirectory() + "/fuzz-\(ProcessInfo.processInfo.processIdentifier)"
    let file = try FileDescriptor.open(
      FilePath(path), .readWrite, options: [.create, .truncate], permissions: .ownerReadWrite)
    return try file.closeAfter {
      try file.writeAll(bytes)
      return try body(path)
    }
  }
}
