import AppContainer

/// What version control does not keep of a container: empty directories, flags, attributes, modes, and how a
/// database lies on disk.
public struct FixtureSetup: Sendable {
  /// Directories to make, as far as no file makes them.
  public var directories: [ContainerPath] = []
  /// Paths that the app has flagged as not to be backed up.
  public var excluded: [ContainerPath] = []
  /// Extended attributes by path.
  public var attributes: [ContainerPath: [ExtendedAttribute]] = [:]
  /// Permission bits by path.
  public var modes: [ContainerPath: UInt16] = [:]
  /// Databases whose rows lie in the `-wal` alone, as after a crash of the app.
  public var onlyInWAL: Set<ContainerPath> = []
  /// The vault's items, with made-up values; nil when there is no vault.
  public var vault: [VaultItem]?

  init(_ node: YAMLNode?) throws {
    guard let node else { return }
    let reader = try YAMLReader(
      node, what: "container",
      keys: ["directories", "excluded", "attributes", "modes", "only-in-wal", "vault"])
    directories = try reader["directories"]?.paths("`directories`") ?? []
    excluded = try reader["excluded"]?.paths("`excluded`") ?? []
    vault = try FixtureVaultItem.items(reader["vault"])?.map(\.item)
    onlyInWAL = Set(try reader["only-in-wal"]?.paths("`only-in-wal`") ?? [])
    for pair in try reader["attributes"]?.pairs("`attributes`").pairs ?? [] {
      attributes[try pair.path()] = try pair.value.pairs("attributes of a path").pairs.map {
        ExtendedAttribute(name: $0.key.source, value: try $0.value.attributeValue())
      }
    }
    for pair in try reader["modes"]?.pairs("`modes`").pairs ?? [] {
      let number = try pair.value.integer("a mode")
      guard let mode = UInt16(exactly: number), mode <= 0o7777 else {
        throw pair.value.position.error("a mode is written like 0o644, and is no more than 0o7777")
      }
      modes[try pair.path()] = mode
    }
  }
}

extension YAMLNode {
  /// A list of paths below a container's root.
  func paths(_ what: String) throws -> [ContainerPath] {
    try texts(what).map { text in
      do {
        return try ContainerPath(text)
      } catch {
        throw position.error("`\(text)` in \(what) is no path in a container: \(error)", cause: error)
      }
    }
  }

  fileprivate func attributeValue() throws -> [UInt8] {
    switch scalar?.value {
    case .text(let text): return Array(text.utf8)
    case .data(let bytes): return Array(bytes)
    default: throw position.error("an attribute's value is text or !data, not \(summary)")
    }
  }
}

extension YAMLMapping.Pair {
  fileprivate func path() throws -> ContainerPath {
    do {
      return try ContainerPath(key.source)
    } catch {
      throw keyPosition.error("`\(key.source)` is no path in a container: \(error)", cause: error)
    }
  }
}
