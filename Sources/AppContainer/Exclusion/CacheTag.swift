import DrydockErrors
import FileSystem

/// The tag that marks a directory of things that can be made again (<https://bford.info/cachedir/>).
enum CacheTag {
  static let name: ContainerPath = "CACHEDIR.TAG"
  private static let signature = Array("Signature: 8a477f597d28d172789f06886806bc55".utf8)

  /// Whether a file is the tag: a regular one that starts with the signature.
  ///
  /// - Throws: ``DrydockError`` when it cannot be read: then nobody knows.
  static func isValid(_ status: FileStatus, _ name: ContainerPath, in directory: Directory) throws -> Bool {
    guard status.type == .file, status.size >= signature.count else { return false }
    do {
      return try directory.prefix(of: name, signature.count) == signature
    } catch let error as DrydockError where error.code != .permission && error.code != .io {
      // Gone, or a link by now.
      return false
    }
  }
}
