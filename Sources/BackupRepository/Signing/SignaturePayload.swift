import ArchiveManifest
import ArchiveSigning
import Cryptography
import DrydockErrors
import Foundation

/// What is signed of an archive: a small text beside it, of which `sha256sum -c` takes the last line. It identifies the archive
/// by what is in its header, so that the archive may be renamed, and binds all of its bytes.
struct SignaturePayload: Equatable {
  var archive: Archive.ID
  /// The app in the form that names of archives have.
  var app: String
  /// SHA-256 of that form, a line feed, and the instance: its first 8 digits are the mark in the archive's name.
  var instance: SHA256.Digest
  var time: String
  /// Bytes of the file.
  var size: UInt64
  /// The code over the header and the manifest, by which a part of the archive is verified without the rest.
  var contents: SHA256.Digest
  /// The name that the file had when it was signed.
  var fileName: String
  /// Of all bytes of the file.
  var sha256: SHA256.Digest

  static let sizeLimit = 4096
  private static let title = "# drydock archive statement 1"

  init(
    _ header: Archive.Header, fileName: String, size: UInt64, sha256: SHA256.Digest, contents: SHA256.Digest
  ) throws {
    (archive, app, time) = (header.archive, ArchiveName.plain(header.app), header.time)
    instance = try Self.instance(of: header)
    (self.size, self.contents, self.fileName, self.sha256) = (size, contents, fileName, sha256)
  }

  private static func instance(of header: Archive.Header) throws -> SHA256.Digest {
    try SHA256.hash(Array((ArchiveName.plain(header.app) + "\n" + header.instance).utf8))
  }

  var text: [UInt8] {
    Array(
      """
      \(Self.title)
      # archive: \(archive)
      # app: \(app)
      # instance: \(instance)
      # time: \(time)
      # size: \(size)
      # contents: \(contents)
      SHA256 (\(fileName)) = \(sha256)

      """.utf8)
  }

  /// Reads a signature payload, which has exactly one form.
  ///
  /// - Throws: `DrydockError` with code `badSignature`, or `newerFormat`.
  init(_ bytes: [UInt8]) throws {
    let invalid = DrydockError(.badSignature, "the signature payload is malformed")
    guard bytes.count <= Self.sizeLimit, let text = String(validating: bytes, as: UTF8.self) else {
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
      ArchiveTime.isWhole(time), let size = UInt64(try next("# size: ")),
      let contents = SHA256.Digest(hex: try next("# contents: ")),
      case let last = try next("SHA256 ("), let close = last.range(of: ") = ", options: .backwards),
      let sha256 = SHA256.Digest(hex: String(last[close.upperBound...]))
    else { throw invalid }
    (self.archive, self.app, self.instance, self.time) = (archive, app, instance, time)
    (self.size, self.contents, self.sha256) = (size, contents, sha256)
    fileName = String(last[..<close.lowerBound])
    // Nothing but what was read may be signed: no more lines, no other spelling.
    guard self.text == bytes, Self.isPlain(fileName), ArchiveName.plain(app) == app else { throw invalid }
  }

  /// Whether `sha256sum -c` takes a name as it is.
  static func isPlain(_ fileName: String) -> Bool {
    !fileName.isEmpty && fileName.utf8.count <= 255 && !fileName.contains("/")
      && !fileName.unicodeScalars.contains { $0 == "\\" || $0.properties.generalCategory == .control }
  }

  /// Throws unless the signature payload is of the archive with this header.
  func requireOf(_ header: Archive.Header) throws {
    guard archive == header.archive, app == ArchiveName.plain(header.app), time == header.time,
      try instance == Self.instance(of: header)
    else { throw DrydockError(.badSignature, "its signature payload is of another archive") }
  }
}
