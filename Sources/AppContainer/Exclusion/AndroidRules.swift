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
  /// The sections of Android's two rule files, by the names of their elements.
  private var sections: [String: AndroidRules] = [:]
  /// Notes on rules without effect, each with `file:line`.
  package private(set) var notes: [String] = []

  /// The root elements of the rule files, which are the keys of their paths: up to Android 11, with the rules themselves, and
  /// since Android 12, with a section for each transfer.
  fileprivate static let (fullBackupContent, dataExtractionRules) = (
    "full-backup-content", "data-extraction-rules"
  )

  private static let sizeLimit = 1 << 20

  /// Reads the mapping. Files are relative to `folder`.
  init(_ node: YAMLNode, folder: String) throws {
    let roots = [Self.fullBackupContent, Self.dataExtractionRules]
    let reader = try YAMLReader(node, what: "android", keys: roots + ["transfer", "client-side-encryption"])
    transfer = try reader.choice("transfer") ?? .cloud
    isEncrypted = try reader.boolean("client-side-encryption") ?? false
    for root in roots {
      guard let path = try reader.text(root) else { continue }
      try read(ContainerConfiguration.absolute(path, in: folder), root: root)
    }
  }

  /// Reads a rule file as Android reads it. Throws ``DrydockError`` (`badConfiguration`) with `file:line`.
  private mutating func read(_ file: String, root: String) throws {
    let bytes: [UInt8]
    do {
      let (folder, name) = try ContainerPath.split(file)
      bytes = try Directory(folder).contents(name, limit: Self.sizeLimit)
    } catch var error as DrydockError {
      error.code = .badConfiguration
      throw error
    }
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
    sections.merge(reader.sections) { $1 }
    notes += reader.notes
  }

  /// The rules of the transfer, applied to a container; nil when there are none.
  func rules(isDirectory: (ContainerPath) -> Bool) -> AndroidRules? {
    let found = [transfer.element, Self.fullBackupContent].lazy.compactMap { sections[$0] }
    guard var section = found.first(where: { !$0.rules.isEmpty || $0.needsEncryption }) else { return nil }
    var flags: Set<String> = []
    if isEncrypted { flags.insert("clientSideEncryption") }
    if transfer == .device { flags.insert("deviceToDeviceTransfer") }
    section.needsEncryption = section.needsEncryption && !isEncrypted
    section.rules = section.rules.map { $0.applied(flags, isDirectory: isDirectory) }
    return section
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
  /// What it covers, with everything below; nothing in other storage.
  var paths: [ContainerPath]
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

  private static let otherDomains: [ContainerPath] = ["files", "databases", .sharedPreferences]

  /// The rule for a transfer and a container, with the files that Android adds to one by its name. An include that requires
  /// another flag than the transport's covers nothing.
  ///
  /// - Parameter isDirectory: whether a path of the container is a directory.
  func applied(_ flags: Set<String>, isDirectory: (ContainerPath) -> Bool) -> AndroidRule {
    var rule = self
    if isInclude, !requiredFlags.isSubset(of: flags) { rule.paths = [] }
    guard let path = rule.paths.first, path != directory, !isDirectory(path) else { return rule }
    if directory == "databases" { rule.paths += [path.withSuffix("-journal"), path.withSuffix("-wal")] }
    if directory == .sharedPreferences, !path.nameString.hasSuffix(".xml") {
      rule.paths.append(path.withSuffix(".xml"))
    }
    return rule
  }

  func covers(_ other: ContainerPath) -> Bool {
    paths.contains { path in
      // The whole domain `root` does not include the other domains.
      if path.isRoot { return !Self.otherDomains.contains { other == $0 || other.isInside($0) } }
      return other == path || other.isInside(path)
    }
  }
}

/// The rules of a section of a file.
struct AndroidRules: Sendable, Equatable {
  var rules: [AndroidRule] = []
  /// `disableIfNoEncryptionCapabilities`: whether Android makes no backup for lack of encryption.
  var needsEncryption = false
  /// `file:line: <name>`.
  var source: String

  /// Why a path is excluded; nil when it is included. Directories above an included path are included.
  func reason(against path: ContainerPath, isDirectory: Bool) -> String? {
    if needsEncryption {
      return "\(source): Android does not back this up without encryption; set client-side-encryption"
    }
    if let rule = rules.first(where: { !$0.isInclude && $0.covers(path) }) { return rule.source }
    // Even an include that covers nothing means that only included paths are backed up.
    let includes = rules.lazy.filter(\.isInclude)
    guard !includes.isEmpty, !includes.contains(where: { $0.covers(path) }) else { return nil }
    if isDirectory, includes.contains(where: { $0.paths.contains { $0.isInside(path) } }) { return nil }
    return "not covered by an <include> of the rules"
  }
}

private final class AndroidRuleReader: NSObject, XMLParserDelegate {
  private let file: String
  /// The name without its directory, which archives record.
  private var fileName: String { file.split(separator: "/").last.map(String.init) ?? file }
  /// The name of the root element.
  private let root: String
  /// Whether there are sections between the root and the rules.
  private var hasSections: Bool { root == AndroidConfiguration.dataExtractionRules }
  private var open: [String] = []
  private var section: String?
  private(set) var sections: [String: AndroidRules] = [:]
  private(set) var notes: [String] = []
  private(set) var failure: DrydockError?
  private(set) var isFinished = false

  init(file: String, root: String) { (self.file, self.root) = (file, root) }

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
    if open.count == 1, hasSections { section = nil }
    if open.isEmpty { isFinished = true }
  }

  private func error(_ line: Int, _ what: String) -> DrydockError {
    DrydockError(.badConfiguration, "\(file):\(line): \(what)")
  }

  // MARK: Elements

  private static let transfers = AndroidTransfer.allCases.map(\.element)

  private func start(_ name: String, _ attributes: [String: String], line: Int) throws {
    switch open.count {
    case 0:
      guard name == root else { throw error(line, "the root element is <\(name)>, not <\(root)>") }
      if !hasSections { begin(name, attributes, line) }
    case 1 where hasSections:
      guard Self.transfers.contains(name) else {
        throw error(
          line, "<\(name)> is not a section; \(NearestWord.hint(for: name, among: Self.transfers))")
      }
      begin(name, attributes, line)
    case hasSections ? 2 : 1:
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
    var opened = sections[name] ?? AndroidRules(source: "\(fileName):\(line): <\(name)>")
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
          isInclude: name == "include", directory: directory,
          paths: directory.map { [path.rebased(from: .root, to: $0)] } ?? [],
          requiredFlags: name == "include" ? Set(flags ?? []) : [], source: "\(fileName):\(text)"))
    }
  }

  /// A path as Java joins it: slashes at either end and single dots are ignored.
  private static func path(_ text: String) -> ContainerPath? {
    let names = text.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
    return try? ContainerPath(bytes: names.joined(separator: [UInt8(ascii: "/")]))
  }
}
