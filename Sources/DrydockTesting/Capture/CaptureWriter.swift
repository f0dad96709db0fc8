import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// Goes through all that is captured, in each of the two passes. In the second it writes the files of the fixture, and
/// notes what version control cannot keep of them.
struct CaptureWriter {
  /// What a fixture's builder gives a path that says nothing of its mode.
  private static let fileMode: UInt16 = 0o644, settingsMode: UInt16 = 0o600, directoryMode: UInt16 = 0o755

  private(set) var setup = CapturedSetup()
  private(set) var values: CapturedValues
  private(set) var report: CaptureReport
  private(set) var source: CaptureSource
  /// The columns of all databases, as `TABLE.COLUMN`.
  private(set) var columns: Set<String> = []
  /// Nil in the first pass.
  private let target: Directory?
  private let options: CaptureOptions
  private var taken: Set<ContainerPath> = []

  /// - Parameters:
  ///   - target: the fixture's directory; nil to collect only.
  ///   - replacements: of what was collected.
  init(
    from source: CaptureSource, to target: Directory? = nil, _ options: CaptureOptions,
    _ report: CaptureReport,
    replacing replacements: Replacements? = nil
  ) {
    (self.source, self.target, self.options, self.report) = (source, target, options, report)
    values = CapturedValues(options, replacing: replacements)
  }

  /// Takes everything.
  mutating func add(_ inventory: CaptureInventory, of container: Container, vault: [VaultItem]?) throws {
    for identifier in DeviceIdentifiers.of(container) {
      values.add(
        identifier: identifier, CapturePlace(label: "the names of the container's directories"))
    }
    try describe(.root, as: .root, mode: Self.directoryMode)
    for item in inventory.items { try add(item) }
    guard let vault else { return }
    setup.vault = try vault.map { try replaced($0, at: container.vaultPath) }
    report.vaultItems = vault.count
    for directory in try path(container.vaultPath).ancestors { setup.directories.remove(directory) }
  }

  private mutating func add(_ item: CaptureInventory.Item) throws {
    let path = try path(item.path)
    switch item.kind {
    case .directory, .excludedDirectory:
      try describe(item.path, as: path, mode: Self.directoryMode)
      setup.directories.insert(path)
      if case .directory = item.kind { try target?.createDirectories(Self.place(of: path), mode: 0o755) }
    case .link:
      let link = try source.root.linkTarget(item.path)
      let made = String(validating: link, as: UTF8.self).map { Array(values.shown($0).utf8) }
      try make(path) { try $0.createLink($1, target: made ?? link) }
      report.files += 1
    case .file: try add(file: item.path, as: path)
    case .settings: try add(settings: item.path, as: path)
    case .database(let hasLog):
      let (database, hasTarget, options) = (item.path, target != nil, options)
      let lines = try source.read(database, options) { database in
        columns.formUnion(database.columns)
        if hasTarget { return try database.sql(&values, &report) }
        try database.collect(into: &values)
        return []
      }
      try describe(item.path, as: path, mode: Self.fileMode)
      if hasLog { setup.onlyInWAL.insert(path) }
      try write(path.withSuffix(".sql"), text: lines)
    }
  }

  /// Settings: text, when they are binary and text can hold them.
  private mutating func add(settings path: ContainerPath, as place: ContainerPath) throws {
    let bytes = try source.contents(path)
    let label = CapturePlace(label: path.description)
    var named = label
    named.showsKeys = true
    guard var file = try? PropertyListFile(bytes: bytes) else { return try add(file: path, as: place) }
    guard file.format == .binary else {
      // Its keys are those of settings, and comments are searched as text.
      if target == nil { _ = try values.dictionary(file.root, named) }
      return try add(file: path, as: place)
    }
    file.root = try values.dictionary(file.root, named)
    try values.collectFields(of: bytes, label)
    if let yaml = GoldenYAML.lines(file.root), place.nameString.hasSuffix(".plist") {
      try describe(path, as: place, mode: Self.settingsMode)
      try write(place.withSuffix(".yaml"), text: yaml.isEmpty ? ["{}"] : yaml.map { String($0.dropFirst(2)) })
    } else {
      try describe(path, as: place, mode: Self.fileMode)
      try write(place, file.encoded())
    }
    report.settings += 1
  }

  private mutating func add(file path: ContainerPath, as place: ContainerPath) throws {
    // Their names say that something is made of them.
    if [".sql", ".plist.yaml", ".plist.xml"].contains(where: place.nameString.hasSuffix) {
      setup.verbatim.insert(place)
    }
    let bytes = try source.contents(path)
    var leaf = CapturePlace(label: path.description)
    (leaf.isChosen, leaf.isKept) = (options.replaces(path), options.keeps(path))
    let made = try values.data(bytes, leaf)
    let isExecutable = try source.root.status(path).map { $0.mode & 0o100 != 0 } ?? false
    try describe(path, as: place, mode: isExecutable ? 0o755 : Self.fileMode)
    try write(place, made, isExecutable: isExecutable)
    report.files += 1
    if made == bytes, !bytes.isEmpty, String(validating: bytes, as: UTF8.self) == nil {
      report.binaries.append(place.description)
    }
  }

  /// An item of the vault: its value is a secret in any place.
  private mutating func replaced(_ item: VaultItem, at path: ContainerPath) throws -> VaultItem {
    if item.hasUnknownFields {
      report.notes.append(
        "\(path): \(values.shown("\(item)")): fields that this version does not know are left out")
    }
    var made = item
    for attribute in VaultItem.Attribute.allCases {
      let isChosen = options.keys.contains(attribute.rawValue)
      let place = CapturePlace(isChosen: isChosen, label: "\(path): \(attribute.words)")
      made[attribute] = try item[attribute].map { try values.text($0, place) }
    }
    var bytes = item.value.withBytes { Array($0) }
    defer { _ = SecretBytes(wiping: &bytes) }
    var value = try values.data(
      bytes, CapturePlace(name: .secret, isChosen: true, label: path.description))
    made.value = SecretBytes(wiping: &value)
    return made
  }

  // MARK: Paths

  /// A path as it is in the fixture's container: what was replaced is so in names, too.
  private mutating func path(_ path: ContainerPath) throws -> ContainerPath {
    var result = ContainerPath.root
    for component in path.components {
      guard let name = String(validating: component, as: UTF8.self), path.inGroup?.path.isRoot != true else {
        result = result.appending(name: component)
        continue
      }
      let place = CapturePlace(label: "the names of files")
      result = try result.appending(values.name(name, "the file or directory", place))
    }
    return result
  }

  /// Where a path of the container is in the fixture.
  private static func place(of path: ContainerPath) -> ContainerPath {
    if path == .groups { return "groups" }
    if path.isInside(.groups) { return path.rebased(from: .groups, to: "groups") }
    return path.rebased(from: .root, to: "container")
  }

  /// Notes a path's mode, flags and attributes.
  private mutating func describe(_ path: ContainerPath, as place: ContainerPath, mode: UInt16) throws {
    guard let metadata = try source.root.metadata(path) else { return }
    let isNamed = String(validating: place.bytes, as: UTF8.self) != nil
    if !isNamed {
      report.notes.append("\(place): fixture.yaml cannot name it: its mode and attributes are left out")
    }
    // The root's mode depends on who made it.
    if isNamed, metadata.mode != mode, !path.isRoot { setup.modes[place] = metadata.mode }
    if isNamed, let protection = metadata.protection { setup.protection[place] = protection }
    if isNamed, metadata.hasAppleFlag { setup.excluded.insert(place) }
    if metadata.isNoDump { report.notes.append("\(place): the flag nodump cannot be kept in a fixture") }
    for attribute in metadata.attributes {
      let leaf = CapturePlace(
        name: SecretName(attribute.name), isChosen: options.keys.contains(attribute.name),
        label: "\(path): the attribute \(attribute.name)")
      // Also the secrets of those that are left out are looked for elsewhere.
      if target == nil { _ = try values.data(attribute.value, leaf) }
      guard isNamed, !ExclusionAttributes.isApple(attribute.name),
        attribute.name != ProtectionClass.attribute || metadata.protection == nil
      else { continue }
      guard attribute.name.hasPrefix("user.") else {
        report.notes.append("\(place): the attribute \(attribute.name) is left out")
        continue
      }
      let value = try values.data(attribute.value, leaf)
      let name = values.name(attribute.name, "an attribute", leaf)
      setup.attributes[place, default: []].append(ExtendedAttribute(name: name, value: value))
    }
  }

  // MARK: Writing

  private mutating func write(_ path: ContainerPath, text: [String]) throws {
    try write(path, text.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] })
  }

  private mutating func write(_ path: ContainerPath, _ bytes: [UInt8], isExecutable: Bool = false) throws {
    try make(path) { target, path in
      try target.create(path, bytes, mode: 0o644)
      if isExecutable { try target.setMode(0o755, of: path) }
    }
  }

  private mutating func make(_ path: ContainerPath, _ body: (Directory, ContainerPath) throws -> Void) throws
  {
    guard let target else { return }
    guard taken.insert(path).inserted else {
      throw DrydockError(
        .notCaptured, "two files have the same path in the fixture: \(path); leave one out")
    }
    let place = Self.place(of: path)
    try target.createDirectories(place.parent, mode: 0o755)
    try body(target, place)
    // A directory with something in it needs no word.
    for directory in path.ancestors { setup.directories.remove(directory) }
  }
}

/// What `fixture.yaml` says of a captured container.
struct CapturedSetup {
  var directories: Set<ContainerPath> = []
  var excluded: Set<ContainerPath> = []
  var attributes: [ContainerPath: [ExtendedAttribute]] = [:]
  var modes: [ContainerPath: UInt16] = [:]
  var protection: [ContainerPath: ProtectionClass] = [:]
  var onlyInWAL: Set<ContainerPath> = []
  var verbatim: Set<ContainerPath> = []
  var vault: [VaultItem]?

  /// The lines below `container:`; none when there is nothing to say.
  var lines: [String] {
    var lines = list("directories", directories) + list("excluded", excluded)
    lines += map("attributes", attributes) { attributes in
      let values = attributes.map { "\(GoldenYAML.quoted($0.name)): \(GoldenYAML.bytes($0.value))" }
      return "{\(values.joined(separator: ", "))}"
    }
    lines += map("modes", modes) { "0o\(String($0, radix: 8))" }
    lines += map("protection", protection) { $0.rawValue }
    lines += list("only-in-wal", onlyInWAL) + list("verbatim", verbatim)
    if let vault {
      lines.append("  vault:" + (vault.isEmpty ? " []" : ""))
      lines += vault.flatMap { GoldenYAML.item($0) }.map { "    " + $0 }
    }
    return lines
  }

  private func list(_ name: String, _ paths: Set<ContainerPath>) -> [String] {
    paths.isEmpty ? [] : ["  \(name):"] + paths.sorted().map { "    - \(Self.key($0))" }
  }

  private func map<Value>(
    _ name: String, _ values: [ContainerPath: Value], _ text: (Value) -> String
  ) -> [String] {
    let lines = values.sorted { $0.key < $1.key }.map { "    \(Self.key($0.key)): \(text($0.value))" }
    return lines.isEmpty ? [] : ["  \(name):"] + lines
  }

  /// A path in quotes: to YAML a path can look like a number, or like anything else.
  private static func key(_ path: ContainerPath) -> String {
    GoldenYAML.quoted(path.isRoot ? "." : String(decoding: path.bytes, as: UTF8.self), isKey: false)
  }
}
