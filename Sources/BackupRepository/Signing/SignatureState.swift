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
  static func of(
    _ archive: ContainerPath, among names: Set<[UInt8]>, at place: any Place, _ trusted: TrustedKeys?,
    require: (SignaturePayload) throws -> Void
  ) throws -> SignatureState {
    guard SignaturePayload.isSigned(archive, among: names) else { return .none }
    guard let trusted else { return .present }
    do {
      guard let signed = try SignaturePayload.signed(archive, at: place, trusted) else { return .none }
      try require(signed.payload)
      return .trusted(signed.by)
    } catch let error as DrydockError where error.meansForgery || error.code == .newerFormat {
      return .refused(error.message)
    }
  }
}
