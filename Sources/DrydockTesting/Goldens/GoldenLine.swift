import AppContainer
import ContainerDiff
import Cryptography
import FileSystem

/// One line of a golden's list: `type mode flags content path`, separated by spaces; `-` for what there is not.
struct GoldenLine: Sendable {
  /// The type of what the side that was written down does not hold.
  static let excluded = "excluded"
  /// The content of what differs in each run.
  static let volatile = "volatile"
  /// The names of an entry's fields.
  static let typeField = "type", contentField = "content", flagsField = "flags"

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

  init(path: ContainerPath, type: String) { (self.path, self.type) = (path, type) }

  /// A line for what has another content in each run: only its path counts.
  init(volatile entry: ComparedEntry) {
    self.init(path: entry.path, type: entry.kind.rawValue)
    content = Self.volatile
  }

  /// Whether only its path counts.
  var isVolatile: Bool { content == Self.volatile && mode == nil }

  /// What it is; nil for what was left out.
  var kind: ComparedEntry.Kind? { ComparedEntry.Kind(rawValue: type) }

  /// The golden's file that it is in; nil when it is in none.
  var file: ContainerPath? {
    get throws {
      switch kind {
      case .settings: content == Golden.defaults.description ? Golden.defaults : nil
      case .vault: content == Golden.vault.description ? Golden.vault : nil
      case .database where !isVolatile && rawDigests == nil: try content.map { try ContainerPath($0) }
      default: nil
      }
    }
  }

  private static let raw = "raw"

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
      content = newValue?.sorted { $0.key < $1.key }.map { "\(Self.raw)\($0)=\($1.hex)" }
        .joined(separator: ",")
    }
  }

  // MARK: Text

  init?(_ text: String) {
    let words = text.split(separator: " ", maxSplits: 4).map(String.init)
    guard words.count == 5, let path = Self.path(String(words[4].drop { $0 == " " })) else { return nil }
    self.init(path: path, type: words[0])
    guard type == Self.excluded || kind != nil else { return nil }
    if words[1] != "-" {
      guard let bits = UInt16(words[1], radix: 8), bits <= 0o7777 else { return nil }
      mode = bits
    }
    for flag in words[2] == "-" ? [] : words[2].split(separator: ",") {
      if let known = GoldenFlag.attribute(String(flag)) {
        flags[known.name] = known.digest
        continue
      }
      let parts = flag.split(separator: "=", maxSplits: 1).compactMap { Self.unescaped(String($0)) }
      guard let name = parts.first.map({ String(decoding: $0, as: UTF8.self) }) else { return nil }
      flags[name] = parts.count == 2 ? String(decoding: parts[1], as: UTF8.self) : ""
    }
    if words[3] != "-" { content = words[3] }
  }

  var text: String {
    let mode = mode.map { String($0, radix: 8) } ?? "-"
    return [
      type + String(repeating: " ", count: max(0, 9 - type.count)),
      mode + String(repeating: " ", count: max(0, 4 - mode.count)), flagText, content ?? "-", Self.text(path),
    ].joined(separator: " ")
  }

  private var flagText: String {
    let texts = flags.sorted { $0.key < $1.key }.map { name, value in
      GoldenFlag.word(name, value)
        ?? Self.escaped(Array(name.utf8), " ,=") + (value.isEmpty ? "" : "=" + value)
    }
    return texts.isEmpty ? "-" : texts.joined(separator: ",")
  }

  /// The path as an entry.
  var entry: GoldenEntry? {
    guard let kind else {
      return GoldenEntry([path.description], nil, Self.excluded, at: Golden.list)
    }
    let noun: String
    switch kind {
    case .settings: noun = "settings file"
    case .other: noun = "special file"
    default: noun = type
    }
    var entry = GoldenEntry([path.description], Self.text(path), noun, at: Golden.list, text: text)
    func add(_ name: String, _ text: String?, _ message: String) {
      entry.fields.append(.init(name, text ?? "", message) { _ in text })
    }
    add(Self.typeField, noun, "the path is something else")
    if [.file, .directory, .link, .other].contains(kind) { entry.pattern = path.pattern }
    if isVolatile { return entry }
    switch kind {
    case .link:
      entry.fields.append(
        .init("target", content ?? "", "the link points elsewhere") { redactor in
          content.map(redactor.shown(message:))
        })
    case .database where rawDigests != nil:
      let message = "the database has other bytes and cannot be compared: SQLite cannot open it"
      add(Self.contentField, content, message)
    case .file, .vault:
      guard content.flatMap({ SHA256.Digest(hex: $0) }) != nil else { break }
      add(Self.contentField, content, "the \(noun) has other content")
    default: break
    }
    add("mode", mode.map { String($0, radix: 8) }, "the \(noun) has another mode")
    add(Self.flagsField, flags.isEmpty ? "none" : flagText, "the \(noun) has other flags")
    return entry
  }

  // MARK: Bytes

  /// Bytes as UTF-8, with `\xNN` for other bytes and for signs with a meaning.
  static func escaped(_ bytes: [UInt8], _ special: String) -> String {
    let isText = String(validating: bytes, as: UTF8.self) != nil
    let odd = Set(special.utf8).union([UInt8(ascii: "\\"), 0x7f])
    let result = bytes.flatMap { byte -> [UInt8] in
      guard byte < 0x20 || odd.contains(byte) || (byte >= 0x80 && !isText) else { return [byte] }
      return Array("\\x\([byte].hex)".utf8)
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

extension ContainerPath {
  /// A pattern for this file and those beside it with the same extension, such as `Documents/Notes/*.md`.
  var pattern: String {
    if isRoot { return description }
    let name = nameString
    let dot = name.dropFirst().lastIndex(of: ".")
    return (parent.isRoot ? "" : "\(parent)/") + "*" + (dot.map { name[$0...] } ?? "")
  }
}

/// Readable words for the attributes that matter to apps, instead of a name and a digest.
enum GoldenFlag {
  /// `excluded` for Apple's flag as its systems write it, `protection=complete` for a class of data protection.
  private static let known: [(word: String, name: String, digest: String)] =
    ([("excluded", Exclusion.appleFlag)]
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
