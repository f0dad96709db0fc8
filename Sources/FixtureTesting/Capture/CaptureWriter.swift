import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// Writes the files of a fixture, and notes what version control cannot keep of them.
struct CaptureWriter {
  /// What a fixture's builder gives a path that says nothing of its mode.
  private static let fileMode: UInt16 = 0o644, settingsMode: UInt16 = 0o600, directoryMode: UInt16 = 0o755

  private(set) var setup = CapturedSetup()
  var replacer: ValueReplacer
  var report: CaptureReport
  private var source: CaptureSource
  private let target: Directory
  private let options: CaptureOptions
  private var taken: Set<ContainerPath> = []

  init(
    from source: CaptureSource, to target: Directory, _ replacer: ValueReplacer, _ options: CaptureOptions,
    _ report: CaptureReport
  ) {
    (self.source, self.target, self.options) = (source, target, options)
    (self.replacer, self.report) = (replacer, report)
  }

  // MARK: Paths

  /// A path as it is in the fixture's container: what was replaced is so in names, too.
  mutating func path(_ path: ContainerPath) throws -> ContainerPath {
    var result = ContainerPath.root
    for component in path.components {
      guard let name = String(validating: component, as: UTF8.self) else {
        result = result.appending(name: component)
        continue
      }
      let place = LeafPlace(label: "the names of files")
      let other =
        path.inGroup?.path.isRoot == true ? name : replacer.name(name, "the file or directory", place)
      result = try result.appending(other)
    }
    return result
  }

  /// Where a path of the container is in the fixture.
  static func place(of path: ContainerPath) throws -> ContainerPath {
    if path == .groups { return "groups" }
    if path.isInside(.groups) { return path.rebased(from: .groups, to: "groups") }
    return path.rebased(from: .root, to: "container")
  }

  // MARK: Entries

  mutating func add(directory path: ContainerPath, isExcluded: Bool = false) throws {
    let place = try self.path(path)
    try describe(path, as: place, mode: Self.directoryMode)
    setup.directories.insert(place)
    if !isExcluded { try target.createDirectories(Self.place(of: place), mode: 0o755) }
  }

  /// What the container's own root carries.
  mutating func describeRoot() throws { try describe(.root, as: .root, mode: Self.directoryMode) }

  mutating func add(link path: ContainerPath) throws {
    let place = try self.path(path)
    let link = try source.root.linkTarget(path)
    let made = String(validating: link, as: UTF8.self).map { replacer.replacements.replacing(in: $0) ?? $0 }
    try make(place) { target, path in try target.createLink(path, target: made.map { Array($0.utf8) } ?? link)
    }
    report.files += 1
  }

  /// Settings: text, when they are binary and text can hold them.
  mutating func add(settings path: ContainerPath) throws {
    guard var file = try? PropertyListFile(bytes: source.contents(path)), file.format == .binary else {
      return try add(file: path)
    }
    let place = try self.path(path)
    file.root = try CapturedSettings.visited(file.root, of: path, &replacer)
    if let yaml = GoldenYAML.lines(file.root), place.nameString.hasSuffix(".plist") {
      try describe(path, as: place, mode: Self.settingsMode)
      try write(place.withSuffix(".yaml"), text: yaml.isEmpty ? ["{}"] : yaml.map { String($0.dropFirst(2)) })
    } else {
      try describe(path, as: place, mode: Self.fileMode)
      try write(place, file.encoded())
    }
    report.settings += 1
  }

  mutating func add(database path: ContainerPath, hasLog: Bool) throws {
    let place = try self.path(path)
    let lines = try source.read(path) { try $0.sql(&replacer, options, &report) }
    try describe(path, as: place, mode: Self.fileMode)
    if hasLog { setup.onlyInWAL.insert(place) }
    try write(place.withSuffix(".sql"), text: lines)
  }

  mutating func add(file path: ContainerPath) throws {
    let place = try self.path(path)
    // Their names say that something is made of them.
    if [".sql", ".plist.yaml", ".plist.xml"].contains(where: place.nameString.hasSuffix) {
      setup.verbatim.insert(place)
    }
    let bytes = try source.contents(path)
    var leaf = LeafPlace(label: path.description)
    (leaf.isChosen, leaf.isKept) = (options.replaces(path), options.keeps(path))
    let made = try ValueWalk.data(bytes, leaf, &replacer)
    let isExecutable = try source.root.status(path).map { $0.mode & 0o100 != 0 } ?? false
    try describe(path, as: place, mode: isExecutable ? 0o755 : Self.fileMode)
    try write(place, made, isExecutable: isExecutable)
    report.files += 1
    if made == bytes, !bytes.isEmpty, String(validating: bytes, as: UTF8.self) == nil {
      report.binaries.append(place.description)
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
    guard taken.insert(path).inserted else {
      throw DrydockError(
        .notCaptured, "two files have the same path in the fixture: \(path); leave one out")
    }
    let place = try Self.place(of: path)
    try target.createDirectories(place.parent, mode: 0o755)
    try body(target, place)
    // A directory with something in it needs no word.
    for directory in path.ancestors { setup.directories.remove(directory) }
  }

  /// Notes a path's mode, flags and attributes.
  private mutating func describe(_ path: ContainerPath, as place: ContainerPath, mode: UInt16) throws {
    guard let metadata = try source.root.metadata(path) else { return }
    guard String(validating: place.bytes, as: UTF8.self) != nil else {
      report.notes.append("\(place): fixture.yaml cannot name it: its mode and attributes are left out")
      return
    }
    // The root's mode depends on who made it.
    if metadata.mode != mode, !path.isRoot { setup.modes[place] = metadata.mode }
    if let protection = metadata.protection { setup.protection[place] = protection }
    if metadata.hasAppleFlag { setup.excluded.insert(place) }
    if metadata.isNoDump { report.notes.append("\(place): the flag nodump cannot be kept in a fixture") }
    for attribute in metadata.attributes {
      if ExclusionAttributes.isApple(attribute.name) { continue }
      if attribute.name == ProtectionClass.attribute, metadata.protection != nil { continue }
      guard attribute.name.hasPrefix("user.") else {
        report.notes.append("\(place): the attribute \(attribute.name) is left out")
        continue
      }
      var leaf = LeafPlace(
        name: SecretName(attribute.name), label: "\(path): the attribute \(attribute.name)")
      leaf.isChosen = options.keys.contains(attribute.name)
      let value = try ValueWalk.data(attribute.value, leaf, &replacer)
      let name = replacer.name(attribute.name, "an attribute", leaf)
      setup.attributes[place, default: []].append(ExtendedAttribute(name: name, value: value))
    }
  }

  /// Takes the items of a vault, whose file is made of them.
  mutating func take(_ items: [CapturedItem], at path: ContainerPath) throws {
    setup.vault = items
    for directory in try self.path(path).ancestors { setup.directories.remove(directory) }
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
  var vault: [CapturedItem]?

  /// The lines below `container:`; none when there is nothing to say.
  var lines: [String] {
    var lines = list("directories", directories) + list("excluded", excluded)
    if !attributes.isEmpty {
      lines.append("  attributes:")
      for (path, attributes) in attributes.sorted(by: { $0.key < $1.key }) {
        let values = attributes.map { "\(GoldenYAML.quoted($0.name)): \(Self.yaml($0.value))" }
        lines.append("    \(Self.key(path)): {\(values.joined(separator: ", "))}")
      }
    }
    if !modes.isEmpty {
      lines.append("  modes:")
      for (path, mode) in modes.sorted(by: { $0.key < $1.key }) {
        lines.append("    \(Self.key(path)): 0o\(String(mode, radix: 8))")
      }
    }
    if !protection.isEmpty {
      lines.append("  protection:")
      for (path, level) in protection.sorted(by: { $0.key < $1.key }) {
        lines.append("    \(Self.key(path)): \(level.rawValue)")
      }
    }
    lines += list("only-in-wal", onlyInWAL) + list("verbatim", verbatim)
    if let vault {
      lines.append("  vault:" + (vault.isEmpty ? " []" : ""))
      for item in vault {
        for (number, field) in item.fields.enumerated() {
          lines.append("    \(number == 0 ? "- " : "  ")\(field.name): \(field.yaml)")
        }
      }
    }
    return lines
  }

  private func list(_ name: String, _ paths: Set<ContainerPath>) -> [String] {
    paths.isEmpty ? [] : ["  \(name):"] + paths.sorted().map { "    - \(Self.key($0))" }
  }

  /// A path in quotes: to YAML a path can look like a number, or like anything else.
  private static func key(_ path: ContainerPath) -> String {
    GoldenYAML.quoted(path.isRoot ? "." : String(decoding: path.bytes, as: UTF8.self), isKey: false)
  }

  /// Bytes as `fixture.yaml` has them: as text where that is possible.
  static func yaml(_ bytes: [UInt8]) -> String {
    if !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) {
      return GoldenYAML.quoted(text, isKey: false)
    }
    return "!data \"\(Data(bytes).base64EncodedString())\""
  }
}
