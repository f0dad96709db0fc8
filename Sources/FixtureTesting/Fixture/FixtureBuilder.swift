import AppContainer

extension Fixture {
  /// Makes the fixture's container.
  ///
  /// - Parameters:
  ///   - root: The directory to make; it must not exist, its parent must.
  ///   - vault: Where the vault is, when it has one.
  ///   - deviceKeys: To whom the vault is sealed; needed when it has one.
  /// - Throws: `FixtureError` or `ContainerError`; what was made until then stays.
  public func build(
    into root: String, vault: ContainerPath = Layout.ios.vaultPath, deviceKeys: DeviceKeys? = nil
  ) throws {
    let (parent, name) = try split(root)
    let parentDirectory = try Directory(parent)
    guard try parentDirectory.status(name) == nil else {
      throw FixtureError(.notBuilt, "this exists; name a directory that does not", path: root)
    }
    try parentDirectory.createDirectory(name, mode: 0o755)
    let target = try parentDirectory.directory(name)
    let source = try Directory(directory + "/container")
    try source.walk { entry in
      try add(entry, from: source, to: target)
      return .into
    }
    try setup.makeVault(in: target, at: vault, deviceKeys)
    try apply(setup, to: target)
  }

  private func add(_ entry: WalkEntry, from source: Directory, to target: Directory) throws {
    switch entry.status.type {
    case .directory:
      try target.createDirectory(entry.path, mode: 0o755)
    case .symbolicLink:
      try target.createLink(entry.path, target: source.linkTarget(entry.path))
    case .file:
      if let path = entry.path.without(suffix: ".sql") {
        try FixtureDatabase(sql: entry, in: source).build(
          path, in: target, onlyInWAL: setup.onlyInWAL.contains(path))
      } else if let path = entry.path.without(suffix: ".yaml"), path.nameString.hasSuffix(".plist") {
        try target.create(path, try propertyList(entry.path, in: source), mode: 0o600)
      } else {
        // The checkout's umask must not show in the container: of the mode, only "executable" counts.
        let mode: UInt16 = entry.status.mode & 0o100 == 0 ? 0o644 : 0o755
        try target.create(entry.path, source.contents(entry.path), mode: mode)
        try target.setMode(mode, of: entry.path)
      }
    default:
      throw FixtureError(
        .malformed, "a fixture holds files, directories and links only", path: source.full(entry.path))
    }
  }

  private func propertyList(_ path: ContainerPath, in source: Directory) throws -> [UInt8] {
    let file = source.full(path)
    let root = try YAMLDocument(source.contents(path), file: file).root
    return try PropertyListFile(
      format: .binary, root: root?.pairs("a property list").propertyListValues() ?? [:]
    ).encoded()
  }

  private func apply(_ setup: FixtureSetup, to target: Directory) throws {
    for path in setup.directories { try target.createDirectories(path, mode: 0o755) }
    for path in setup.excluded {
      try target.setAttribute(ExclusionAttributes.appleFlag, of: path)
    }
    for (path, attributes) in setup.attributes {
      for attribute in attributes { try target.setAttribute(attribute, of: path) }
    }
    for (path, mode) in setup.modes { try target.setMode(mode, of: path) }
  }

  private func split(_ root: String) throws -> (String, ContainerPath) {
    guard let slash = root.lastIndex(of: "/") else { return (".", try ContainerPath(root)) }
    let parent = root[..<slash]
    return (
      parent.isEmpty ? "/" : String(parent), try ContainerPath(String(root[root.index(after: slash)...]))
    )
  }
}

extension ContainerPath {
  /// The path without an ending of its name, nil when the name has another one or nothing else.
  func without(suffix: String) -> ContainerPath? {
    guard nameString.utf8.count > suffix.utf8.count, name.suffix(suffix.utf8.count) == Array(suffix.utf8)[...]
    else { return nil }
    return try? ContainerPath(bytes: bytes.dropLast(suffix.utf8.count))
  }
}
