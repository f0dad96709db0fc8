import FileSystem

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
