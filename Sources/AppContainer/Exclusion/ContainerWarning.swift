import FileSystem
import Formats

/// Something about a container that may not be what its app or its owner means; it stops nothing.
package struct ContainerWarning: Sendable, Codable, Equatable {
  /// What about.
  package enum Kind: String, Sendable, Codable {
    /// A person's document in a directory that no backup takes and that the system may empty.
    case document
    /// A photo there.
    case photo
    /// A database with tables of the app's own there.
    case database
    /// A flag on the root, which has no effect.
    case rootFlag = "root-flag"
    /// The vault, where no backup takes it.
    case vault
    /// A line of a rule file that has no effect.
    case rule
    /// A group of `drydock.yaml` whose directory does not exist.
    case group
    /// A setting that looks like a secret: in the settings file, and in archives that are not encrypted, anybody can
    /// read it.
    case secret
  }

  /// What about.
  package var kind: Kind
  /// The path it is about; nil when it is about a rule file.
  package var path: ContainerPath?
  /// What is the matter, and what to do.
  package var message: String
}

extension ContainerWarning: CustomStringConvertible {
  /// `path: message`.
  package var description: String { path.map { "\($0): \(message)" } ?? message }
}

extension ContainerWarning {
  /// The most paths that are looked at in directories that no backup takes: a cache may hold millions.
  package static let limit = 20_000

  /// Looks for what should be warned about; what cannot be read is passed over.
  ///
  /// - Parameters:
  ///   - excluded: the topmost paths that rules keep out; only those are entered that the layout or a `CACHEDIR.TAG`
  ///     names. What an app has flagged itself, or a pattern names, is meant so.
  ///   - secrets: whether settings that look like secrets are named; in an encrypted archive they are well kept.
  ///   - settings: reads a settings file, for who has read it already.
  package static func find(
    in container: Container, excluded: [(ContainerPath, Exclusion)], secrets: Bool = true,
    settings: ((ContainerPath) throws -> PropertyListFile?)? = nil
  ) -> [Self] {
    guard let root = try? container.open() else { return [] }
    var warnings = rootWarnings(root, container)
    warnings += (container.layout == .android ? container.configuration.android?.notes ?? [] : []).map {
      Self(kind: .rule, path: nil, message: $0)
    }
    warnings += container.missingGroups.map {
      Self(
        kind: .group, path: $0.path,
        message:
          "the group is to be at \($0.root), where no directory is: nothing of it is seen, stored or changed")
    }
    warnings += vaultWarnings(root, container, excluded)
    var left = limit
    for (top, exclusion) in excluded {
      guard exclusion.rule == .cacheTag || container.layout.emptiedPlaces.contains(top) else { continue }
      // What vanishes or may not be read is no document that somebody could be warned about.
      try? look(at: top, in: root, container.layout, &left, &warnings)
    }
    if secrets {
      let read = settings ?? { try PropertyListFile(bytes: root.contents($0)) }
      warnings += SecretSettings.find(in: container, root: root, excluded: excluded.map(\.0), read)
    }
    return warnings
  }

  private static func vaultWarnings(
    _ root: Directory, _ container: Container, _ excluded: [(ContainerPath, Exclusion)]
  ) -> [Self] {
    let path = container.vaultPath
    guard let (_, exclusion) = excluded.first(where: { path == $0.0 || path.isInside($0.0) }),
      (try? root.status(path))?.type == .file
    else { return [] }
    return [
      Self(
        kind: .vault, path: path,
        message:
          "the vault is where no backup takes it (\(exclusion)), so that its secrets are lost with the device; name "
          + "another place for it, or give it to `include:` in drydock.yaml")
    ]
  }

  private struct EnoughSeen: Error {}

  private static func look(
    at top: ContainerPath, in root: Directory, _ layout: Layout, _ left: inout Int, _ warnings: inout [Self]
  ) throws {
    func examine(_ directory: Directory, _ name: ContainerPath, _ status: FileStatus, _ path: ContainerPath) {
      guard let found = UserContent.kind(of: name, status, in: directory) else { return }
      warnings.append(Self(kind: found, path: path, message: message(found, layout)))
    }
    if let status = try root.status(top), status.type == .file {
      return examine(try root.directory(top.parent), ContainerPath(name: top.name), status, top)
    }
    var count = left
    defer { left = count }
    try root.walk(from: top, unreadable: { _, _ in }) { entry in
      count -= 1
      guard count > 0 else { throw EnoughSeen() }
      // The system's own caches, web pages among them, are full of documents that are nobody's.
      let isSystems = entry.name.bytes.starts(with: "com.apple.".utf8) || entry.name == "WebKit"
      if entry.status.type == .directory { return isSystems ? .over : .into }
      if entry.status.type == .file { examine(entry.parent, entry.name, entry.status, entry.path) }
      return .over
    }
  }

  private static func message(_ kind: Kind, _ layout: Layout) -> String {
    let advice =
      switch layout {
      case .ios: "move it to Documents or Library/Application Support"
      case .android: "move it to files or databases"
      case .generic: "move it, or give it to `include:` in drydock.yaml"
      }
    let what = kind == .database ? "a database with tables of its own" : "a \(kind.rawValue)"
    return "\(what) where no backup takes it and a clean-up may delete it; \(advice)"
  }

  private static func rootWarnings(_ root: Directory, _ container: Container) -> [Self] {
    var found: [String] = []
    if let metadata = try? root.metadata(.root) { found += metadata.exclusionFlags.map(\.rawValue) }
    if let status = try? root.status(CacheTag.name),
      (try? CacheTag.isValid(status, CacheTag.name, in: root)) == true
    {
      found.append(Exclusion.Rule.cacheTag.rawValue)
    }
    return found.map {
      Self(
        kind: .rootFlag, path: .root,
        message: "the container itself is marked to stay out of backups (\($0)), which has no effect on one "
          + "that is named")
    }
  }
}

extension Layout {
  /// The directories that the system empties as it likes.
  var emptiedPlaces: [ContainerPath] {
    switch self {
    case .ios: ["tmp", "Library/Caches"]
    case .android: ["cache", "code_cache"]
    case .generic: []
    }
  }
}
