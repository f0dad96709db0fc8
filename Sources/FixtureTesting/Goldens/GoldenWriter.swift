import AgeEncryption
import AppContainer
import ContainerDiff
import FileSystem
import Formats
import Foundation

/// Writes a side of a comparison (a container, an archive) as a golden. Values are written unchanged, secrets
/// too: goldens are of made-up containers.
package struct GoldenWriter {
  private let side: any ComparisonSide
  private let target: Directory
  private let normalizer: ValueNormalizer
  private let deviceKeys: DeviceKeys?
  private let contents: (ContainerPath) throws -> [UInt8]?
  private var lines: [GoldenLine] = []
  private var defaults: [String] = []
  private var vault: [String] = []
  private var names: Set<String> = []

  /// Writes a golden.
  ///
  /// - Parameters:
  ///   - directory: The directory to write into; it must be there and have none of the golden's files.
  ///   - volatile: What differs in each run: it is replaced by a fixed value of the same type.
  ///   - deviceKeys: What opens the vault; without it the golden has the sealed file's digest, which changes
  ///     with each sealing.
  ///   - contents: Gives the bytes of a JSON document; nil where only its digest is known.
  /// - Throws: What reading the side throws; `DrydockError` with code `badFixture` for an invalid pattern.
  package static func write(
    _ side: any ComparisonSide, to directory: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil, contents: @escaping (ContainerPath) throws -> [UInt8]? = { _ in nil }
  ) throws {
    var writer = GoldenWriter(
      side, to: try Directory(directory), try ValueNormalizer(volatile), deviceKeys, contents)
    try writer.write()
  }

  private init(
    _ side: any ComparisonSide, to target: Directory, _ normalizer: ValueNormalizer,
    _ deviceKeys: DeviceKeys?,
    _ contents: @escaping (ContainerPath) throws -> [UInt8]?
  ) {
    (self.side, self.target, self.normalizer, self.deviceKeys) = (side, target, normalizer, deviceKeys)
    self.contents = contents
  }

  private mutating func write() throws {
    var volatile: ContainerPath?
    for entry in side.entries where !Golden.isState(entry.path) {
      // The content of a volatile directory is not listed.
      if let above = volatile, entry.path.isInside(above) { continue }
      let isDirectory = entry.kind == .directory
      if !entry.hasContent || normalizer.isVolatile(entry.path, isDirectory: isDirectory) {
        if isDirectory { volatile = entry.path }
        lines.append(GoldenLine(volatile: entry))
      } else {
        lines.append(try line(entry))
      }
    }
    let hidden = Set(lines.filter(\.isVolatile).map(\.path))
    for (path, reason) in side.omitted
    where !Golden.isState(path) && !hidden.contains(path) && !path.ancestors.contains(where: hidden.contains)
    {
      var line = GoldenLine(path: path, type: GoldenLine.excluded)
      line.content = reason.split(separator: ":").first.map { GoldenText.escaped(Array($0.utf8), " ") }
      lines.append(line)
    }
    lines.sort { $0.path < $1.path }
    try create(Golden.list, [Golden.heading] + lines.map(\.text))
    if !defaults.isEmpty { try create(Golden.defaults, defaults) }
    if !vault.isEmpty { try create(Golden.vault, vault) }
  }

  private func create(_ path: ContainerPath, _ lines: [String]) throws {
    try target.create(path, lines.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] }, mode: 0o644)
  }

  private mutating func line(_ entry: ComparedEntry) throws -> GoldenLine {
    var line = GoldenLine(path: entry.path, type: entry.kind.rawValue)
    // A link's mode says nothing.
    line.mode = entry.kind == .link ? nil : entry.mode
    line.flags = entry.attributes ?? [:]
    switch entry.kind {
    case .directory, .other: break
    case .link: line.content = entry.linkTarget.map { GoldenText.escaped($0, " ") }
    case .file:
      line.content = try side.digest(of: entry.path)?.hex
      try writeDocument(entry)
    case .vault: line.content = try writeVault(entry.path)
    case .settings:
      guard let values = try side.settings(of: entry.path),
        let yaml = GoldenYAML.lines(normalizer.settings(values))
      else {
        // Nothing that can be written as settings: compared as a file.
        line.type = ComparedEntry.Kind.file.rawValue
        line.content = try side.digest(of: entry.path)?.hex
        return line
      }
      defaults.append("\(GoldenYAML.quoted(GoldenText.text(entry.path))):" + (yaml.isEmpty ? " {}" : ""))
      defaults += yaml
      line.content = Golden.defaults.description
    case .database:
      if case .raw(let digests) = try side.databaseDigest(of: entry.path) {
        line.rawDigests = digests
      } else {
        let name = sqlName(entry.path)
        line.content = name
        try writeDatabase(entry.path, to: ContainerPath(name))
      }
    }
    return line
  }

  private func writeDocument(_ entry: ComparedEntry) throws {
    guard GoldenDocument.isCandidate(entry), let bytes = try contents(entry.path),
      let text = GoldenDocument.text(bytes, normalizer)
    else { return }
    let place = GoldenDocument.place(of: entry.path)
    try target.createDirectories(place.parent, mode: 0o755)
    try target.create(place, Array(text.utf8), mode: 0o644)
  }

  // MARK: Vault

  private mutating func writeVault(_ path: ContainerPath) throws -> String? {
    let items: [VaultItem]
    switch try side.vault(of: path) {
    case .items(let listed): items = listed
    case .sealed(let bytes):
      guard let deviceKeys else { return try side.digest(of: path)?.hex }
      items = try Vault(opening: bytes, with: deviceKeys, path: path.description).sorted
    case nil: return try side.digest(of: path)?.hex
    }
    vault = GoldenVault.lines(items, normalizer)
    return Golden.vault.description
  }

  // MARK: Databases

  private mutating func sqlName(_ path: ContainerPath) -> String {
    let plain = path.nameString.map {
      $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) ? $0 : "-"
    }
    let stem = String(plain.drop { $0 == "." })
    var name = "\(stem.isEmpty ? "database" : stem).sql"
    var number = 2
    // A file system may take names for the same that differ in case only.
    while !names.insert(name.lowercased()).inserted {
      name = "\(stem.isEmpty ? "database" : stem)-\(number).sql"
      number += 1
    }
    return name
  }

  private func writeDatabase(_ path: ContainerPath, to file: ContainerPath) throws {
    let copy: ContainerPath = ".database"
    defer {
      side.forgetDatabase(path)
      try? target.removeFile(copy, missingIsFine: true)
    }
    let database = try side.databaseFile(of: path, in: target, as: copy)
    try create(file, GoldenSQL(path: database, normalizer: normalizer).lines())
  }
}

/// The items of a vault as YAML, in the words of `fixture.yaml`.
enum GoldenVault {
  /// A list of items, each with its attributes and its value. Their times are left out, which are others in each run.
  static func lines(_ items: [VaultItem], _ normalizer: ValueNormalizer) -> [String] {
    if items.isEmpty { return ["[]"] }
    return items.flatMap { item in
      lines(item, normalizer).enumerated().map { ($0.offset == 0 ? "- " : "  ") + $0.element }
    }
  }

  private static func lines(_ item: VaultItem, _ normalizer: ValueNormalizer) -> [String] {
    var lines = item.itemClass == .genericPassword ? [] : ["class: \(item.itemClass.rawValue)"]
    // What identifies it comes first.
    let attributes = VaultAttribute.allCases.compactMap { attribute in item[attribute].map { (attribute, $0) }
    }
    lines += attributes.map { "\($0.rawValue.replacing("_", with: "-")): \(text($1))" }
    lines.append("accessible: \(item.accessibility.rawValue)")
    if item.isSynchronizable { lines.append("synchronizable: true") }
    if let flags = item.accessControl?.flags {
      lines.append("access-control: [\(flags.joined(separator: ", "))]")
    }
    let value = item.value.withBytes { bytes in
      guard let value = String(validating: bytes, as: UTF8.self), !value.utf8.contains(0) else {
        return GoldenYAML.data(Array(bytes))
      }
      return text(normalizer.text(value))
    }
    return lines + ["value: \(value)"]
  }

  private static func text(_ text: String) -> String { GoldenYAML.quoted(text, isKey: false) }
}

/// Settings as YAML that reads back as the same values with the same types.
enum GoldenYAML {
  /// One line for each key, sorted and indented; nil for values that YAML cannot hold.
  static func lines(_ settings: PropertyListDictionary) -> [String]? {
    guard areKeys(settings) else { return nil }
    var lines: [String] = []
    for (key, value) in settings.sorted() {
      guard let text = text(value) else { return nil }
      lines.append("  \(quoted(key)): \(text)")
    }
    return lines
  }

  /// Whether the keys can be those of one YAML mapping: its parser refuses two that Unicode takes for equal.
  private static func areKeys(_ values: PropertyListDictionary) -> Bool {
    Set(values.keys.map(\.text)).count == values.count
  }

  /// A value in flow style.
  static func text(_ value: PropertyListValue) -> String? {
    switch value {
    case .string(let text): return quoted(text, isKey: false)
    case .boolean(let value): return "\(value)"
    case .integer(let value): return "\(value)"
    case .unsigned(let value): return "\(value)"
    case .real(let value): return real(value)
    case .single(let value): return real(Double(value))
    case .date(let date):
      let text = YAMLDate.text(date)
      // Finer than a microsecond, or beyond the year 9999.
      return YAMLDate.parse(text) == date ? "!date \(text)" : nil
    case .data(let bytes): return data(bytes)
    case .array(let values):
      let texts = values.compactMap(text)
      return texts.count == values.count ? "[\(texts.joined(separator: ", "))]" : nil
    case .dictionary(let values):
      guard areKeys(values) else { return nil }
      let pairs = values.sorted().compactMap { key, value in
        text(value).map { "\(quoted(key)): \($0)" }
      }
      return pairs.count == values.count ? "{\(pairs.joined(separator: ", "))}" : nil
    case .unknown: return nil
    }
  }

  /// Bytes, in base64.
  static func data(_ bytes: [UInt8]) -> String { "!data \"\(Data(bytes).base64EncodedString())\"" }

  private static func real(_ value: Double) -> String {
    value.isNaN ? ".nan" : value.isInfinite ? (value < 0 ? "-.inf" : ".inf") : "\(value)"
  }

  /// Text in double quotes; a key that is a plain word stays plain.
  static func quoted(_ text: String, isKey: Bool = true) -> String {
    if isKey, text.wholeMatch(of: /[A-Za-z][A-Za-z0-9_\/.]*/) != nil,
      !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(text.lowercased())
    {
      return text
    }
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case _ where isPlain(scalar): result.unicodeScalars.append(scalar)
      default: result += String(format: "\\U%08X", scalar.value)
      }
    }
    return result + "\""
  }

  /// What YAML takes as it is between quotes, and what a reviewer sees.
  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f..<0xa0, 0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff: false
    default: true
    }
  }
}
