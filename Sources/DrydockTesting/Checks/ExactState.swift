import AppStores
import Cryptography
import FileSystem

/// Everything about every path of a container, for a check that nothing at all is different: bytes, modes, owners,
/// times, attributes, links.
struct ExactState {
  private struct Entry: Equatable {
    var type: FileType
    var metadata: FileMetadata
    /// The content's SHA-256, or what a link points to.
    var content: String?
    /// The first of the paths that share its inode.
    var shared: ContainerPath
  }

  private var entries: [ContainerPath: Entry] = [:]

  /// Looks at all below an open root; Drydock's own state in it is left out.
  init(of root: Directory) throws {
    var inodes: [FileIdentity: ContainerPath] = [:]
    try add(.root, root.status(), root, &inodes)
    try root.walk { entry in
      if root.isState(entry.path) { return .over }
      try add(entry.path, entry.status, root, &inodes)
      return .into
    }
  }

  private mutating func add(
    _ path: ContainerPath, _ status: FileStatus, _ root: Directory,
    _ inodes: inout [FileIdentity: ContainerPath]
  ) throws {
    guard let metadata = try root.metadata(path) else { return }
    let first = inodes[status.identity] ?? path
    inodes[status.identity] = first
    let content: String? =
      switch status.type {
      case .file: try ContentHash.of(path, in: root, isDatabase: false).hex
      case .symbolicLink: ContainerPath.printable(try root.linkTarget(path))
      case .directory, .other: nil
      }
    entries[path] = Entry(type: status.type, metadata: metadata, content: content, shared: first)
  }

  /// What is different from an earlier state, by path.
  func findings(since before: ExactState, _ check: Finding.Check) -> [Finding] {
    Set(entries.keys).union(before.entries.keys).sorted().flatMap { path in
      Self.findings(before.entries[path], entries[path], path, check)
    }
  }

  private static func findings(
    _ old: Entry?, _ new: Entry?, _ path: ContainerPath, _ check: Finding.Check
  ) -> [Finding] {
    func finding(_ message: String, _ expected: String? = nil, _ found: String? = nil) -> Finding {
      var finding = Finding(
        check, message, place: path.isRoot ? "." : path.description, expected: expected, found: found)
      (finding.noun, finding.pattern) = ("path", path.pattern)
      return finding
    }
    guard let old else { return [finding("the path is new")] }
    guard let new else { return [finding("the path is gone")] }
    if old == new { return [] }
    guard old.type == new.type else {
      return [finding("the path has another type", old.type.rawValue, new.type.rawValue)]
    }
    var findings: [Finding] = []
    func compare(_ message: String, _ value: (Entry) -> String?) {
      let (before, after) = (value(old), value(new))
      if before != after { findings.append(finding(message, before, after)) }
    }
    if old.type == .symbolicLink {
      compare("the link points elsewhere", \.content)
    } else if old.content != new.content {
      findings.append(finding("the bytes differ"))
    }
    compare("the mode differs") { String($0.metadata.mode, radix: 8) }
    compare("the owner differs") { "\($0.metadata.user):\($0.metadata.group)" }
    compare("the modification time differs") { "\($0.metadata.modified) ns" }
    let (before, after) = (old.metadata, new.metadata)
    if before.attributes != after.attributes || before.isNoDump != after.isNoDump {
      let names = { (metadata: FileMetadata) in
        (metadata.attributes.map(\.name) + (metadata.isNoDump ? ["nodump"] : [])).joined(separator: ", ")
      }
      findings.append(finding("the attributes differ", names(before), names(after)))
    }
    if old.shared != new.shared {
      findings.append(
        finding("the path is a hard link of another path", old.shared.description, new.shared.description))
    }
    return findings
  }
}
