import DrydockErrors

/// Reads SharedPreferences as Android does. Elements that Android's XML utilities know but no app can store as a preference
/// (`null`, `double`, `list` …), and unknown ones, are preserved as they are. Document types and their entities are errors.
struct SharedPreferencesReader: XMLScanner {
  /// Deeper nesting of preserved elements is an error.
  private static let depthLimit = 200

  let bytes: [UInt8]
  var index = 0
  /// Why the file cannot be rewritten without loss.
  private(set) var obstacle: String?

  struct Tag {
    var name: String
    var attributes: [(name: String, value: String)] = []
    var isEnd = false
    var isEmpty = false

    subscript(_ name: String) -> String? { attributes.first { $0.name == name }?.value }
  }

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
  }

  /// The element that the file begins with.
  mutating func firstElement() throws -> Tag {
    if isAt("<?xml") { try checkDeclaration() }
    if try skipBetween() { obstacle = "comments" }
    guard !isAt("<!") else { throw damaged("document types are not read") }
    return try tag()
  }

  mutating func read() throws -> PropertyListDictionary {
    if bytes.isEmpty { throw SharedPreferences.damaged("it is empty") }
    if bytes.starts(with: Array("ABX\0".utf8)) {
      throw DrydockError(.malformed, "Android's binary XML, which apps do not use for SharedPreferences")
    }
    let map = try firstElement()
    guard map.name == "map", !map.isEnd else { throw damaged("no <map>") }
    if !map.attributes.isEmpty { obstacle = "attributes that SharedPreferences do not have" }
    var settings = PropertyListDictionary()
    while !map.isEmpty {
      if try skipBetween() { obstacle = "comments" }
      let start = index
      let next = try tag()
      if next.isEnd {
        guard next.name == "map" else { throw damaged("an end without a start") }
        break
      }
      guard let key = next["name"] else { throw damaged("a value without a name") }
      settings[key] = try value(next, from: start)
    }
    if try skipBetween() { obstacle = "comments" }
    guard index == bytes.count else { throw damaged("more than one <map>") }
    return settings
  }

  // MARK: Values

  private mutating func value(_ element: Tag, from start: Int) throws -> PropertyListValue {
    var known = 2
    defer {
      if element.attributes.count > known { obstacle = "attributes that SharedPreferences do not have" }
    }
    switch element.name {
    case "string":
      known = 1
      return .string(try text(in: element))
    case "int": return .int(try number(element) { Int32($0) })
    case "long": return .long(try number(element) { Int64($0) })
    case "float": return .single(try number(element, Self.float))
    case "boolean":
      return .boolean(try number(element) { ["true": true, "false": false][$0.lowercased()] })
    case "set":
      known = 1
      if let strings = try strings(in: element) { return .set(StringSet(strings)) }
      return try preserved(from: start)
    default:
      known = .max
      return try preserved(from: start)
    }
  }

  private mutating func number<Value>(_ element: Tag, _ read: (String) -> Value?) throws -> Value {
    guard let value = element["value"].flatMap(read) else { throw damaged("not a value of its type") }
    if !element.isEmpty {
      if try skipBetween() { obstacle = "comments" }
      try end(element.name)
    }
    return value
  }

  /// A number of Java's; its suffix for the type and hexadecimal ones are not written by Android.
  private static func float(_ text: String) -> Float? {
    switch text {
    case "NaN": .nan
    case "Infinity", "+Infinity": .infinity
    case "-Infinity": -.infinity
    default: text.utf8.allSatisfy("0123456789+-.eE".utf8.contains) ? Float(text) : nil
    }
  }

  /// The strings of a set; nil for one with other values.
  private mutating func strings(in set: Tag) throws -> [String]? {
    var strings: [String] = []
    while !set.isEmpty {
      if try skipBetween() { obstacle = "comments" }
      let next = try tag()
      if next.isEnd {
        guard next.name == "set" else { throw damaged("an element does not end where it should") }
        break
      }
      guard next.name == "string" else { return nil }
      if !next.attributes.isEmpty { obstacle = "attributes that SharedPreferences do not have" }
      strings.append(try text(in: next))
    }
    return strings
  }

  /// The whole element that starts at a place, as bytes.
  private mutating func preserved(from start: Int) throws -> PropertyListValue {
    index = start
    var open: [String] = []
    repeat {
      let next = try tag()
      if next.isEnd {
        guard open.popLast() == next.name else { throw damaged("an element does not end where it should") }
      } else if !next.isEmpty {
        open.append(next.name)
        guard open.count <= Self.depthLimit else { throw damaged("nested too deeply") }
      }
      if open.isEmpty { break }
      // White space and comments are preserved as well.
      while index < bytes.count, bytes[index] != UInt8(ascii: "<") || isAt("<!") || isAt("<?") {
        if isAt("<!--") {
          try skip(past: "-->", from: 4)
        } else if isAt("<![CDATA[") {
          try skip(past: "]]>", from: 9)
        } else if isAt("<?") {
          try skip(past: "?>", from: 2)
        } else if bytes[index] == UInt8(ascii: "<") {
          throw damaged("an invalid declaration")
        } else {
          index += 1
        }
      }
    } while true
    return .unknown(
      PropertyListValue.Opaque(
        marker: PropertyListValue.Opaque.element, payload: Array(bytes[start..<index])))
  }

  // MARK: XML

  private mutating func text(in element: Tag) throws -> String {
    if element.isEmpty { return "" }
    var text: [UInt8] = []
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "&"): text += try reference("a reference")
      case UInt8(ascii: "<"):
        if isAt("<!--") {
          obstacle = "comments"
          try skip(past: "-->", from: 4)
        } else if isAt("<![CDATA[") {
          let start = index + 9
          try skip(past: "]]>", from: 9)
          text += bytes[start..<index - 3]
        } else {
          try end(element.name)
          return String(decoding: text, as: UTF8.self)
        }
      case UInt8(ascii: "\r"):
        text.append(UInt8(ascii: "\n"))
        index += index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "\n") ? 2 : 1
      default:
        text.append(bytes[index])
        index += 1
      }
    }
    throw cut
  }

  private mutating func tag() throws -> Tag {
    guard index < bytes.count else { throw cut }
    guard bytes[index] == UInt8(ascii: "<") else { throw damaged("text where an element is expected") }
    index += 1
    let isEnd = isAt("/")
    if isEnd { index += 1 }
    var tag = Tag(name: try name(), isEnd: isEnd)
    while true {
      let isSeparated = skipSpace()
      if isAt(">") {
        index += 1
        return tag
      }
      if !isEnd, isAt("/>") {
        index += 2
        tag.isEmpty = true
        return tag
      }
      guard index < bytes.count else { throw cut }
      guard isSeparated, !isEnd else { throw damaged("an invalid element") }
      let name = try name()
      skipSpace()
      guard isAt("=") else { throw damaged("an attribute without value") }
      index += 1
      skipSpace()
      guard tag[name] == nil else { throw damaged("an attribute occurs twice") }
      tag.attributes.append((name, try attributeValue()))
      guard tag.attributes.count <= 16 else { throw damaged("too many attributes") }
    }
  }

  private mutating func name() throws -> String {
    let start = index
    while index < bytes.count, !Self.isSpace(bytes[index]), !"/>=<\"'&".utf8.contains(bytes[index]) {
      index += 1
    }
    guard index > start else { throw index < bytes.count ? damaged("an element without name") : cut }
    guard bytes[start] != UInt8(ascii: "!"), bytes[start] != UInt8(ascii: "?") else {
      throw damaged("an invalid declaration")
    }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  private mutating func attributeValue() throws -> String {
    guard index < bytes.count else { throw cut }
    let quote = bytes[index]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw damaged("an attribute without quotes")
    }
    index += 1
    var text: [UInt8] = []
    while index < bytes.count {
      switch bytes[index] {
      case quote:
        index += 1
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "&"): text += try reference("a reference")
      case UInt8(ascii: "<"): throw damaged("`<` in an attribute")
      default:
        text.append(Self.isSpace(bytes[index]) ? 0x20 : bytes[index])
        index += 1
      }
    }
    throw cut
  }

  private mutating func end(_ name: String) throws {
    let tag = try tag()
    guard tag.isEnd, tag.name == name else { throw damaged("an element does not end where it should") }
  }

  /// The first line, whose encoding must be UTF-8.
  private mutating func checkDeclaration() throws {
    let start = index
    try skip(past: "?>", from: 5)
    let line = String(decoding: bytes[start..<index].prefix(200), as: UTF8.self).lowercased()
    guard let found = line.firstMatch(of: #/encoding\s*=\s*["']([^"']*)["']/#), found.1 != "utf-8" else {
      return
    }
    throw damaged("the encoding is not UTF-8")
  }

  static func corrupt(_ what: String) -> DrydockError { SharedPreferences.damaged(what) }
}
