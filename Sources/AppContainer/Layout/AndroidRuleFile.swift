import DrydockErrors
import FileSystem
import Formats
import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// One of Android's two files of backup rules, read as Android reads it.
struct AndroidRuleFile: Sendable, Equatable {
  /// The two kinds, by their root element.
  enum Root: String {
    case fullBackupContent = "full-backup-content"
    case dataExtractionRules = "data-extraction-rules"
  }

  /// The rules for one transfer.
  struct Section: Sendable, Equatable {
    var rules: [AndroidRule] = []
    /// `disableIfNoEncryptionCapabilities`.
    var needsEncryption = false
    /// Where it stands: `file:line: <name>`.
    var source: String
  }

  /// By the element's name; the one section of a `<full-backup-content>` by the root's.
  private(set) var sections: [String: Section] = [:]
  /// What has no effect, and why.
  private(set) var notes: [String] = []

  private static let sizeLimit = 1 << 20

  /// Reads a file.
  ///
  /// - Throws: ``DrydockError`` with code `badConfiguration` and `file:line` in front.
  init(_ path: String, _ root: Root) throws {
    let slash = path.lastIndex(of: "/") ?? path.startIndex
    let bytes: [UInt8]
    do {
      let folder = try Directory(slash == path.startIndex ? "/" : String(path[..<slash]))
      bytes = try folder.contents(
        ContainerPath(String(path[path.index(after: slash)...])), limit: Self.sizeLimit)
    } catch var error as DrydockError {
      error.code = .badConfiguration
      throw error
    }
    try self.init(bytes, file: path, root)
  }

  init(_ bytes: [UInt8], file: String, _ root: Root) throws {
    // Entities are how a small file reads others, or grows large; not every XMLParser tells of them.
    if let declaration = bytes.firstRange(of: Array("<!DOCTYPE".utf8)) {
      let line = bytes[..<declaration.lowerBound].count { $0 == UInt8(ascii: "\n") } + 1
      throw DrydockError(
        .badConfiguration,
        "\(file):\(line): a document type declaration, which no rule needs; take it out")
    }
    guard !bytes.contains(0) else {
      throw DrydockError(.badConfiguration, "\(file):1: not UTF-8 text; save it as UTF-8")
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

  /// The rules for a transfer; nil when the file has none, so that what comes after it counts.
  func section(for transfer: AndroidTransfer) -> Section? {
    let name =
      switch transfer {
      case .cloud: "cloud-backup"
      case .device: "device-transfer"
      case .crossPlatform: "cross-platform-transfer"
      }
    let section = sections[name] ?? sections[Root.fullBackupContent.rawValue]
    return section.flatMap { $0.rules.isEmpty && !$0.needsEncryption ? nil : $0 }
  }
}

/// Takes the elements of one file as the parser finds them.
private final class AndroidRuleReader: NSObject, XMLParserDelegate {
  private let file: String
  /// What archives record of a rule: not where the file was on this machine.
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

  private static let transfers = ["cloud-backup", "device-transfer", "cross-platform-transfer"]

  private func start(_ name: String, _ attributes: [String: String], line: Int) throws {
    switch (open.count, root) {
    case (0, _):
      guard name == root.rawValue else {
        throw error(line, "the root element is <\(name)>, and must be <\(root.rawValue)>")
      }
      if root == .fullBackupContent { begin(name, attributes, line) }
    case (1, .dataExtractionRules):
      guard Self.transfers.contains(name) else {
        throw error(
          line, "<\(name)> is not a section; \(NearestWord.hint(for: name, among: Self.transfers))")
      }
      begin(name, attributes, line)
    case (1, .fullBackupContent), (2, .dataExtractionRules):
      // It carries what another system needs to know of the app, and is no rule.
      if section == "cross-platform-transfer", name == "platform-specific-params" { return }
      guard name == "include" || name == "exclude" else {
        throw error(line, "<\(name)> is not a rule; a rule is <include> or <exclude>")
      }
      try add(name, attributes, line)
    default: throw error(line, "<\(name)> inside <\(open.last ?? "")>; rules hold nothing")
    }
  }

  private func begin(_ name: String, _ attributes: [String: String], _ line: Int) {
    section = name
    var begun = sections[name] ?? AndroidRuleFile.Section(source: "\(fileName):\(line): <\(name)>")
    begun.needsEncryption =
      begun.needsEncryption
      || (name == "cloud-backup" && attributes["disableIfNoEncryptionCapabilities"] == "true")
    sections[name] = begun
  }

  private func add(_ name: String, _ attributes: [String: String], _ line: Int) throws {
    let limit = name == "include" ? 3 : 2
    guard attributes.count <= limit else {
      throw error(line, "<\(name)> has \(attributes.count) attributes; it takes \(limit) at most")
    }
    let listed = ["domain", "path", "requireFlags"].compactMap { key in
      attributes[key].map { "\(key)=\"\($0)\"" }
    }
    let text = "\(line): <\(([name] + listed).joined(separator: " "))/>"
    guard let domain = attributes["domain"].flatMap(AndroidDomain.init(rawValue:)) else {
      return notes.append("\(file):\(text) has no effect: the domain is not known")
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
          isInclude: name == "include", domain: domain, path: path,
          requiredFlags: name == "include" ? Set(flags ?? []) : [], source: "\(fileName):\(text)"))
    }
  }

  /// A path as Java joins it: slashes at either end and single dots say nothing.
  private static func path(_ text: String) -> ContainerPath? {
    let names = text.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
    return try? ContainerPath(bytes: names.joined(separator: [UInt8(ascii: "/")]))
  }
}
