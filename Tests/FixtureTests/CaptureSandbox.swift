import AgeEncryption
import AppContainer
import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import DrydockTesting
import Foundation
import GRDB
import TestSupport
import Testing

/// A container that a fixture is captured from, with what must not be found in it.
final class CaptureSandbox {
  let directory: TemporaryDirectory
  let keys: DeviceKeys
  var configuration = ContainerConfiguration()
  var options = CaptureOptions()

  init() throws {
    (directory, keys) = (try TemporaryDirectory(), DeviceKeys(try AgeIdentity.generate()))
    configuration.app = "com.example.notes"
    configuration.layout = .ios
    configuration.versionMarkers = [.init(place: .defaults(key: "dataSchemaVersion"))]
    for path in ["Fixtures", "Notes", "Notes/Documents", "Notes/Library/Preferences"] {
      try RawFiles.createDirectories(directory(path))
    }
    try settings(["dataSchemaVersion": 3])
  }

  func write(_ path: String, _ bytes: [UInt8]) throws {
    let full = directory("Notes/" + path)
    try RawFiles.createDirectories((full as NSString).deletingLastPathComponent)
    try RawFiles.write(bytes, to: Array(full.utf8))
  }

  func write(_ path: String, _ text: String) throws { try write(path, Array(text.utf8)) }

  func settings(
    _ values: [String: Any], in path: String = "Library/Preferences/com.example.notes.plist",
    format: PropertyListSerialization.PropertyListFormat = .binary
  ) throws {
    try write(
      path, Array(PropertyListSerialization.data(fromPropertyList: values, format: format, options: 0)))
  }

  func database(_ sql: String, at path: String = "Documents/a.sqlite") throws {
    let queue = try DatabaseQueue(path: directory("Notes/" + path))
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  func vault(_ items: [VaultItem]) throws {
    var vault = try Vault(new: keys)
    for item in items { vault.put(item) }
    try write("Library/Vault/vault.age", vault.sealed())
  }

  @discardableResult
  func capture(_ name: String = "made", withKeys: Bool = true) throws -> CaptureReport {
    let container = try Container(at: directory("Notes"), configuration: configuration)
    var transaction = TransactionOptions()
    if withKeys { transaction.deviceKeys = keys }
    return try FixtureCapture.run(
      .container(container), as: name, in: directory("Fixtures"), configuration: configuration,
      options: options, transaction: transaction)
  }

  /// Captures, and searches the fixture for what must not be in it.
  @discardableResult
  func capture(hiding texts: [String], sourceLocation: SourceLocation = #_sourceLocation) throws
    -> CaptureReport
  {
    let report = try capture()
    let leaks = try leaks(texts, report)
    #expect(leaks == [], sourceLocation: sourceLocation)
    return report
  }

  /// The message of a capture that is refused; nothing is left of it.
  func refusal(withKeys: Bool = true) throws -> String {
    do {
      try capture(withKeys: withKeys)
    } catch let error as DrydockError where [.notCaptured, .usage].contains(error.code) {
      let left = try FileManager.default.contentsOfDirectory(atPath: directory("Fixtures"))
      return left.isEmpty ? error.description : "left behind: \(left)"
    }
    return "captured"
  }

  func text(_ path: String, of name: String = "made") throws -> String {
    String(decoding: try RawFiles.read(Array(directory("Fixtures/\(name)/\(path)").utf8)), as: UTF8.self)
  }

  func settings(of name: String = "made") throws -> String {
    try text("container/Library/Preferences/com.example.notes.plist.yaml", of: name)
  }

  func built(_ name: String = "made") throws -> Container {
    try Fixture.load(directory("Fixtures/\(name)")).build(
      in: directory("built-\(UUID().uuidString)"), configuration: configuration, deviceKeys: keys)
  }

  func rows(_ sql: String, in container: Container) throws -> [[DatabaseValue]] {
    let queue = try DatabaseQueue(path: container.root + "/Documents/a.sqlite")
    defer { try? queue.close() }
    return try queue.read { try Row.fetchAll($0, sql: sql).map { Array($0.databaseValues) } }
  }

  /// Where any of some texts is in the fixture's files, their names and attributes, or in the report, in whatever form.
  func leaks(_ texts: [String], _ report: CaptureReport, in name: String = "made") throws -> [String] {
    var places: [(String, Data)] = [("the report", try JSONEncoder().encode(report))]
    let listing = try TreeListing(directory("Fixtures/\(name)"))
    for path in listing.paths {
      places.append(("the name \(path)", Data(path.utf8)))
      places.append((path, listing[path]?.content ?? Data()))
      places.append(("the link \(path)", Data(listing[path]?.linkTarget ?? [])))
      for (name, value) in listing[path]?.attributes ?? [:] {
        places.append(("an attribute of \(path)", Data(name + value)))
      }
    }
    return texts.flatMap { text in
      Self.forms(of: text).flatMap { form, needle in
        places.compactMap { place, bytes in
          bytes.holds(Data(needle)) ? "\(text) \(form) in \(place)" : nil
        }
      }
    }
  }

  /// Written apart from the program's own list on purpose.
  private static func forms(of text: String) -> [(String, [UInt8])] {
    let bytes = Array(text.utf8)
    var forms: [(String, [UInt8])] = [
      ("as it is", bytes), ("in small letters", Array(text.lowercased().utf8)),
      ("in capitals", Array(text.uppercased().utf8)),
      ("in UTF-16", text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
      ("in UTF-16, the other way", text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }),
      ("in hexadecimal", Array(bytes.map { String(format: "%02x", $0) }.joined().utf8)),
      ("in HEXADECIMAL", Array(bytes.map { String(format: "%02X", $0) }.joined().utf8)),
      (
        "percent-encoded",
        Array((text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text).utf8)
      ),
    ]
    for shift in 0..<3 {
      let encoded = Data([UInt8](repeating: 0, count: shift) + bytes).base64EncodedString()
      let inner = encoded.dropFirst((shift * 8 + 5) / 6).prefix(
        (shift + bytes.count) * 8 / 6 - (shift * 8 + 5) / 6)
      forms.append(("in Base64", Array(inner.utf8)))
    }
    return forms
  }
}
