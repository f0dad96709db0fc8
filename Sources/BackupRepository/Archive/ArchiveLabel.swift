/// Whose archive of when a file is: as its header says, or as far as its name tells.
package struct ArchiveLabel: Sendable, Hashable {
  /// Bundle id or package, and which instance of it. In a name odd characters of them are `-`.
  package var app: String, instance: String
  /// When the capture began, UTC: `2026-11-20T10:15:00Z`.
  package var time: String
  /// The archive's id, or its beginning of 8 digits or more.
  package var id: String

  /// App and instance, which together own archives: `com.example.notes/red`.
  package var owner: String { "\(app)/\(instance)" }
}

extension ArchiveLabel {
  init(_ header: ArchiveHeader) {
    self.init(
      app: header.app, instance: header.instance, time: header.time, id: header.archive.description)
  }

  /// Whether both may name one archive: of one the id may be cut.
  func mayBe(_ other: ArchiveLabel) -> Bool { id.hasPrefix(other.id) || other.id.hasPrefix(id) }
}
