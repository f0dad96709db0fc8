import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Reads what is captured: each file twice, once to find out what must not stay, and once to write it down.
struct CaptureSource {
  /// Above this no file belongs into version control.
  private static let sizeLimit = 64 << 20

  /// The container's directory, with its groups.
  var root: Directory { staged.live }
  private let staged: StagedContainer
  private var digests: [ContainerPath: SHA256.Digest] = [:]

  init(_ staged: StagedContainer) { self.staged = staged }

  /// A file's content.
  ///
  /// - Throws: `DrydockError` with code `notCaptured` for a file that is too large, or another one than before: what is new
  ///   in it was not looked at.
  mutating func contents(_ path: ContainerPath) throws -> [UInt8] {
    guard try root.status(path)?.size ?? 0 <= UInt64(Self.sizeLimit) else {
      throw DrydockError(
        .notCaptured, "\(path) has more than 64 MB, which no fixture should hold; leave it out with --drop")
    }
    let bytes = try root.contents(path)
    let digest = try bytes.withUnsafeBytes { try SHA256.hash($0) }
    guard digests[path, default: digest] == digest else {
      throw DrydockError(
        .notCaptured, "\(path) changed while it was captured; close the app, or capture again")
    }
    digests[path] = digest
    return bytes
  }

  /// Runs a body with a database: the same captured copy each time.
  func read<T>(_ path: ContainerPath, _ body: (CapturedDatabase) throws -> T) throws -> T {
    do {
      return try staged.readDatabase(at: path) { try body(CapturedDatabase(path, in: $0)) }
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError(
        .notCaptured, "\(path) cannot be looked into: \(error.message); leave it out with --drop",
        cause: error)
    }
  }
}
