import ArchiveSigning
import DrydockErrors
import FileSystem
import Storage

/// What a list shows of an archive's signatures.
package enum SignatureState: Sendable, Equatable {
  case none
  /// There is one, and it was not verified.
  case present
  /// A trusted key has signed the archive.
  case trusted(Signer)
  /// No trusted key has, or the signature is not valid.
  case refused(String)

  /// - Parameters:
  ///   - names: all names of the place.
  ///   - require: throws unless a signature payload is the archive's.
  init(
    of archive: ContainerPath, among names: Set<[UInt8]>, at place: any Place, _ trusted: TrustedKeys?,
    require: (SignatureFiles) throws -> Void
  ) throws {
    guard SignatureFiles.arePresent(of: archive, among: names) else {
      self = .none
      return
    }
    guard let trusted else {
      self = .present
      return
    }
    do {
      guard let signed = try SignatureFiles(of: archive, at: place) else {
        self = .none
        return
      }
      let signer = try signed.signer(trusted)
      try require(signed)
      self = .trusted(signer)
    } catch let error as DrydockError where error.meansForgery || error.code == .newerFormat {
      self = .refused(error.message)
    }
  }
}
