import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import DeviceBackups
@testable import Formats

@Suite("Records of a device backup")
struct RecordTests {
  static let domain = "AppDomain-com.example.notes"

  /// The rows of a sample's index.
  static func rows() throws -> [BackupIndex.Row] {
    var rows: [BackupIndex.Row] = []
    try IPhoneBackup(at: Samples.path("plain")).opened(with: nil).index.rows { rows.append($0) }
    return rows
  }

  private static func row(_ path: String, _ change: (inout BackupIndex.Row) -> Void = { _ in }) throws
    -> BackupIndex.Row
  {
    var row = try #require(try rows().first { $0.domain == domain && $0.path == Array(path.utf8) })
    change(&row)
    return row
  }

  /// A row of another path, with the hash that it has to have.
  private static func row(at path: [UInt8]) throws -> BackupIndex.Row {
    try row("Documents/Photos/a.jpg") {
      $0.path = path
      $0.id = (try? HashFunction.sha1.hash(Array((domain + "-").utf8) + path).hex) ?? ""
    }
  }

  @Test("A record has the file's kind, size, mode, time, protection class and attributes")
  func record() throws {
    let file = try #require(try BackupFile(Self.row("Documents/Photos/a.jpg")))
    #expect(file.kind == .file(size: 20001))
    #expect(file.metadata.mode == 0o644 && file.metadata.modified == 1_795_000_003_000_000_000)
    #expect(file.metadata.protection == .complete)
    #expect(
      file.metadata.attributes.contains(
        ExtendedAttribute(name: "com.example.tag", value: Array("red".utf8)).named))
    #expect(file.key == nil)
    let link = try #require(try BackupFile(Self.row("Documents/link")))
    #expect(link.kind == .symbolicLink(target: Array("Photos/a.jpg".utf8)))
    let directory = try #require(try BackupFile(Self.row("Documents/Empty")))
    #expect(directory.kind == .directory && directory.metadata.mode == 0o700)
  }

  @Test(
    "Paths that lead out, and those that Drydock uses, are refused",
    arguments: [
      "../x", "a/../../x", "/etc/passwd", "a//b", "a/./b", "a\0b", "..", ".", ".groups/x/y", ".groups",
      ".drydock-state/journal", String(repeating: "a/", count: 600) + "b",
    ])
  func unsafe(_ path: String) throws {
    let error = #expect(throws: DrydockError.self) { try BackupFile(Self.row(at: Array(path.utf8))) }
    #expect(error?.code == .unsafeName && error?.code.exitCode == 4)
  }

  @Test("The name of a content is the hash of its path")
  func hash() throws {
    for id in [String(repeating: "0", count: 40), "../../../../../../../../../etc/passwd-0123456"] {
      expectError(.damaged) { try BackupFile(Self.row("Documents/Photos/a.jpg") { $0.id = id }) }
    }
  }

  @Test("Each prefix and each flipped byte of a record gives an error or a record")
  func damage() throws {
    let row = try Self.row("Documents/Photos/a.jpg")
    for count in 0..<row.record.count {
      expectError(.damaged) {
        var cut = row
        cut.record = Array(row.record.prefix(count))
        _ = try BackupFile(cut)
      }
    }
    for index in row.record.indices {
      for bit in [0x01, 0x10, 0x80] as [UInt8] {
        var changed = row
        changed.record[index] ^= bit
        do { _ = try BackupFile(changed) } catch let error as DrydockError { #expect(error.code == .damaged) }
      }
    }
  }

  @Test(
    "Missing and wrong fields are named",
    arguments: ["Size", "Mode", "LastModified", "EncryptionKey", "ExtendedAttributes", "Target"])
  func fields(_ name: String) throws {
    for value in [nil, "text", PropertyListValue.real(1.5), .array([]), .integer(-1)] as [PropertyListValue?]
    {
      let path = name == "Target" ? "Documents/link" : "Documents/Photos/a.jpg"
      let row = try Self.row(path) { row in
        guard var file = try? PropertyListFile(bytes: row.record),
          case .array(var objects)? = file.root["$objects"],
          case .dictionary(var own) = objects[1]
        else { return }
        own[name] = value
        objects[1] = .dictionary(own)
        file.root["$objects"] = .array(objects)
        row.record = (try? file.encoded()) ?? []
      }
      let mayLack = ["EncryptionKey", "ExtendedAttributes"].contains(name) && value == nil
      // The number of the mode's type is not looked at, nor a time before 1970.
      let isFine =
        mayLack || name == "Target" && value == "text" || name == "LastModified" && value == .integer(-1)
      if isFine {
        _ = try BackupFile(row)
        continue
      }
      let error = #expect(throws: DrydockError.self, "\(name) \(value as Any)") { try BackupFile(row) }
      #expect(error?.code == .damaged && error?.message.contains(name == "Target" ? "target" : name) == true)
    }
  }

  @Test("What is neither a file nor a directory nor a link is nothing")
  func otherKind() throws { #expect(try BackupFile(Self.row("Documents/link") { $0.flags = 16 }) == nil) }
}

@Suite("Property lists in DER")
struct DERTests {
  /// By `der` of make_device_backup.py: {"a": 1, "b": b"\0", "c": True, "d": (time)}.
  static let bytes: [UInt8] =
    [
      0x31, 0x32, 0x30, 0x06, 0x0C, 0x01, 0x61, 0x02, 0x01, 0x01, 0x30, 0x06, 0x0C, 0x01, 0x62, 0x04, 0x01,
      0x00,
    ]
    + [0x30, 0x06, 0x0C, 0x01, 0x63, 0x01, 0x01, 0xFF, 0x30, 0x18, 0x0C, 0x01, 0x64, 0x18, 0x13]
    + Array("20261102101500.125Z".utf8)

  @Test("It reads each kind of value")
  func values() throws {
    guard case .dictionary(let values)? = DERValue.read(Self.bytes) else {
      Issue.record("not a dictionary")
      return
    }
    #expect(values["a"] == 1 && values["b"] == .data([0]) && values["c"] == true)
    guard case .date(let date)? = values["d"] else {
      Issue.record("not a date")
      return
    }
    #expect(UTCTime.text(date) == "2026-11-02T10:15:00Z")
    #expect(DERValue.read([0x02, 0x02, 0xFF, 0x7F]) == -129)
    #expect(DERValue.read([0x02, 0x08, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == .integer(.max))
    #expect(DERValue.read([0x30, 0x81, 0x03, 0x02, 0x01, 0x05]) == [5])
  }

  @Test("Prefixes, flipped bytes, deep nesting and lengths that lie give nothing")
  func damage() throws {
    for count in 0..<Self.bytes.count { #expect(DERValue.read(Array(Self.bytes.prefix(count))) == nil) }
    for index in Self.bytes.indices {
      for bit in 0..<8 {
        var changed = Self.bytes
        changed[index] ^= 1 << UInt8(bit)
        _ = DERValue.read(changed)
      }
    }
    var nested: [UInt8] = []
    for _ in 0..<60 { nested = [0x30, UInt8(nested.count)] + nested }
    #expect(DERValue.read(nested) == nil)
    for bytes in [
      [0x04, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x04, 0x80], [0x04, 0x85, 0, 0, 0, 0, 0], [0x0C, 1, 0xFF],
      [0x05, 1, 0], Self.bytes + [0],
    ] as [[UInt8]] {
      #expect(DERValue.read(bytes) == nil)
    }
  }
}
