import AppContainer
import FileSystem
import Formats

/// Goes through all that is captured and collects what must not stay.
struct OriginalSources {
  private(set) var collector: OriginalCollector
  private(set) var source: CaptureSource
  /// The columns of all databases, as `TABLE.COLUMN`.
  private(set) var columns: Set<String> = []
  private let options: CaptureOptions

  init(_ source: CaptureSource, _ options: CaptureOptions) {
    (self.source, self.options) = (source, options)
    collector = OriginalCollector(choosing: options.keys)
  }

  /// Takes the identifiers that the container's directories are named by.
  mutating func add(directoriesOf container: Container) {
    for identifier in DeviceIdentifiers.of(container) {
      collector.add(identifier: identifier, LeafPlace(label: "the names of the container's directories"))
    }
  }

  /// Looks at a vault's items.
  mutating func add(_ vault: CapturedVault) throws { try vault.collect(&collector) }

  /// Looks at a path: its name, its attributes, its content.
  mutating func add(_ item: CaptureInventory.Item) throws {
    for component in item.path.components {
      guard let name = String(validating: component, as: UTF8.self), SecretPattern.isSecret(text: name) else {
        continue
      }
      _ = collector.key(name, isSecret: true, LeafPlace(label: "the names of files"))
    }
    for attribute in try source.root.metadata(item.path)?.attributes ?? [] {
      let place = LeafPlace(
        name: SecretName(attribute.name), isChosen: options.keys.contains(attribute.name),
        label: "\(item.path): the attribute \(attribute.name)")
      _ = try ValueWalk.data(attribute.value, place, &collector)
    }
    switch item.kind {
    case .directory, .excludedDirectory, .link: break
    case .database: try add(database: item.path)
    case .settings: try add(settings: item.path)
    case .file:
      let place = LeafPlace(isChosen: options.replaces(item.path), label: item.path.description)
      _ = try ValueWalk.data(source.contents(item.path), place, &collector)
    }
  }

  private mutating func add(database path: ContainerPath) throws {
    try source.read(path) { database in
      for table in database.tables {
        for column in table.columns { columns.insert("\(table.name).\(column.name)") }
      }
      try database.visit(&collector, options)
    }
  }

  private mutating func add(settings path: ContainerPath) throws {
    let bytes = try source.contents(path)
    let place = LeafPlace(label: path.description)
    guard let settings = try? PropertyListFile(bytes: bytes) else {
      _ = try ValueWalk.data(bytes, place, &collector)
      return
    }
    _ = try CapturedSettings.visited(settings.root, of: path, &collector)
    switch settings.format {
    // The fields of a keyed archive stand beside their names then.
    case .binary:
      if let nested = NestedValue(.data(bytes)) { _ = try ValueWalk.value(nested.value, place, &collector) }
    // Remarks are no settings.
    case .xml: _ = try ValueWalk.data(bytes, place, &collector)
    }
  }
}
