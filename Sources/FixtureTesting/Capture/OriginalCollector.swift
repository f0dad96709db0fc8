import AppContainer
import FileSystem
import Formats
import Foundation

/// The values of a container that must not be in its fixture.
struct Originals {
  struct Entry {
    /// Whether it is a secret; else it was chosen.
    var isSecret: Bool
    /// Where it was found first, for people.
    var source: String
    /// The text as it was found, in one way or another.
    var spellings: Set<String> = []
    /// Whether it identifies a device or a container.
    var isIdentifier = false
  }

  /// Texts, line by line, with the letters A to Z in lower case: who writes an address in capitals means the same one.
  private(set) var texts: [String: Entry] = [:]
  /// Binary data.
  private(set) var data: [[UInt8]: Entry] = [:]

  /// Takes a text, unless a made-up one would look the same.
  mutating func add(_ text: String, isSecret: Bool, source: String) {
    for line in Self.lines(of: text).lazy.map(\.content) where Pseudonyms.canChange(line) {
      var entry = texts[line.asciiLowercased] ?? Entry(isSecret: isSecret, source: source)
      entry.isSecret = entry.isSecret || isSecret
      entry.spellings.insert(line)
      texts[line.asciiLowercased] = entry
    }
  }

  /// Takes an identifier of a device or a container; a UUID counts with its dashes.
  mutating func add(identifier: String, source: String) {
    let text = DeviceIdentifiers.uuid(identifier) ?? identifier
    add(text, isSecret: false, source: source)
    texts[text.asciiLowercased]?.isIdentifier = true
  }

  /// Takes bytes, unless so few that they occur by chance.
  mutating func add(_ bytes: [UInt8], isSecret: Bool, source: String) {
    guard bytes.count >= PatternIndex.least else { return }
    data[bytes, default: Entry(isSecret: isSecret, source: source)].isSecret =
      isSecret || data[bytes]?.isSecret == true
  }

  /// The lines of a text: white space that a line starts and ends with belongs to none.
  static func lines(of text: String) -> [(content: String, gap: String)] {
    var lines: [(content: String, gap: String)] = []
    var rest = Substring(text)
    while !rest.isEmpty {
      let line = rest.prefix { !$0.isNewline }
      let lead = line.prefix { $0.isWhitespace }
      if !lead.isEmpty { lines.append(("", String(lead))) }
      var content = line.dropFirst(lead.count)
      while content.last?.isWhitespace == true { content.removeLast() }
      let end = rest[content.endIndex...].prefix { $0.isWhitespace }
      lines.append((String(content), String(end)))
      rest = rest[end.endIndex...]
    }
    return lines
  }
}

/// Finds the values that must not be in a fixture.
struct OriginalCollector: LeafVisitor {
  let resolvesArchives = true
  let keys: Set<String>
  private(set) var originals = Originals()

  init(choosing keys: Set<String>) { self.keys = keys }

  mutating func text(_ text: String, _ place: LeafPlace) -> String {
    if place.isIdentifier, DeviceIdentifiers.isIdentifier(text) { add(identifier: text, place) }
    for identifier in DeviceIdentifiers.inPaths(text) { add(identifier: identifier, place) }
    let isSecret = SecretPattern.isSecret(leaf: .string(text), name: place.name, looksInside: false)
    if isSecret || place.isChosen {
      originals.add(text, isSecret: isSecret, source: place.label)
    } else {
      for span in SecretSpans(text, choosing: keys).spans {
        originals.add(String(text[span.range]), isSecret: span.isSecret, source: place.label)
      }
    }
    return text
  }

  mutating func data(_ bytes: [UInt8], _ place: LeafPlace) throws -> [UInt8] {
    if let text = BinaryText(bytes) { _ = try ValueWalk.text(text.text, place, &self) }
    let isSecret = SecretPattern.isSecret(leaf: .data(bytes), name: place.name, looksInside: false)
    if isSecret || place.isChosen { originals.add(bytes, isSecret: isSecret, source: place.label) }
    if place.isIdentifier, let identifier = DeviceIdentifiers.uuid(bytes: bytes) {
      add(identifier: identifier, place)
    }
    // Bookmarks and their like hold paths.
    guard DeviceIdentifiers.holdsPath(bytes) else { return bytes }
    for run in BinaryText.runs(in: bytes) {
      for identifier in DeviceIdentifiers.inPaths(run) { add(identifier: identifier, place) }
    }
    return bytes
  }

  /// Takes an identifier of the device or of a container, which is then looked for in every form.
  mutating func add(identifier: String, _ place: LeafPlace) {
    originals.add(identifier: identifier, source: place.label)
  }

  mutating func number(_ digits: String, _ place: LeafPlace) -> String {
    if place.isChosen || Self.isSecret(digits, place) {
      originals.add(digits, isSecret: Self.isSecret(digits, place), source: place.label)
    }
    return digits
  }

  mutating func date(_ date: Date, _ place: LeafPlace) -> Date { date }

  mutating func key(_ key: String, isSecret: Bool, _ place: LeafPlace) -> String {
    if isSecret { originals.add(key, isSecret: true, source: "a name in \(place.label)") }
    return key
  }

  /// Takes a secret that is one in any place, such as a vault's.
  mutating func add(secret bytes: [UInt8], _ place: LeafPlace) throws {
    var place = place
    place.name = .secret
    place.isChosen = true
    _ = try ValueWalk.data(bytes, place, &self)
  }

  static func isSecret(_ digits: String, _ place: LeafPlace) -> Bool {
    guard let number = Int64(digits) else { return place.name == .secret }
    return SecretPattern.isSecret(leaf: .integer(number), name: place.name, looksInside: false)
  }
}

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
    // The fields of a keyed archive have their names then.
    case .binary:
      if let nested = NestedValue(.data(bytes)) { _ = try ValueWalk.value(nested.value, place, &collector) }
    // Comments are searched as text.
    case .xml: _ = try ValueWalk.data(bytes, place, &collector)
    }
  }
}
