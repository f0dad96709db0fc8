import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

/// A container as text that a reviewer can read: the expected result of a migration.
///
/// A directory with `files.txt` (every path with its type, mode, flags and content), `defaults.yaml` (settings with
/// their types, by file and key), `vault.yaml` (the vault's items) and one `.sql` for each database (its schema, its rows
/// by key). The same container gives the same text.
package struct Golden: Sendable {
  /// The list of paths; a directory that has it is a golden.
  static let list: ContainerPath = "files.txt"
  static let defaults: ContainerPath = "defaults.yaml"
  static let vault: ContainerPath = "vault.yaml"
  static let heading = "# drydock golden 1: type, mode, flags, content, path"

  /// Drydock's own state, wherever a layout has it: no golden holds that.
  static let state = ContainerLayout.allCases.map(\.historyPath.parent) + [ContainerPath.stateDirectory]

  static func isState(_ path: ContainerPath) -> Bool {
    state.contains { path == $0 || path.isInside($0) }
  }

  package let directory: String
  let lines: [GoldenLine]
  /// Its settings, by file and key.
  let settings: [ContainerPath: GoldenSettings]
  /// The items of its vault; nil when it has no `vault.yaml`.
  let items: [FixtureVaultItem]?

  package static func isGolden(_ path: String) -> Bool {
    guard let directory = try? Directory(path), let status = try? directory.status(list),
      status.type == .file,
      let bytes = try? directory.contents(list)
    else { return false }
    return bytes.starts(with: "# drydock golden ".utf8)
  }

  /// Reads a golden.
  ///
  /// - Throws: `DrydockError` with code `malformed`, with the line; `DrydockError` for what cannot be read.
  package init(_ path: String) throws {
    directory = path
    let root = try Directory(path)
    lines = try Self.lines(in: root)
    settings = try Self.read(Self.defaults, in: root) { try Self.settings($0) } ?? [:]
    items = try Self.read(Self.vault, in: root) { try FixtureVaultItem.items($0) ?? [] }
    try requireItsFiles(root)
  }

  private static func lines(in root: Directory) throws -> [GoldenLine] {
    let file = root.full(list)
    guard try root.status(list) != nil else {
      throw DrydockError(
        .badFixture, "the golden has no files.txt, which lists its paths; record it anew", path: root.path)
    }
    guard let text = String(validating: try root.contents(list), as: UTF8.self) else {
      throw DrydockError(.badFixture, "the list of paths is not UTF-8", path: file)
    }
    let rows = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    guard rows.first.map(String.init) == heading else {
      throw DrydockError(
        .badFixture, "not a golden that this version reads; its first line is not `\(heading)`", path: file)
    }
    let lines = try rows.enumerated().dropFirst().filter { !$1.isEmpty && !$1.hasPrefix("#") }.map {
      number, row in
      guard var line = GoldenLine(String(row)) else {
        throw DrydockError(
          .badFixture, "not type, mode, flags, content and path of one thing", path: file, line: number + 1)
      }
      line.number = number + 1
      return line
    }.sorted { $0.path < $1.path }
    for (line, next) in zip(lines, lines.dropFirst()) where line.path == next.path {
      throw DrydockError(.badFixture, "\(line.path) is there twice", path: file, line: next.number)
    }
    return lines
  }

  /// The text of a JSON document; nil when it has none of that path.
  func document(_ path: ContainerPath) throws -> [UInt8]? {
    let root = try Directory(directory)
    let place = GoldenDocument.place(of: path)
    guard try root.status(place)?.type == .file else { return nil }
    return try root.contents(place)
  }

  /// What a file says; nil when it is not there.
  private static func read<Value>(
    _ name: ContainerPath, in root: Directory, _ body: (YAMLNode?) throws -> Value
  ) throws -> Value? {
    guard try root.status(name) != nil else { return nil }
    let file = root.full(name)
    do {
      return try body(YAMLDocument(root.contents(name), file: file).root)
    } catch let error as DrydockError where error.message.hasPrefix(file + ":") {
      // `file:line:column: message`
      let words = error.message.dropFirst(file.count + 1).split(separator: ":", maxSplits: 2)
      guard words.count == 3, let line = Int(words[0]) else { throw error }
      throw DrydockError(
        .badFixture, String(words[2].drop { $0 == " " }), path: file, line: line, cause: error)
    }
  }

  private static func settings(_ node: YAMLNode?) throws -> [ContainerPath: GoldenSettings] {
    var settings: [ContainerPath: GoldenSettings] = [:]
    for pair in try node?.pairs("defaults.yaml").pairs ?? [] {
      guard let path = GoldenText.path(pair.key.source) else {
        throw pair.keyPosition.error("not a path in a container")
      }
      settings[path] = try GoldenSettings(pair)
    }
    return settings
  }

  /// A file that is missing, or that nothing refers to, is an editing mistake.
  private func requireItsFiles(_ root: Directory) throws {
    var needed: [ContainerPath: GoldenLine] = [:]
    for line in lines {
      guard let file = try line.file else { continue }
      needed[file] = line
      guard try root.status(file)?.type == .file else {
        throw DrydockError(
          .badFixture,
          "\(line.path) is in \(file), which the golden lacks; bring the file back or record the golden anew",
          path: root.full(Self.list), line: line.number)
      }
    }
    for line in lines where line.content == Self.defaults.description && settings[line.path] == nil {
      throw DrydockError(
        .badFixture, "defaults.yaml has no settings for \(line.path)", path: root.full(Self.list),
        line: line.number)
    }
    for (path, settings) in settings where !lines.contains(where: { $0.path == path && $0.kind == .settings })
    {
      throw DrydockError(
        .badFixture, "files.txt does not list \(path) as settings", path: root.full(Self.defaults),
        line: settings.line)
    }
    for name in try root.names().map(ContainerPath.init(name:)) where needed[name] == nil {
      guard name == Self.vault || name == Self.defaults || name.nameString.hasSuffix(".sql") else { continue }
      throw DrydockError(
        .badFixture, "nothing in files.txt refers to this file; remove it, or record the golden anew",
        path: root.full(name))
    }
  }
}

/// The settings of one file, and where they are written.
struct GoldenSettings: Sendable {
  let values: PropertyListDictionary
  /// The line of the file's name, and those of its keys.
  let line: Int
  let lines: [ExactText: Int]

  init(_ pair: YAMLMapping.Pair) throws {
    line = pair.keyPosition.line
    guard !pair.value.isNull else {
      (values, lines) = ([:], [:])
      return
    }
    let mapping = try pair.value.pairs("a settings file")
    values = try mapping.propertyListValues()
    lines = Dictionary(
      mapping.pairs.map { (ExactText($0.key.source), $0.keyPosition.line) },
      uniquingKeysWith: { first, _ in first })
  }
}

/// One line of a golden's list: `type mode flags content path`, separated by spaces; `-` for what there is not.
struct GoldenLine: Sendable {
  var path: ContainerPath
  /// What it is, or `excluded` for what no backup takes.
  var type: String
  var mode: UInt16?
  /// Extended attributes, each with the beginning of its value's digest.
  var flags: [String: String] = [:]
  /// A file's digest, a link's target, the file that a database, settings or vault items are in.
  var content: String?
  /// Its line in the list, from 1.
  var number = 0

  /// The type of what the side that was written down does not hold.
  static let excluded = "excluded"
  /// The content of what differs in each run.
  static let volatile = "volatile"

  /// What it is; nil for what was left out.
  var kind: ComparedEntry.Kind? { ComparedEntry.Kind(rawValue: type) }

  /// The golden's file that it is in; nil when it is in none.
  var file: ContainerPath? {
    get throws {
      switch kind {
      case .settings: content == Golden.defaults.description ? Golden.defaults : nil
      case .vault: content == Golden.vault.description ? Golden.vault : nil
      case .database:
        if let content, content != Self.volatile, rawDigests == nil {
          try ContainerPath(content)
        } else {
          nil
        }
      default: nil
      }
    }
  }

  /// Of a database that SQLite cannot open: its files, by the ending of their names.
  var rawDigests: [String: SHA256.Digest]? {
    get {
      guard kind == .database, let content, content.hasPrefix(Self.raw) else { return nil }
      var digests: [String: SHA256.Digest] = [:]
      for part in content.split(separator: ",") {
        let words = part.split(separator: "=", maxSplits: 1).map(String.init)
        guard words.count == 2, words[0].hasPrefix(Self.raw), let digest = SHA256.Digest(hex: words[1]) else {
          return nil
        }
        digests[String(words[0].dropFirst(Self.raw.count))] = digest
      }
      return digests
    }
    set {
      content = newValue?.sorted { $0.key < $1.key }.map { "\(Self.raw)\($0)=\($1.hex)" }.joined(
        separator: ",")
    }
  }

  private static let raw = "raw"

  init(path: ContainerPath, type: String) {
    self.path = path
    self.type = type
  }

  /// A line for what has another content in each run: only its path counts.
  init(volatile entry: ComparedEntry) {
    self.init(path: entry.path, type: entry.kind.rawValue)
    content = Self.volatile
  }

  /// Whether only its path counts.
  var isVolatile: Bool { content == Self.volatile && mode == nil }

  init?(_ text: String) {
    var rest = text[...]
    func word() -> String? {
      rest = rest.drop { $0 == " " }
      let word = rest.prefix { $0 != " " }
      rest = rest.dropFirst(word.count)
      return word.isEmpty ? nil : String(word)
    }
    guard let type = word(), let mode = word(), let flags = word(), let content = word(),
      let path = GoldenText.path(String(rest.drop { $0 == " " }))
    else { return nil }
    (self.type, self.path) = (type, path)
    guard type == Self.excluded || ComparedEntry.Kind(rawValue: type) != nil else { return nil }
    if mode != "-" {
      guard let bits = UInt16(mode, radix: 8), bits <= 0o7777 else { return nil }
      self.mode = bits
    }
    for flag in flags == "-" ? [] : flags.split(separator: ",") {
      if let known = GoldenFlag.attribute(String(flag)) {
        self.flags[known.name] = known.digest
        continue
      }
      let parts = flag.split(separator: "=", maxSplits: 1).compactMap { GoldenText.unescaped(String($0)) }
      guard let name = parts.first.map({ String(decoding: $0, as: UTF8.self) }) else { return nil }
      self.flags[name] = parts.count == 2 ? String(decoding: parts[1], as: UTF8.self) : ""
    }
    if content != "-" { self.content = content }
  }

  var text: String {
    let columns = [
      type.padded(9), (mode.map { String($0, radix: 8) } ?? "-").padded(4), flagText,
      content ?? "-", GoldenText.text(path),
    ]
    return columns.joined(separator: " ")
  }

  /// The flags as the list has them.
  var flagText: String {
    let texts = flags.sorted { $0.key < $1.key }.map { name, value in
      GoldenFlag.word(name, value)
        ?? GoldenText.escaped(Array(name.utf8), " ,=") + (value.isEmpty ? "" : "=" + value)
    }
    return texts.isEmpty ? "-" : texts.joined(separator: ",")
  }
}

extension String {
  fileprivate func padded(_ width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}

/// Readable words for the attributes that matter to apps, instead of a name and a digest.
enum GoldenFlag {
  /// `excluded` for Apple's flag as its systems write it, `protection=complete` for a class of data protection.
  private static let known: [(word: String, name: String, digest: String)] =
    ([("excluded", ExclusionAttributes.appleFlag)]
    + ProtectionClass.allCases.map {
      (
        "protection=\($0.rawValue)",
        ExtendedAttribute(name: ProtectionClass.attribute, value: Array($0.appleName.utf8))
      )
    }).compactMap { word, attribute in
      (try? ComparedEntry.digest(of: attribute)).map { (word, attribute.name, $0) }
    }

  /// The word for an attribute; nil for most.
  static func word(_ name: String, _ digest: String) -> String? {
    known.first { $0.name == name && $0.digest == digest }?.word
  }

  /// The attribute that a word means; nil for any other word.
  static func attribute(_ word: String) -> (name: String, digest: String)? {
    known.first { $0.word == word }.map { ($0.name, $0.digest) }
  }
}

/// How bytes are written in a golden's list: as UTF-8, with `\xNN` for other bytes and for signs with a meaning.
enum GoldenText {
  static func escaped(_ bytes: [UInt8], _ special: String) -> String {
    let isText = String(validating: bytes, as: UTF8.self) != nil
    let odd = Set(special.utf8).union([UInt8(ascii: "\\"), 0x7f])
    var result: [UInt8] = []
    for byte in bytes {
      if byte < 0x20 || odd.contains(byte) || (byte >= 0x80 && !isText) {
        let digits = String(byte, radix: 16)
        result += Array("\\x\(digits.count == 1 ? "0" : "")\(digits)".utf8)
      } else {
        result.append(byte)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  static func unescaped(_ text: String) -> [UInt8]? {
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        result.append(byte)
        continue
      }
      guard rest.count >= 3, rest.popFirst() == UInt8(ascii: "x"),
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      rest = rest.dropFirst(2)
      result.append(value)
    }
    return result
  }

  static func text(_ path: ContainerPath) -> String {
    // A space at an end would be lost on the way to a reviewer.
    let text = path.isRoot ? "." : escaped(path.bytes, "")
    return text.hasPrefix(" ") || text.hasSuffix(" ") ? escaped(path.bytes, " ") : text
  }

  static func path(_ text: String) -> ContainerPath? {
    if text == "." { return .root }
    guard !text.isEmpty, let bytes = unescaped(text) else { return nil }
    return try? ContainerPath(bytes: bytes)
  }
}

extension GoldenText {
  /// The paths of a golden's files in a directory.
  static func files(_ directory: String) throws -> [ContainerPath] {
    try Directory(directory).names().map(ContainerPath.init(name:)).filter { name in
      [Golden.list, Golden.defaults, Golden.vault].contains(name) || name.nameString.hasSuffix(".sql")
    }.sorted() + documents(directory)
  }

  private static func documents(_ directory: String) throws -> [ContainerPath] {
    let root = try Directory(directory)
    guard try root.status(GoldenDocument.directory)?.type == .directory else { return [] }
    var found: [ContainerPath] = []
    try root.directory(GoldenDocument.directory).walk { entry in
      if entry.status.type == .file { found.append(GoldenDocument.place(of: entry.path)) }
      return .into
    }
    return found.sorted()
  }

  /// Whether two goldens are the same in every byte; false where one is missing.
  static func isSame(_ one: String, _ other: String) throws -> Bool {
    guard let left = try? Directory(one), let right = try? Directory(other) else { return false }
    let names = try files(one)
    guard try names == files(other), names.contains(Golden.list) else { return false }
    return try names.allSatisfy { name in
      guard try left.status(name)?.size == right.status(name)?.size else { return false }
      return try left.contents(name, limit: 1 << 30) == right.contents(name, limit: 1 << 30)
    }
  }
}
