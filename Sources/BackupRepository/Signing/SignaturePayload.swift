import ArchiveManifest
import ArchiveFile
import Cryptography
import DrydockErrors
import Formats
import Foundation
import Storage

/// What is signed of an archive: a small text beside it, of which `sha256sum -c` takes the last line. It identifies the archive
/// by what is in its header, so that the archive may be renamed, and binds all of its bytes.
struct SignaturePayload {
  var archive: Archive.ID
  /// The app in the form that names of archives have.
  var app: String
  /// SHA-256 of that form, a line feed, and the instance: its first 8 digits are the mark in the archive's name.
  var instance: SHA256.Digest
  var time: String
  var bytes: SignedBytes
  /// The name that the file had when it was signed; empty before.
  var fileName = ""

  static let sizeLimit = 4096
  private static let title = "# drydock archive statement 1"

  init(_ header: Archive.Header, _ bytes: SignedBytes) throws {
    (archive, app, time) = (header.archive, ArchiveLabel.plain(header.app), header.time)
    (instance, self.bytes) = (try Self.instance(of: header), bytes)
  }

  private static func instance(of header: Archive.Header) throws -> SHA256.Digest {
    try SHA256.hash(Array((ArchiveLabel.plain(header.app) + "\n" + header.instance).utf8))
  }

  var text: [UInt8] {
    Array(
      """
      \(Self.title)
      # archive: \(archive)
      # app: \(app)
      # instance: \(instance)
      # time: \(time)
      # size: \(bytes.size)
      # contents: \(bytes.contents)
      SHA256 (\(fileName)) = \(bytes.sha256)

      """.utf8)
  }

  /// Reads a signature payload, which has exactly one form.
  ///
  /// - Throws: `DrydockError` with code `badSignature`, or `newerFormat`.
  init(_ written: [UInt8]) throws {
    let invalid = DrydockError(.badSignature, "the signature payload is malformed")
    guard written.count <= Self.sizeLimit, let text = String(validating: written, as: UTF8.self) else {
      throw invalid
    }
    var lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }[...]
    func next(_ start: String, _ end: String = "") throws -> String {
      guard let line = lines.popFirst(), line.hasPrefix(start), line.hasSuffix(end),
        line.utf8.count >= start.utf8.count + end.utf8.count
      else { throw invalid }
      return String(decoding: line.utf8.dropFirst(start.utf8.count).dropLast(end.utf8.count), as: UTF8.self)
    }
    let version = try next(String(Self.title.dropLast()))
    guard version == "1" else {
      guard Int(version) != nil else { throw invalid }
      throw DrydockError(
        .newerFormat, "the signature payload is of a newer version; use a newer version of drydock")
    }
    guard let archive = Archive.ID(try next("# archive: ")), case let app = try next("# app: "),
      let instance = SHA256.Digest(hex: try next("# instance: ")), case let time = try next("# time: "),
      UTCTime.isWhole(time), let size = UInt64(try next("# size: ")),
      let contents = SHA256.Digest(hex: try next("# contents: ")),
      case let last = try next("SHA256 ("), let close = last.range(of: ") = ", options: .backwards),
      let sha256 = SHA256.Digest(hex: String(last[close.upperBound...]))
    else { throw invalid }
    (self.archive, self.app, self.instance, self.time) = (archive, app, instance, time)
    bytes = SignedBytes(size: size, sha256: sha256, contents: contents)
    fileName = String(last[..<close.lowerBound])
    // Nothing but what was read may be signed: no more lines, no other spelling.
    guard self.text == written, Self.isPlain(fileName), ArchiveLabel.plain(app) == app else { throw invalid }
  }

  /// Whether `sha256sum -c` takes a name as it is.
  static func isPlain(_ fileName: String) -> Bool {
    !fileName.isEmpty && fileName.utf8.count <= 255 && !fileName.contains("/")
      && !fileName.unicodeScalars.contains { $0 == "\\" || $0.properties.generalCategory == .control }
  }

  /// Throws unless an open archive is the one that was signed. Nothing of it but the tables at its end and its header
  /// was read before.
  func requireOf(_ header: Archive.Header, _ json: [UInt8], _ reader: ArchiveReader) throws {
    try requireOf(header)
    guard bytes.size == reader.fileSize, try bytes.contents == reader.contentsCode(header: json) else {
      throw DrydockError(
        .badSignature, "its content is not what was signed; it was changed, or signed under other keys")
    }
  }

  /// Throws unless a file that no key opens may be the one that was signed.
  func requireOf(_ file: PlaceFile, _ label: ArchiveLabel?) throws {
    guard bytes.size == file.size, label.map({ archive.description.hasPrefix($0.id) }) ?? true
    else { throw DrydockError(.badSignature, "its signature payload is of another archive") }
  }

  /// Throws unless all bytes are those that were signed.
  func requireAllBytes(_ reader: ArchiveReader) throws {
    guard try reader.fileDigest() == bytes.sha256 else {
      throw DrydockError(
        .badSignature, "its bytes are not those that were signed; use another archive", path: reader.path)
    }
  }

  /// Throws unless the signature payload is of the archive with this header.
  func requireOf(_ header: Archive.Header) throws {
    guard archive == header.archive, app == ArchiveLabel.plain(header.app), time == header.time,
      try instance == Self.instance(of: header)
    else { throw DrydockError(.badSignature, "its signature payload is of another archive") }
  }
}
