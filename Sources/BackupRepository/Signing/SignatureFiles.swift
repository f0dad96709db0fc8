import ArchiveManifest
import AgeEncryption
import ArchiveFile
import ArchiveSigning
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Storage

/// The signature payload of an archive and its signatures, in files beside it: `<archive>.statement`, and with
/// `.minisig` or `.sig` behind that.
struct SignatureFiles {
  let payload: SignaturePayload
  /// The bytes that are signed.
  let text: [UInt8]
  let signatures: [[UInt8]]

  fileprivate static let suffix = ".statement"
  private static let signatureSuffixes = [".minisig", ".sig"]
  private static let suffixes = [suffix] + signatureSuffixes.map { suffix + $0 }

  /// The name of the archive that a file belongs to; nil for any other file.
  static func archive(ofFile name: [UInt8]) -> [UInt8]? {
    let archive = suffixes.first { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
      .map { Array(name.dropLast($0.utf8.count)) }
    return archive.flatMap { ArchiveName.isArchive($0) ? $0 : nil }
  }

  /// Whether an archive has a signature payload and a signature among these names: nothing of it is verified.
  static func arePresent(of archive: ContainerPath, among names: Set<[UInt8]>) -> Bool {
    names.contains(file(archive, suffix).bytes)
      && signatureSuffixes.contains { names.contains(file(archive, suffix + $0).bytes) }
  }

  /// Nil without a signature payload.
  init?(of archive: ContainerPath, at place: any Place) throws {
    guard let text = try Self.contents(Self.file(archive, Self.suffix), SignaturePayload.sizeLimit, at: place)
    else { return nil }
    self.text = text
    signatures = try Self.signatureSuffixes.compactMap {
      try Self.contents(Self.file(archive, Self.suffix + $0), TrustedKeys.signatureSizeLimit, at: place)
    }
    payload = try DrydockError.locating(place.full(archive)) { try SignaturePayload(text) }
  }

  /// The content of a small file; nil if there is none.
  fileprivate static func contents(_ name: ContainerPath, _ limit: Int, at place: any Place) throws
    -> [UInt8]?
  {
    do {
      return try place.contents(name, limit: limit)
    } catch let error as DrydockError where error.code == .notFound {
      return nil
    } catch let error as DrydockError where error.code == .unsupported {
      throw DrydockError(
        .badSignature, "too large for a signature payload or a signature", path: place.full(name))
    }
  }

  static func remove(of archive: ContainerPath, at place: any Place, but kept: [String] = []) throws {
    for suffix in suffixes where !kept.contains(suffix) { try place.remove(file(archive, suffix)) }
  }

  static func hasSignaturePayload(of archive: ContainerPath, at place: any Place) throws -> Bool {
    try place.file(file(archive, suffix)) != nil
  }

  /// Whether there is any of the files.
  static func anyPresent(of archive: ContainerPath, at place: any Place) throws -> Bool {
    try suffixes.contains { try place.file(file(archive, $0)) != nil }
  }

  fileprivate static func file(_ archive: ContainerPath, _ suffix: String) -> ContainerPath {
    ContainerPath(name: archive.bytes + Array(suffix.utf8))
  }

  /// Who signed it.
  ///
  /// - Throws: `DrydockError`: `untrusted`, `badSignature`.
  func signer(_ trusted: TrustedKeys) throws -> Signer {
    let time = try? Date(payload.time, strategy: .iso8601)
    return try trusted.signer(of: text, at: time ?? .distantPast, signatures)
  }

  /// The signature payload of an archive by its path, and who signed it.
  ///
  /// - Throws: `DrydockError`: `untrusted` also without a signature payload; `badSignature`.
  static func trusted(of path: String, _ trusted: TrustedKeys) throws -> (signed: SignatureFiles, by: Signer)
  {
    let (place, name) = try Places.ofFile(path)
    do {
      guard let signed = try SignatureFiles(of: name, at: place) else {
        throw DrydockError(.untrusted, "it is not signed")
      }
      return (signed, try signed.signer(trusted))
    } catch let error as DrydockError where error.meansForgery {
      throw DrydockError(
        error.code,
        "\(error.message); only archives that a trusted key has signed are read here, use another one",
        path: path,
        cause: error)
    }
  }

  /// Throws unless an open archive is the one that was signed. Nothing of it but the tables at its end and its header was read
  /// before.
  func requireOf(_ header: Archive.Header, _ json: [UInt8], _ reader: ArchiveReader) throws {
    try payload.requireOf(header)
    guard payload.size == reader.fileSize, try payload.contents == reader.contentsCode(header: json)
    else {
      throw DrydockError(
        .badSignature, "its content is not what was signed; it was changed, or signed under other keys")
    }
  }

  /// Throws unless a file that no key opens may be the one that was signed.
  func requireOf(_ file: PlaceFile, _ label: ArchiveLabel?) throws {
    guard payload.size == file.size, label.map({ payload.archive.description.hasPrefix($0.id) }) ?? true
    else { throw DrydockError(.badSignature, "its signature payload is of another archive") }
  }

  /// Throws unless all bytes are those that were signed.
  func requireAllBytes(_ reader: ArchiveReader) throws {
    guard try reader.fileDigest() == payload.sha256 else {
      throw DrydockError(
        .badSignature, "its bytes are not those that were signed; use another archive", path: reader.path)
    }
  }
}

/// How copies of archives are signed.
package struct CopySigning: Sendable {
  package var keys: [SigningKey]
  /// Whose signatures the originals must have; nil when nothing was said.
  package var trusted: TrustedKeys?

  package init(keys: [SigningKey] = [], trusted: TrustedKeys? = nil) {
    (self.keys, self.trusted) = (keys, trusted)
  }

  /// Whose signatures the originals must have, if copies are signed: the same as before, or those of the keys.
  package var sources: TrustedKeys? { keys.isEmpty ? nil : trusted ?? SigningKey.trusted(keys) }
}

/// What is signed of an archive that is complete, and has no name yet.
struct SignatureDraft {
  var header: Archive.Header, bytes: SignedBytes
  var keys: [SigningKey]

  /// Signs the archive under a name, before it has that; on disk when this returns.
  ///
  /// - Parameter isNew: whether the name is random, so that there is nothing to remove.
  func write(_ archive: ContainerPath, at place: any Place, isNew: Bool = false) throws {
    let name = String(decoding: archive.bytes, as: UTF8.self)
    guard SignaturePayload.isPlain(name), name.utf8.elementsEqual(archive.bytes) else {
      throw DrydockError(
        .unsupported, "the name has characters that sha256sum does not take; choose another one to sign it",
        path: place.full(archive))
    }
    let payload = try SignaturePayload(
      header, fileName: name, size: bytes.size, sha256: bytes.sha256, contents: bytes.contents)
    let text = payload.text
    let (suffix, file) = (SignatureFiles.suffix, SignatureFiles.file)
    let comment =
      "timestamp:\(Int(Date().timeIntervalSince1970))\tfile:\(name)\(suffix)\tarchive:\(payload.archive)"
    let signatures = try keys.map { (suffix + "." + $0.suffix, try $0.sign(text, comment: comment)) }
    // One of other bytes would look forged. Signed again, an archive has the same payload, and is never without a
    // signature.
    let isAgain =
      try !isNew
      && SignatureFiles.contents(file(archive, suffix), SignaturePayload.sizeLimit, at: place) == text
    if !isNew, !isAgain { try SignatureFiles.remove(of: archive, at: place) }
    // A signature payload without a signature is worth nothing; so a signature is there before it.
    for (suffix, bytes) in signatures { try place.put(file(archive, suffix), bytes) }
    if isAgain {
      return try SignatureFiles.remove(of: archive, at: place, but: [suffix] + signatures.map(\.0))
    }
    try place.put(file(archive, suffix), text)
  }
}

extension Repository {
  /// Signs an archive that is there already, after all of it was verified. Its signatures are replaced.
  ///
  /// - Parameters:
  ///   - path: the archive's file.
  ///   - keys: what opens it.
  ///   - lockTimeout: seconds to wait for those who remove from the repository.
  /// - Throws: `DrydockError`: `damaged`, `notFound`, `locked`.
  package static func sign(
    _ path: String, with signing: [SigningKey], keys: AgeKeys, limit: ExpansionLimit = .standard,
    lockTimeout: Double = 0, progress: WorkProgress? = nil
  ) throws -> VerificationReport {
    let (folder, name) = try Places.ofFile(path)
    let place = try Repository(folder.path).locked(exclusive: true, timeout: lockTimeout)
    let archive = try Archive(path: place.full(name), keys: keys, limit: limit)
    let report = try Verification.run(archive, data: true, progress: progress)
    let part = archive.parts[0]
    let bytes = SignedBytes(
      size: part.reader.fileSize, sha256: try part.reader.fileDigest(),
      contents: try part.reader.contentsCode(header: part.json))
    try SignatureDraft(header: part.header, bytes: bytes, keys: signing).write(name, at: place)
    try place.sync()
    return report
  }
}
