import DrydockErrors
import FileSystem

/// A directory of containers, such as one for each user, customer or device.
package struct ContainerDirectory: Sendable {
  package struct Child: Sendable {
    package let name: String
    package let path: String
    /// Why it cannot be opened, where the directory itself shows that.
    fileprivate var problem: DrydockError?

    /// - Throws: ``DrydockError`` with code `notFound` or `unsupported`.
    package func requireUsable() throws { if let problem { throw problem.at(path) } }
  }

  package let path: String
  /// The containers, sorted by the bytes of their names. A container with two names is listed once. A link that cannot be
  /// followed, and a directory whose name is not UTF-8, may be containers: they are listed, and their turn fails.
  package let containers: [Child]
  /// The other names, sorted: files, and directories that are not recognized as containers. Without names that start with a
  /// dot, such as Drydock's state.
  package let skipped: [String]

  /// Searches a directory for containers, not recursively. Nothing in them is opened but their directories.
  ///
  /// - Parameters:
  ///   - configuration: its stores identify containers.
  ///   - shard: limits the search to names of this part; nil for all.
  /// - Throws: ``DrydockError``: `notFound` (the directory, or any container in it), `notAContainer` (a file, or a
  ///   container itself), `unreadable`.
  package init(
    _ path: String, configuration: ContainerConfiguration = ContainerConfiguration(), shard: Shard? = nil
  ) throws {
    guard let resolved = try ownRealPath(path) else {
      throw DrydockError.lastCall("cannot find the directory of containers", path)
    }
    let directory = try Directory(resolved)
    var alone = configuration
    alone.groups = [:]
    // It may be something of which only an error says what to do with it, such as a device backup.
    if resolved != "/" { _ = try Container(at: resolved, configuration: alone) }
    if resolved != "/", try configuration.recognizes(resolved) {
      throw DrydockError(
        .notAContainer,
        "a container itself, not a directory of containers; name its parent directory", path: path)
    }
    let entries = try Self.entries(of: directory, resolved)
    guard shard == nil || entries.contains(where: { $0.root != nil }) else {
      throw DrydockError(.notFound, "no containers found: it contains no directories", path: path)
    }
    // A group beside its containers may look like a container.
    let groups: Set<String> =
      configuration.groups.isEmpty
      ? []
      : Set(
        entries.compactMap(\.root).flatMap { root in
          ContainerGroup.configured(configuration, root: root).compactMap { realPath($0.root) }
        })
    var (children, others): ([Child], [String]) = ([], [])
    for entry in entries where shard?.contains(entry.name) ?? true {
      let isContainer =
        entry.problem != nil
        || entry.root.map { !groups.contains($0) && configuration.mayRecognize($0) } ?? false
      if isContainer {
        children.append(Child(name: entry.name, path: path + "/" + entry.name, problem: entry.problem))
      } else {
        others.append(entry.name)
      }
    }
    guard !children.isEmpty || shard != nil else {
      throw DrydockError(
        .notFound,
        "no containers found: no entry has an iOS or Android layout, a store of drydock.yaml, or a history of "
          + "migrations", path: path)
    }
    self.path = path
    containers = children.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    skipped = others.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// The root is the directory that it is or leads to; nil for anything else.
  private typealias Entry = (name: String, root: String?, problem: DrydockError?)

  /// The entries of a directory that do not start with a dot. The name of a directory takes precedence over that of a link to
  /// it, and of two links the first.
  private static func entries(of directory: Directory, _ path: String) throws -> [Entry] {
    var (entries, links): ([Entry], [Entry]) = ([], [])
    for bytes in try directory.names() where bytes.first != UInt8(ascii: ".") {
      let type = try directory.status(ContainerPath(name: bytes))?.type
      guard let name = String(validating: bytes, as: UTF8.self) else {
        let problem = DrydockError(.unsupported, "the directory's name is not UTF-8; rename it")
        let mayBeContainer = type == .directory || type == .symbolicLink
        entries.append((String(decoding: bytes, as: UTF8.self), nil, mayBeContainer ? problem : nil))
        continue
      }
      let root = path == "/" ? "/" + name : path + "/" + name
      switch type {
      case .directory: entries.append((name, root, nil))
      case .symbolicLink:
        let target = realPath(root)
        let problem = DrydockError(.notFound, "the link cannot be followed; fix it, or remove it")
        links.append((name, target, target == nil ? problem : nil))
      default: entries.append((name, nil, nil))
      }
    }
    var roots = Set(entries.compactMap(\.root))
    return entries + links.filter { $0.root.map { roots.insert($0).inserted } ?? true }
  }
}

extension ContainerDirectory {
  /// The containers that a list names, one path a line, relative to a directory; empty lines and lines that start with `#` do
  /// not count. Whether they exist is found out when it is their turn.
  ///
  /// - Parameters:
  ///   - bytes: the list's content. Lines end with LF or CR LF, and are not trimmed; a byte order mark is skipped.
  ///   - path: the list's path, for messages.
  ///   - directory: the directory that paths are relative to; empty for the working directory.
  /// - Throws: ``DrydockError``: `malformed` with the line, also for one that names a container again; `notFound` for a list
  ///   without paths.
  package init(list bytes: [UInt8], at path: String, relativeTo directory: String, shard: Shard? = nil) throws
  {
    self.path = path
    let above = directory.isEmpty || directory.hasSuffix("/") ? directory : directory + "/"
    // By bytes, because two names that Unicode takes for the same are two directories; and by what is there.
    var (names, identities): ([[UInt8]: Int], [FileIdentity: Int]) = ([:], [:])
    var children: [Child] = []
    for (index, line) in Self.lines(bytes).enumerated() {
      guard let text = String(validating: line, as: UTF8.self), !line.contains(0) else {
        throw DrydockError(
          .malformed, "not a path in UTF-8; a list of containers has one path a line", path: path,
          line: index + 1)
      }
      if text.isEmpty || text.hasPrefix("#") { continue }
      let name = Self.normalized(text[...])
      let child = Child(name: name, path: name.hasPrefix("/") ? name : above + name)
      let other = FollowedStatus.identity(child.path).flatMap { identities.updateValue(index, forKey: $0) }
      if let other = names.updateValue(index, forKey: Array(name.utf8)) ?? other {
        throw DrydockError(
          .malformed, "the same container as in line \(other + 1); remove one of the lines", path: path,
          line: index + 1)
      }
      if shard?.contains(name) ?? true { children.append(child) }
    }
    if names.isEmpty { throw DrydockError(.notFound, "the list names no containers", path: path) }
    containers = children.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    skipped = []
  }

  private static func lines(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    return bytes.dropFirst(bytes.starts(with: mark) ? mark.count : 0)
      .split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
  }

  /// A path without empty components and `.`, so that one container has one name however it is written.
  private static func normalized(_ path: Substring) -> String {
    let components = path.split(separator: "/").filter { $0 != "." }
    let joined = components.joined(separator: "/")
    return path.hasPrefix("/") ? "/" + joined : joined.isEmpty ? "." : joined
  }
}

// Recognizes containers by their layout, a store of `drydock.yaml`, or Drydock's files. A directory that the user names is
// always a container.
extension ContainerConfiguration {
  private var ownPlaces: [ContainerPath] {
    var places = ContainerLayout.allCases.map(\.historyPath) + [ContainerPath.stateDirectory]
    places += defaults.values
    places += databases.values.joined()
    places += versionMarkers.compactMap {
      if case .json(let path, _) = $0.place { path } else { nil }
    }
    places += [vault].compactMap { $0 }
    if let layout { places += layout.ownDirectories }
    return places
  }

  fileprivate func recognizes(_ root: String) throws -> Bool {
    let directory = try Directory(root)
    if root.hasSuffix(".xcappdata"), try directory.status("AppData")?.type == .directory { return true }
    if root.hasSuffix(".xcappdata/AppData") { return true }
    if try ContainerLayout.detect(in: directory) != .generic { return true }
    return try ownPlaces.contains { try directory.status($0) != nil }
  }

  /// An unreadable directory counts as a container, so that its error is reported.
  fileprivate func mayRecognize(_ root: String) -> Bool {
    do { return try recognizes(root) } catch let error as DrydockError where error.code == .notAContainer {
      return false
    } catch {
      return true
    }
  }
}

extension ContainerLayout {
  /// Directories that the system creates in every container.
  fileprivate var ownDirectories: [ContainerPath] {
    switch self {
    case .ios: ["Documents", "Library"]
    case .android: ["shared_prefs", "databases", "files"]
    case .generic: []
    }
  }
}
