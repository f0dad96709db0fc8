import AppContainer
import AppStores
import ContainerDiff
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// Goes through a container, in each of the two visits. In the second it writes the files of the fixture, and notes what
/// version control cannot keep of them.
struct CaptureWriter {
  /// The modes that a fixture's builder gives a path for which `fixture.yaml` has none.
  private static let fileMode: UInt16 = 0o644, settingsMode: UInt16 = 0o600, directoryMode: UInt16 = 0o755
  /// A larger file does not belong into version control.
  private static let sizeLimit = 64 << 20
  /// What Apple's systems write about the container, such as its app.
  private static let appleMetadata: ContainerPath = ".com.apple.mobile_container_manager.metadata.plist"

  private(set) var setup = CapturedSetup()
  private(set) var values: CapturedValues
  private(set) var report: CaptureReport
  /// The columns of all databases, as `TABLE.COLUMN`.
  private(set) var columns: Set<String> = []
  /// The patterns of chosen files that matched one.
  private(set) var foundPatterns: Set<String> = []
  private let staged: StagedContainer
  private var container: Container { staged.container }
  private let options: CaptureOptions
  /// Nil in the first visit.
  private let target: Directory?
  private var taken: Set<ContainerPath> = []
  /// The content that the first visit read.
  private var digests: [ContainerPath: SHA256.Digest]

  /// - Parameters:
  ///   - first, replacements, target: for the second visit: the first one, and the fixture's directory.
  init(
    _ staged: StagedContainer, _ options: CaptureOptions, _ report: CaptureReport,
    after first: CaptureWriter? = nil, replacements: Replacements? = nil, to target: Directory? = nil
  ) throws {
    (self.staged, self.options, self.report, self.target) = (staged, options, report, target)
    digests = first?.digests ?? [:]
    values = try CapturedValues(options, replacements)
  }

  /// Visits everything.
  mutating func addAll(_ keys: DeviceKeys?) throws {
    for identifier in DeviceIdentifiers.of(container) {
      values.add(
        identifier: identifier, CapturePlace(label: "the names of the container's directories"))
    }
    try describe(.root, as: .root, mode: Self.directoryMode)
    var scan = ContainerScan(staged.live, rules: ExclusionRules(container))
    var skipped: ContainerPath?
    while let entry = try scan.nextEntry() {
      foundPatterns.formUnion(
        (options.files + options.dropped).filter {
          CaptureOptions.matches([$0], entry.path, isDirectory: entry.kind == .directory)
        })
      if let skipped, entry.path.isInside(skipped) { continue }
      let isMetadata = entry.path == Self.appleMetadata && container.layout == .ios
      if let exclusion = entry.exclusion, !isMetadata {
        if exclusion.rule == .state { continue }
        drop(entry.path, exclusion.description)
        // The directory itself stays, with Apple's flag.
        if entry.kind == .directory, try staged.live.metadata(entry.path)?.hasAppleFlag == true {
          try add(directory: entry.path)
        }
      } else if CaptureOptions.matches(
        options.dropped, entry.path, isDirectory: entry.kind == .directory)
      {
        skipped = entry.path
        drop(entry.path, "chosen")
      } else {
        try add(entry, keys)
      }
    }
    report.replaced = values.counts.values.sorted { $0.place < $1.place }
  }

  private mutating func drop(_ path: ContainerPath, _ reason: String) {
    report.dropped.append(.init(path: values.shown(path.description), reason: values.shown(reason)))
  }

  private mutating func add(_ entry: ScannedEntry, _ keys: DeviceKeys?) throws {
    switch entry.kind {
    case .directory: try add(directory: entry.path)
    case .symbolicLink:
      let link = try staged.live.linkTarget(entry.path)
      let label = CapturePlace(label: "\(entry.path): the link's target")
      let made = try String(validating: link, as: UTF8.self).map { Array(try values.plain($0, label).utf8) }
      try make(path(entry.path)) { try $0.createLink($1, target: made ?? link) }
      report.files += 1
    case .database: try add(database: entry.path)
    case .file where entry.path == container.vaultPath: try addVault(keys)
    case .file
    where entry.path == Self.appleMetadata
      || container.isSettings(entry.path.ofPreferencesBackup ?? entry.path):
      try add(settings: entry.path)
    case .file: try add(file: entry.path)
    case .sidecar: break
    case .mount, .special: drop(entry.path, "not a file, directory or link")
    }
  }

  // MARK: Files

  private mutating func add(directory: ContainerPath) throws {
    let path = try path(directory)
    try describe(directory, as: path, mode: Self.directoryMode)
    setup.add(path, to: .directories)
  }

  private mutating func add(database: ContainerPath) throws {
    let path = try path(database)
    let lines: [String]
    do {
      lines = try staged.readDatabase(at: database) {
        let captured = try CapturedDatabase(database, in: $0, options)
        columns.formUnion(captured.columns)
        return try captured.sql(&values, &report)
      }
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError(
        .notCaptured, "\(database) cannot be read: \(error.message); leave it out", cause: error)
    }
    try describe(database, as: path, mode: Self.fileMode)
    if try staged.live.status(database.withSuffix("-wal"))?.size ?? 0 > 0 {
      setup.add(path, to: .onlyInWAL)
    }
    try write(path.withSuffix(".sql"), text: lines)
  }

  /// Settings: as text, if they are binary and text can represent them.
  private mutating func add(settings: ContainerPath) throws {
    let bytes = try contents(settings)
    let label = CapturePlace(
      isChosen: CaptureOptions.matches(options.files, settings), label: settings.description)
    guard var file = try? SettingsFile(bytes: bytes, path: settings.description),
      file.format != .propertyList(.xml), file.canBeWritten
    else {
      return try add(file: settings)
    }
    var named = label
    named.showsKeys = true
    file.root = try values.dictionary(file.root, named)
    try values.collectFields(of: bytes, label)
    let path = try path(settings)
    if !file.hasUnknownParts, path.hasYAML, let yaml = GoldenYAML.lines(file.root, of: path) {
      try describe(settings, as: path, mode: Self.settingsMode)
      try write(path.withSuffix(".yaml"), text: yaml.isEmpty ? ["{}"] : yaml.map { String($0.dropFirst(2)) })
    } else {
      try describe(settings, as: path, mode: Self.fileMode)
      // Parts of unknown types are searched as text.
      let encoded = try file.encoded()
      try write(path, file.hasUnknownParts ? values.data(encoded, label) : encoded)
    }
    report.settings += 1
  }

  private mutating func add(file: ContainerPath) throws {
    let path = try path(file)
    // By their names something would be made of them.
    if path.nameString.hasSuffix(".sql") || FixtureFiles.settings(madeBy: path) != nil {
      setup.add(path, to: .verbatim)
    }
    let bytes = try contents(file)
    let made = try values.data(
      bytes,
      CapturePlace(
        isChosen: CaptureOptions.matches(options.files, file),
        isKept: CaptureOptions.matches(options.kept, file), label: file.description))
    let isExecutable = try staged.live.status(file).map { $0.mode & 0o100 != 0 } ?? false
    try describe(file, as: path, mode: isExecutable ? 0o755 : Self.fileMode)
    try write(path, made, isExecutable: isExecutable)
    report.files += 1
    if made == bytes, !bytes.isEmpty, String(validating: bytes, as: UTF8.self) == nil {
      report.binaries.append(values.shown(path.description))
    }
  }

  /// A file's content.
  ///
  /// - Throws: `DrydockError` with code `notCaptured` for a file that is too large, or that changed after the first visit.
  private mutating func contents(_ path: ContainerPath) throws -> [UInt8] {
    guard try staged.live.status(path)?.size ?? 0 <= UInt64(Self.sizeLimit) else {
      throw DrydockError(
        .notCaptured, "\(path) has more than 64 MB, which no fixture should hold; leave it out")
    }
    let bytes = try staged.live.contents(path)
    let digest = try bytes.withUnsafeBytes { try SHA256.hash($0) }
    guard values.isCollecting || digests[path] == digest else {
      throw DrydockError(
        .notCaptured, "\(path) changed while it was captured; close the app, or capture again")
    }
    digests[path] = digest
    return bytes
  }

  // MARK: The vault

  private mutating func addVault(_ keys: DeviceKeys?) throws {
    let path = container.vaultPath
    guard let keys else {
      throw DrydockError(
        .notCaptured,
        "\(path) is the vault: without its key its secrets cannot be found in other files; give "
          + "the device key, or leave the vault out")
    }
    let vault = try Vault(opening: staged.live.contents(path), with: keys, path: path.description).sorted
    setup.vault = try vault.map { try replaced($0, at: path) }
    report.vaultItems = vault.count
    setup.removeDirectories(above: try self.path(path))
  }

  /// An item of the vault: its value is a secret in any place.
  private mutating func replaced(_ item: VaultItem, at path: ContainerPath) throws -> VaultItem {
    if item.hasUnknownFields {
      note("\(path): \(item): fields that this version does not know are left out")
    }
    var made = item
    for attribute in VaultItem.Attribute.allCases {
      let isChosen = values.isChosen(attribute.rawValue)
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

  /// A path as it is in the fixture's container: what was replaced is replaced in names, too.
  private mutating func path(_ path: ContainerPath) throws -> ContainerPath {
    var result = ContainerPath.root
    for component in path.components {
      guard let name = String(validating: component, as: UTF8.self), path.inGroup?.path.isRoot != true else {
        result = result.appending(name: component)
        continue
      }
      let place = CapturePlace(label: "the names of files")
      result = try result.appending(
        values.name(
          name, "the file or directory", place, isSecret: SecretPattern.isSecret(text: name)))
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
    guard let metadata = try staged.live.metadata(path) else { return }
    let isNamed = String(validating: place.bytes, as: UTF8.self) != nil
    if isNamed {
      // The root's mode depends on who made it.
      if metadata.mode != mode, !path.isRoot {
        setup.add(place, to: .modes, "0o\(String(metadata.mode, radix: 8))")
      }
      if let protection = metadata.protection { setup.add(place, to: .protection, protection.rawValue) }
      if metadata.hasAppleFlag { setup.add(place, to: .excluded) }
    } else {
      note("\(place): fixture.yaml cannot name it: its mode and attributes are left out")
    }
    if metadata.isNoDump { note("\(place): the flag nodump cannot be kept in a fixture") }
    var attributes: [String] = []
    for attribute in metadata.attributes {
      let leaf = CapturePlace(
        name: SecretName(attribute.name), isChosen: values.isChosen(attribute.name),
        label: "\(path): the attribute \(attribute.name)")
      // The secrets of attributes that are left out are searched for elsewhere, too.
      if values.isCollecting { _ = try values.data(attribute.value, leaf) }
      guard isNamed, !Exclusion.isApple(attribute.name),
        attribute.name != ProtectionClass.attribute || metadata.protection == nil
      else { continue }
      guard attribute.name.hasPrefix("user.") else {
        note("\(place): the attribute \(attribute.name) is left out")
        continue
      }
      let value = try values.data(attribute.value, leaf)
      let isSecret = SecretPattern.isSecret(text: attribute.name)
      let name = values.name(attribute.name, "an attribute", leaf, isSecret: isSecret)
      attributes.append("\(GoldenYAML.quoted(name)): \(GoldenYAML.bytes(value))")
    }
    if !attributes.isEmpty { setup.add(place, to: .attributes, "{\(attributes.joined(separator: ", "))}") }
  }

  private mutating func note(_ text: String) { report.notes.append(values.shown(text)) }

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
    setup.removeDirectories(above: path)
  }
}

/// What `fixture.yaml` contains of a captured container.
struct CapturedSetup {
  /// The sections with paths, in order.
  enum Section: String, CaseIterable {
    case directories, excluded, attributes, modes, protection
    case onlyInWAL = "only-in-wal"
    case verbatim
  }

  /// The value of each path in a section; empty in a list of paths.
  private var sections: [Section: [ContainerPath: String]] = [:]
  var vault: [VaultItem]?

  mutating func add(_ path: ContainerPath, to section: Section, _ value: String = "") {
    sections[section, default: [:]][path] = value
  }

  /// Removes the directories above a path: a directory with content needs no entry.
  mutating func removeDirectories(above path: ContainerPath) {
    for directory in path.ancestors { sections[.directories]?[directory] = nil }
  }

  /// The lines below `container:`, if any.
  var lines: [String] {
    var lines: [String] = []
    for section in Section.allCases {
      guard let entries = sections[section], !entries.isEmpty else { continue }
      lines.append("  \(section.rawValue):")
      for (path, value) in entries.sorted(by: { $0.key < $1.key }) {
        // In quotes: to YAML a path can look like a number, or like anything else.
        let name = GoldenYAML.quoted(
          path.isRoot ? "." : String(decoding: path.bytes, as: UTF8.self), isKey: false)
        lines.append(value.isEmpty ? "    - \(name)" : "    \(name): \(value)")
      }
    }
    guard let vault else { return lines }
    return lines + ["  vault:" + (vault.isEmpty ? " []" : "")]
      + vault.flatMap { GoldenYAML.item($0) }.map { "    " + $0 }
  }
}
