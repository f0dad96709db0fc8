/// The tag that marks a directory of things that can be made again (<https://bford.info/cachedir/>).
enum CacheTag {
  static let name: ContainerPath = "CACHEDIR.TAG"
  private static let signature = Array("Signature: 8a477f597d28d172789f06886806bc55".utf8)

  /// Whether a file of this name is the tag: a regular one that starts with the signature.
  static func isValid(_ status: FileStatus, in directory: Directory) -> Bool {
    guard status.type == .file, status.size >= signature.count else { return false }
    // One that cannot be read marks nothing: in doubt a directory is backed up.
    return (try? directory.prefix(of: name, signature.count)) == signature
  }
}
