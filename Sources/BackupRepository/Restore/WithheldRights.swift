import FileSystem

/// The rights that an archive's file would give to whoever runs it: set-user-id and set-group-id bits, and capabilities.
///
/// Whoever wrote an archive chose them, and its files' owners. They come back only when they are asked for
/// (`--keep-set-id`), so that an archive from elsewhere cannot leave a program that runs as root. The set-group-id bit of a
/// directory, which gives its group to what is made in it, is held like the others.
extension FileMetadata {
  private static let setIDs: UInt16 = 0o6000
  private static let capability = "security.capability"

  /// Whether it gives rights.
  var givesRights: Bool {
    mode & Self.setIDs != 0 || attributes.contains { $0.name == Self.capability }
  }

  /// The metadata without rights, but for those that the path has already, for the same content and owner.
  func withoutRights(keepingThoseOf present: FileMetadata? = nil) -> FileMetadata {
    let present = present.flatMap { $0.user == user && $0.group == group ? $0 : nil }
    var metadata = self
    metadata.mode &= ~Self.setIDs | (present?.mode ?? 0)
    metadata.attributes.removeAll { attribute in
      attribute.name == Self.capability && present?.attributes.contains(attribute) != true
    }
    return metadata
  }
}

extension ManifestEntry {
  /// The entry with ``FileMetadata/withoutRights(keepingThoseOf:)``; a link has none.
  func withoutRights(keepingThoseOf present: FileMetadata? = nil) -> ManifestEntry {
    guard kind != .symbolicLink, metadata.givesRights else { return self }
    var entry = self
    entry.metadata = metadata.withoutRights(keepingThoseOf: present)
    return entry
  }
}
