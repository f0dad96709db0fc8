import DrydockErrors
import FileSystem
import Formats
import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// The key `android` of `drydock.yaml`: the app's backup rules, and the kind of transfer.
package struct AndroidConfiguration: Sendable, Equatable {
  package var transfer = AndroidTransfer.cloud
  /// Whether the transfer counts as encrypted on the client.
  package var isEncrypted = false
  /// Up to Android 11.
  var fullBackupContent: AndroidRuleFile?
  /// Since Android 12.
  var dataExtractionRules: AndroidRuleFile?

  package init() {}

  /// Reads the mapping. Files are relative to `folder`.
  init(_ node: YAMLNode, folder: String) throws {
    let reader = try YAMLReader(
      node, what: "android",
      keys: ["full-backup-content", "data-extraction-rules", "transfer", "client-side-encryption"])
    transfer = try reader.choice("transfer") ?? .cloud
    isEncrypted = try reader.boolean("client-side-encryption") ?? false
    let read = { (key: String, root: AndroidRuleFile.Root) throws -> AndroidRuleFile? in
      guard let path = try reader.text(key) else { return nil }
      return try AndroidRuleFile(ContainerConfiguration.absolute(path, in: folder), root)
    }
    fullBackupContent = try read("full-backup-content", .fullBackupContent)
    dataExtractionRules = try read("data-extraction-rules", .dataExtractionRules)
  }

  /// Notes on rules without effect, each with `file:line`.
  package var notes: [String] { (fullBackupContent?.notes ?? []) + (dataExtractionRules?.notes ?? []) }

  /// The rules of the transfer, applied to a container; nil when there are none.
  func rules(isDirectory: (ContainerPath) -> Bool) -> AndroidRules? {
    let section =
      dataExtractionRules?.section(for: transfer)
      ?? fullBackupContent?.section(for: transfer)
    guard let section else { return nil }
    var flags: Set<String> = []
    if isEncrypted { flags.insert("clientSideEncryption") }
    if transfer == .device { flags.insert("deviceToDeviceTransfer") }
    let disabled =
      section.needsEncryption && !isEncrypted
      ? "\(section.source): Android does not back this up without encryption; set client-side-encryption"
      : nil
    return AndroidRules(section.rules, flags: flags, disabled: disabled, isDirectory: isDirectory)
  }
}

/// The purpose of a backup of an Android app, which selects the section of the rules.
package enum AndroidTransfer: String, Sendable, Codable, CaseIterable {
  case cloud
  /// A move to another Android device.
  case device
  /// A move to a device with another system.
  case crossPlatform = "cross-platform"

  /// The element of its rules in a `<data-extraction-rules>`.
  fileprivate var element: String {
    switch self {
    case .cloud: "cloud-backup"
    case .device: "device-transfer"
    case .crossPlatform: "cross-platform-transfer"
    }
  }
}

/// An `<include>` or `<exclude>` of a file.
struct AndroidRule: Sendable, Equatable {
  var isInclude: Bool
  /// The domain's directory in the container; nil for other storage.
  var directory: ContainerPath?
  /// The path below the domain; the root for the whole domain.
  var path: ContainerPath
  /// The flags that an include requires.
  var requiredFlags: Set<String> = []
  /// The element as text, after the file's name and line.
  var source: String

  /// The directories that paths of rules are relative to, by the domain's name; nil for other storage.
  static let domains: [String: ContainerPath?] = [
    "root": .root, "file": "files", "database": "databases", "sharedpref": .sharedPreferences,
    "external": nil,
    "device_root": nil, "device_file": nil, "device_database": nil, "device_sharedpref": nil,
  ]
}

/// The rules of a section, applied to a container.
struct AndroidRules: Sendable {
  private struct Placed: Sendable {
    var path: ContainerPath
    var source: String
    /// The whole domain `root` does not include the other domains.
    var isWholeRoot = false

    func covers(_ other: ContainerPath) -> Bool {
      if isWholeRoot { return !Self.otherDomains.contains { other == $0 || other.isInside($0) } }
      return other == path || other.isInside(path)
    }

    static let otherDomains: [ContainerPath] = ["files", "databases", "shared_prefs"]
  }

  private var includes: [Placed] = []
  private var excludes: [Placed] = []
  private let includesSomething: Bool
  private let disabled: String?

  /// - Parameters:
  ///   - flags: the flags of the transport; an include that requires another one is skipped.
  ///   - disabled: why Android would make no backup.
  ///   - isDirectory: whether a path of the container is a directory.
  init(
    _ rules: [AndroidRule], flags: Set<String>, disabled: String?, isDirectory: (ContainerPath) -> Bool
  ) {
    self.disabled = disabled
    let valid = rules.filter { !$0.isInclude || $0.requiredFlags.isSubset(of: flags) }
    // Even a skipped include means that only included paths are backed up.
    includesSomething = rules.contains(where: \.isInclude)
    for rule in valid {
      guard let directory = rule.directory else { continue }
      let path = rule.path.isRoot ? directory : rule.path.rebased(from: .root, to: directory)
      var paths = [path]
      if !rule.path.isRoot, !isDirectory(path) {
        if directory == "databases" { paths += [path.withSuffix("-journal"), path.withSuffix("-wal")] }
        if directory == .sharedPreferences, !path.nameString.hasSuffix(".xml") {
          paths.append(path.withSuffix(".xml"))
        }
      }
      let placed = paths.map { Placed(path: $0, source: rule.source, isWholeRoot: path.isRoot) }
      if rule.isInclude { includes += placed } else { excludes += placed }
    }
  }

  /// Why a path is excluded; nil when it is included. Directories above an included path are included.
  func reason(against path: ContainerPath, isDirectory: Bool) -> String? {
    if let disabled { return disabled }
    if let rule = excludes.first(where: { $0.covers(path) }) { return rule.source }
    guard includesSomething, !includes.contains(where: { $0.covers(path) }) else { return nil }
    if isDirectory, includes.contains(where: { $0.path.isInside(path) }) { return nil }
    return "not covered by an <include> of the rules"
  }
}

/// One of Android's two backup rule files, read as Android reads it.
struct AndroidRuleFile: Sendable, Equatable {
  /// The two kinds, by their root element.
  enum Root: String {
    case fullBackupContent = "full-backup-content"
    case dataExtractionRules = "data-extraction-rules"
  }

  struct Section: Sendable, Equatable {
    var rules: [AndroidRule] = []
    /// `disableIfNoEncryptionCapabilities`.
    var needsEncryption = false
    /// `file:line: <name>`.
    var source: String
  }

  /// By the element's name. The only section of a `<full-backup-content>` has the root's name.
  private(set) var sections: [String: Section] = [:]
  private(set) var notes: [String] = []

  private static let sizeLimit = 1 << 20

  /// Reads a file. Throws ``DrydockError`` (`badConfiguration`) with `file:line`.
  init(_ path: String, _ root: Root) throws {
    let bytes: [UInt8]
    do {
      let (folder, name) = try ContainerPath.split(path)
      bytes = try Directory(folder).contents(name, limit: Self.sizeLimit)
    } catch var error as DrydockError {
      error.code = .badConfiguration
      throw error
    }
    try self.init(bytes, file: path, root)
  }

  init(_ bytes: [UInt8], file: String, _ root: Root) throws {
    // Entities can read other files or expand a small file; not every XMLParser reports them.
    if let declaration = bytes.firstRange(of: Array("<!DOCTYPE".utf8)) {
      let line = bytes[..<declaration.lowerBound].count { $0 == UInt8(ascii: "\n") } + 1
      throw DrydockError(
        .badConfiguration,
        "\(file):\(line): a document type declaration, which is not allowed; remove it")
    }
    guard !bytes.contains(0) else {
      throw DrydockError(.badConfiguration, "\(file):1: not UTF-8; save the file as UTF-8")
    }
    let reader = AndroidRuleReader(file: file, root: root)
    let parser = XMLParser(data: Data(bytes))
    parser.shouldResolveExternalEntities = false
    parser.delegate = reader
    let isWhole = parser.parse()
    if let error = reader.failure { throw error }
    guard isWhole, reader.isFinished else {
      throw DrydockError(
        .badConfiguration, "\(file):\(max(parser.lineNumber, 1)): not well-formed XML; correct the file")
    }
    (sections, notes) = (reader.sections, reader.notes)
  }

  /// The rules for a transfer; nil when the file has none.
  func section(for transfer: AndroidTransfer) -> Section? {
    let section = sections[transfer.element] ?? sections[Root.fullBackupContent.rawValue]
    return section.flatMap { $0.rules.isEmpty && !$0.needsEncryption ? nil : $0 }
  }
}

private final class AndroidRuleReader: NSObject, XMLParserDelegate {
  private let file: String
  /// The name without its directory, which archives record.
  private var fileName: String { file.split(separator: "/").last.map(String.init) ?? file }
  private let root: AndroidRuleFile.Root
  private var open: [String] = []
  private var section: String?
  private(set) var sections: [String: AndroidRuleFile.Section] = [:]
  private(set) var notes: [String] = []
  private(set) var failure: DrydockError?
  private(set) var isFinished = false

  init(file: String, root: AndroidRuleFile.Root) {
    self.file = file
    self.root = root
  }

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String] = [:]
  ) {
    do {
      try start(name, attributes, line: parser.lineNumber)
      open.append(name)
    } catch {
      failure = failure ?? (error as? DrydockError)
      parser.abortParsing()
    }
  }

  func parser(
    _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
  ) {
    if !open.isEmpty { open.removeLast() }
    if open.count == 1, root == .dataExtractionRules { section = nil }
    if open.isEmpty { isFinished = true }
  }

  private func error(_ line: Int, _ what: String) -> DrydockError {
    DrydockError(.badConfiguration, "\(file):\(line): \(what)")
  }

  // MARK: Elements

  private static let transfers = AndroidTransfer.allCases.map(\.element)

  private func start(_ name: String, _ attributes: [String: String], line: Int) throws {
    switch (open.count, root) {
    case (0, _):
      guard name == root.rawValue else {
        throw error(line, "the root element is <\(name)>, not <\(root.rawValue)>")
      }
      if root == .fullBackupContent { begin(name, attributes, line) }
    case (1, .dataExtractionRules):
      guard Self.transfers.contains(name) else {
        throw error(
          line, "<\(name)> is not a section; \(NearestWord.hint(for: name, among: Self.transfers))")
      }
      begin(name, attributes, line)
    case (1, .fullBackupContent), (2, .dataExtractionRules):
      // Parameters for the other system, not a rule.
      if section == "cross-platform-transfer", name == "platform-specific-params" { return }
      guard name == "include" || name == "exclude" else {
        throw error(line, "<\(name)> is not a rule; a rule is <include> or <exclude>")
      }
      try add(name, attributes, line)
    default: throw error(line, "<\(name)> inside <\(open.last ?? "")>; rules have no content")
    }
  }

  private func begin(_ name: String, _ attributes: [String: String], _ line: Int) {
    section = name
    var opened = sections[name] ?? AndroidRuleFile.Section(source: "\(fileName):\(line): <\(name)>")
    opened.needsEncryption =
      opened.needsEncryption
      || (name == "cloud-backup" && attributes["disableIfNoEncryptionCapabilities"] == "true")
    sections[name] = opened
  }

  private func add(_ name: String, _ attributes: [String: String], _ line: Int) throws {
    let limit = name == "include" ? 3 : 2
    guard attributes.count <= limit else {
      throw error(line, "<\(name)> has \(attributes.count) attributes; at most \(limit) are allowed")
    }
    let listed = ["domain", "path", "requireFlags"].compactMap { key in
      attributes[key].map { "\(key)=\"\($0)\"" }
    }
    let text = "\(line): <\(([name] + listed).joined(separator: " "))/>"
    guard let directory = AndroidRule.domains[attributes["domain"] ?? ""] else {
      return notes.append("\(file):\(text) has no effect: unknown domain")
    }
    let written = attributes["path"] ?? ""
    guard !written.contains(".."), !written.contains("//"), let path = Self.path(written) else {
      return notes.append("\(file):\(text) has no effect: the path must not have `..` or `//`")
    }
    let flags = attributes["requireFlags"]?.split(separator: "|").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    if let section {
      sections[section]?.rules.append(
        AndroidRule(
          isInclude: name == "include", directory: directory, path: path,
          requiredFlags: name == "include" ? Set(flags ?? []) : [], source: "\(fileName):\(text)"))
    }
  }

  /// A path as Java joins it: slashes at either end and single dots are ignored.
  private static func path(_ text: String) -> ContainerPath? {
    let names = text.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
    return try? ContainerPath(bytes: names.joined(separator: [UInt8(ascii: "/")]))
  }
}
