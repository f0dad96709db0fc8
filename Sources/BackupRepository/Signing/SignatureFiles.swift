import ArchiveManifest
import AgeEncryption
import ArchiveFile
import ArchiveSigning
import DrydockErrors
import FileSystem
import Foundation
import Storage

/// The files beside a signed archive: its signature payload, `<archive>.statement`, and with `.minisig` or `.sig`
/// behind that, the signatures.
extension SignaturePayload {
  private static let suffix = ".statement"
  private static let signatureSuffixes = [".minisig", ".sig"]
  private static let suffixes = [suffix] + signatureSuffixes.map { suffix + $0 }

  private static func file(_ archive: ContainerPath, _ suffix: String) -> ContainerPath {
    ContainerPath(name: archive.bytes + Array(suffix.utf8))
  }

  /// The name of the archive that a file belongs to; nil for any other file.
  static func archive(ofFile name: [UInt8]) -> [UInt8]? {
    let archive = suffixes.first { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
      .map { Array(name.dropLast($0.utf8.count)) }
    return archive.flatMap { ArchiveLabel.isFileName($0) ? $0 : nil }
  }

  /// Whether an archive has a signature payload and a signature among these names: nothing of it is verified.
  static func isSigned(_ archive: ContainerPath, among names: Set<[UInt8]>) -> Bool {
    names.contains(file(archive, suffix).bytes)
      && signatureSuffixes.contains { names.contains(file(archive, suffix + $0).bytes) }
  }

  /// The same at a place, without a listing.
  static func isSigned(_ archive: ContainerPath, at place: any Place) throws -> Bool {
    try place.file(file(archive, suffix)) != nil
      && signatureSuffixes.contains { try place.file(file(archive, suffix + $0)) != nil }
  }

  /// Whether there is any of the files.
  static func hasFiles(of archive: ContainerPath, at place: any Place) throws -> Bool {
    try suffixes.contains { try place.file(file(archive, $0)) != nil }
  }

  static func removeFiles(of archive: ContainerPath, at place: any Place, but kept: [String] = []) throws {
    for suffix in suffixes where !kept.contains(suffix) { try place.remove(file(archive, suffix)) }
  }

  /// The content of a small file; nil if there is none.
  private static func contents(_ name: ContainerPath, _ limit: Int, at place: any Place) throws -> [UInt8]? {
    do {
      return try place.contents(name, limit: limit)
    } catch let error as DrydockError where error.code == .notFound {
      return nil
    } catch let error as DrydockError where error.code == .unsupported {
      throw DrydockError(
        .badSignature, "too large for a signature payload or a signature", path: place.full(name))
    }
  }

  /// The signature payload of an archive, and who signed it; nil without one.
  ///
  /// - Throws: `DrydockError`: `untrusted`, `badSignature`, `newerFormat`.
  static func signed(
    _ archive: ContainerPath, at place: any Place, _ trusted: TrustedKeys
  ) throws -> (payload: SignaturePayload, by: Signer)? {
    guard let text = try contents(file(archive, suffix), sizeLimit, at: place) else { return nil }
    let signatures = try signatureSuffixes.compactMap {
      try contents(file(archive, suffix + $0), TrustedKeys.signatureSizeLimit, at: place)
    }
    let payload = try DrydockError.locating(place.full(archive)) { try SignaturePayload(text) }
    let time = try? Date(payload.time, strategy: .iso8601)
    return (payload, try trusted.signer(of: text, at: time ?? .distantPast, signatures))
  }

  /// The signature payload of an archive by its path, and who signed it.
  ///
  /// - Throws: `DrydockError`: `untrusted` also without a signature payload; `badSignature`.
  static func trusted(of path: String, _ trusted: TrustedKeys) throws -> (
    payload: SignaturePayload, by: Signer
  ) {
    let (place, name) = try Places.ofFile(path)
    do {
      guard let signed = try signed(name, at: place, trusted) else {
        throw DrydockError(.untrusted, "it is not signed")
      }
      return signed
    } catch let error as DrydockError where error.meansForgery {
      throw DrydockError(
        error.code,
        "\(error.message); only archives that a trusted key has signed are read here, use another one",
        path: path,
        cause: error)
    }
  }

  /// Signs the archive under a name, before it has that; on disk when this returns.
  ///
  /// - Parameter isNew: whether the name is random, so that there is nothing to remove.
  func sign(_ archive: ContainerPath, at place: any Place, with keys: [SigningKey], isNew: Bool = false)
    throws
  {
    let name = String(decoding: archive.bytes, as: UTF8.self)
    guard Self.isPlain(name), name.utf8.elementsEqual(archive.bytes) else {
      throw DrydockError(
        .unsupported, "the name has characters that sha256sum does not take; choose another one to sign it",
        path: place.full(archive))
    }
    var payload = self
    payload.fileName = name
    let (text, suffix) = (payload.text, Self.suffix)
    let comment =
      "timestamp:\(Int(Date().timeIntervalSince1970))\tfile:\(name)\(suffix)\tarchive:\(self.archive)"
    let signatures = try keys.map { (suffix + "." + $0.suffix, try $0.sign(text, comment: comment)) }
    // One of other bytes would look forged. Signed again, an archive has the same payload, and is never without a
    // signature.
    let isAgain =
      try !isNew && Self.contents(Self.file(archive, suffix), Self.sizeLimit, at: place) == text
    if !isNew, !isAgain { try Self.removeFiles(of: archive, at: place) }
    // A signature payload without a signature is worth nothing; so a signature is there before it.
    for (suffix, bytes) in signatures { try place.put(Self.file(archive, suffix), bytes) }
    if isAgain {
      return try Self.removeFiles(of: archive, at: place, but: [suffix] + signatures.map(\.0))
    }
    try place.put(Self.file(archive, suffix), text)
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
    try SignaturePayload(part.header, bytes).sign(name, at: place, with: signing)
    try place.sync()
    return report
  }
}
