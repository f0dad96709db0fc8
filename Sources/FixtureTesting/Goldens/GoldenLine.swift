import AgeEncryption
import ContainerDiff
import FileSystem

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
  /// Where it stands in the list, from 1.
  var number = 0

  /// The type of what the side that was written down does not hold.
  static let excluded = "excluded"
  /// The content of what has another one in each run.
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
