import AppContainer
import FileSystem
import Formats

/// What version control does not keep of a container: empty directories, flags, attributes, modes, the vault, and how a
/// database lies on disk.
package struct FixtureSetup: Sendable {
  /// A path, with the place in `fixture.yaml` that names it.
  struct Place: Sendable {
    var path: ContainerPath
    var position: YAMLPosition
  }

  /// What a path is given.
  struct Mark: Sendable {
    enum Kind: Sendable {
      case attribute(ExtendedAttribute)
      case mode(UInt16)
    }

    var place: Place
    var kind: Kind
  }

  /// Directories to make, as far as no file makes them.
  let directories: [Place]
  /// Attributes first; then modes, the deepest first, since one may close a directory.
  let marks: [Mark]
  /// Databases whose rows lie in the `-wal` alone, as after a crash of the app.
  let onlyInWAL: [Place]
  /// Files that are taken as they are although their names say that something is made of them.
  let verbatim: [Place]
  /// The vault's items, with made-up values; nil when there is no vault.
  package let vault: [FixtureVaultItem]?

  /// Whether it says nothing.
  var isEmpty: Bool { directories.isEmpty && vault == nil }

  init(_ node: YAMLNode?) throws {
    let reader = try node.map {
      try YAMLReader(
        $0, what: "container",
        keys: [
          "directories", "excluded", "attributes", "modes", "protection", "only-in-wal", "verbatim", "vault",
        ])
    }
    directories = try Self.places(reader, "directories") { try $0.path($1) }
    onlyInWAL = try Self.places(reader, "only-in-wal") { try $0.path($1) }
    verbatim = try Self.places(reader, "verbatim") { try $0.path($1) }
    vault = try FixtureVaultItem.items(reader?["vault"])
    var marks = try Self.places(reader, "excluded") { try $0.pathOrRoot($1) }.map {
      Mark(place: $0, kind: .attribute(ExclusionAttributes.appleFlag))
    }
    for pair in try reader?["protection"]?.pairs("`protection`").pairs ?? [] {
      let name = try pair.value.protection().appleName
      let attribute = ExtendedAttribute(name: ProtectionClass.attribute, value: Array(name.utf8))
      marks.append(Mark(place: try pair.place(), kind: .attribute(attribute)))
    }
    for pair in try reader?["attributes"]?.pairs("`attributes`").pairs ?? [] {
      for attribute in try pair.value.pairs("the attributes of a path").pairs {
        marks.append(Mark(place: try pair.place(), kind: .attribute(try attribute.attribute())))
      }
    }
    let modes = try reader?["modes"]?.pairs("`modes`").pairs.map { pair in
      Mark(place: try pair.place(), kind: .mode(try pair.value.mode()))
    }
    self.marks = marks + (modes ?? []).sorted { $0.place.path > $1.place.path }
  }

  private static func places(
    _ reader: YAMLReader?, _ key: String, _ path: (YAMLNode, String) throws -> ContainerPath
  ) throws -> [Place] {
    guard let node = reader?[key] else { return [] }
    return try (node.sequence ?? [node]).map {
      Place(path: try path($0, "an element of `\(key)`"), position: $0.position)
    }
  }
}

extension YAMLNode {
  fileprivate func mode() throws -> UInt16 {
    guard let mode = UInt16(exactly: try integer("a mode")), mode <= 0o7777 else {
      throw position.error("a mode is written like 0o644, and is no more than 0o7777")
    }
    return mode
  }
}

extension YAMLMapping.Pair {
  fileprivate func place() throws -> FixtureSetup.Place {
    FixtureSetup.Place(path: try path(), position: keyPosition)
  }

  fileprivate func attribute() throws -> ExtendedAttribute {
    guard case .text(let name) = key.value, !name.isEmpty, !name.utf8.contains(0) else {
      throw keyPosition.error("an attribute's name is text, not \(key.value.summary)")
    }
    switch value.scalar?.value {
    case .text(let text): return ExtendedAttribute(name: name, value: Array(text.utf8))
    case .data(let bytes): return ExtendedAttribute(name: name, value: bytes)
    default: throw value.position.error("an attribute's value is text or !data, not \(value.summary)")
    }
  }
}
