import AppContainer
import ContainerTransaction

/// One line of a golden's list: `type mode flags content path`, separated by spaces; `-` for what there is not.
struct GoldenLine: Sendable {
  var path: ContainerPath
  /// What it is, or `excluded` for what no backup takes.
  var type: String
  var mode: UInt16?
  /// Extended attributes, each with the beginning of its value's digest; `excluded` is Apple's flag.
  var flags: [String: String] = [:]
  /// A file's digest, a link's target, the file that a database or settings are in.
  var content: String?

  static let excluded = "excluded"

  init(path: ContainerPath, type: String) {
    self.path = path
    self.type = type
  }

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
      let parts = flag.split(separator: "=", maxSplits: 1).compactMap { GoldenText.unescaped(String($0)) }
      guard let name = parts.first.map({ String(decoding: $0, as: UTF8.self) }) else { return nil }
      self.flags[name] = parts.count == 2 ? String(decoding: parts[1], as: UTF8.self) : ""
    }
    if content != "-" { self.content = content }
  }

  var text: String {
    let flags = flags.sorted { $0.key < $1.key }.map { name, value in
      GoldenText.escaped(Array(name.utf8), " ,=") + (value.isEmpty ? "" : "=" + value)
    }.joined(separator: ",")
    let columns = [
      type.padded(9), (mode.map { String($0, radix: 8) } ?? "-").padded(4), flags.isEmpty ? "-" : flags,
      content ?? "-", GoldenText.text(path),
    ]
    return columns.joined(separator: " ")
  }
}

/// How bytes are written in a golden's list: as UTF-8, with `\xNN` for what is none or stands for something else.
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

extension String {
  fileprivate func padded(_ width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
