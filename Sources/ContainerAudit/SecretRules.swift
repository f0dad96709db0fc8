import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Formats
import SystemPackage

extension AuditRule {
  static let secrets = [
    AuditRule(
      .secretInSettings, .error, "a secret in settings",
      why:
        "settings are a plain file, which everybody can read who gets the container or an unencrypted backup",
      fix: "let the app move it to the keychain; "
        + "in a container with a vault `vault.move-from-defaults` does it",
      source: "https://mas.owasp.org/MASWE/MASVS-STORAGE/MASWE-0006/"),
    AuditRule(
      .secretInDocument, .error, "a secret in a document",
      why:
        "a file is part of every backup, and readable without the device's key unless its protection class says so",
      fix: "store it in the keychain, and remove it from the file: `files.patch` or `files.delete`",
      source: "https://mas.owasp.org/MASWE/MASVS-STORAGE/MASWE-0006/"),
    AuditRule(
      .secretInLog, .error, "a secret in a log",
      why: "logs are sent to support and attached to issues",
      fix: "remove the file (`files.delete`), do not log the value, and replace the secret at its service",
      source: "https://mas.owasp.org/MASWE/MASVS-STORAGE/MASWE-0001/"),
    AuditRule(
      .secretInDatabase, .error, "a secret in a database column",
      why: "a database that is not encrypted is readable in the container and in every unencrypted backup",
      fix: "store the value in the keychain, and clear the column in a step `sql` with `destructive:`",
      source: "https://mas.owasp.org/MASWE/MASVS-STORAGE/MASWE-0006/"),
    AuditRule(
      .tokenInRows, .warning, "a token or private key in rows",
      why:
        "a text with the form of a known token is in a column for other data: stored by accident, or by the user",
      fix: "if the app stored it: keep it in the keychain, and remove it from the rows in a step `sql`"),
  ]
}

extension PropertyListValue {
  /// Whether a document is JSON or a property list, not plain text.
  var isStructured: Bool {
    switch self {
    case .array, .dictionary: true
    default: false
    }
  }
}

/// Searches a file that is neither settings nor a database.
struct DocumentRules {
  /// The most bytes of a file that are searched; of a log more.
  static let limit: UInt64 = 4 << 20
  static let logLimit: UInt64 = 64 << 20
  private static let piece = 1 << 20
  /// A secret at the border of two pieces is found in their overlap.
  private static let overlap = 4096

  private let entry: ScannedEntry
  private let name: String

  init(_ entry: ScannedEntry) {
    self.entry = entry
    name = entry.path.nameString.lowercased()
  }

  func check(_ context: inout AuditContext) {
    guard entry.status.size > 0 else { return }
    do {
      try search(&context)
    } catch {
      context.skip(entry.path, error)
    }
  }

  private func search(_ context: inout AuditContext) throws {
    let root = context.staged.live
    let path = entry.currentPath
    let head = try root.prefix(of: path, 4096)
    let isBinaryList = PropertyListDocument.isBinary(head)
    if !isBinaryList, head.contains(0) { return }
    guard context.budget > 0 else {
      let limit =
        "documents after the first \(AuditContext.documentBudget >> 20) MiB were not searched for secrets"
      if !context.limits.contains(limit) { context.limits.append(limit) }
      return
    }
    let most = isLog ? Self.logLimit : Self.limit
    context.budget -= min(context.budget, min(most, entry.status.size))
    if entry.status.size > most {
      context.limits.append("\(entry.path): searched for secrets up to \(most >> 20) MiB")
    }
    let isStructured = head.first { $0 > 0x20 }.map { "{[<".utf8.contains($0) } ?? false
    if entry.status.size <= Self.limit, isBinaryList || isStructured {
      let bytes = try root.contents(path, limit: Int(Self.limit))
      if let document = PropertyListValue.data(bytes).document, document.isStructured {
        return check(document, bytes, &context)
      }
    }
    if isBinaryList { return }
    try searchText(root, path, upTo: most, &context)
  }

  private func check(_ document: PropertyListValue, _ bytes: [UInt8], _ context: inout AuditContext) {
    var search = SecretValueSearch(budget: Int(Self.limit) * 4)
    if let found = search.evidence(in: document, name: "") { report(found, &context) }
    if entry.exclusion == nil, search.findsPath(in: document) {
      context.findings.add(
        .pathInSettings, entry.path.parent.description, SettingsRules.pathMessage, unit: "document",
        example: entry.path.nameString)
    }
    if search.left <= 0 {
      context.limits.append("\(entry.path): expands to much more than its size, and was searched in part")
    }
    if let example = ArchivedClasses.custom(in: bytes).first {
      context.findings.add(
        .customClassInArchive, entry.path.parent.description, ArchivedClasses.message, unit: "document",
        example: "\(entry.path.nameString): \(example)")
    }
  }

  private func searchText(
    _ root: Directory, _ path: ContainerPath, upTo most: UInt64, _ context: inout AuditContext
  ) throws {
    let file = try root.openFile(path)
    defer { try? file.close() }
    var buffer = [UInt8](repeating: 0, count: Self.piece)
    var carried: [UInt8] = []
    var offset: Int64 = 0
    while offset < Int64(most) {
      let count = try DrydockError.translating("cannot read", root.full(path)) {
        try buffer.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: offset, into: $0) }
      }
      if count == 0 { return }
      offset += Int64(count)
      let text = carried + buffer[..<count]
      if let found = SecretEvidence.form(in: text, withAssignments: isLog || isConfiguration) {
        return report(found, &context)
      }
      carried = Array(text.suffix(Self.overlap))
    }
  }

  private func report(_ evidence: String, _ context: inout AuditContext) {
    let directory = entry.path.parent.description
    context.findings.add(
      isLog ? .secretInLog : .secretInDocument, directory, "\(evidence), in the clear",
      example: entry.path.nameString)
    if entry.status.mode & 0o004 != 0 { context.facts.readableSecrets.append(entry.path) }
  }

  private var isLog: Bool {
    name.hasSuffix(".log") || name.contains(".log.")
      || entry.path.parent.components.contains {
        ["logs", "log"].contains(String(decoding: $0, as: UTF8.self).lowercased())
      }
  }

  /// A text of the user may have passwords; a configuration file is the app's.
  private var isConfiguration: Bool {
    [".env", ".ini", ".cfg", ".conf", ".config", ".properties", ".yaml", ".yml", ".toml"].contains(
      where: name.hasSuffix)
  }
}
