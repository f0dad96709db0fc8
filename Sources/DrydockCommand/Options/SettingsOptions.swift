import ArgumentParser
import Drydock
import Foundation

/// Which settings of a container.
struct SettingsPlaceOptions: ParsableArguments {
  @Option(
    "A suite: a name under `defaults:` in drydock.yaml, an app group's ID, or icloud (default: the app's own).",
    value: "name")
  var suite: String?
  @Option("A settings file, by its path in the container.", value: "path") var file: String?

  func place() throws -> SettingsPlace {
    if let file {
      guard suite == nil else { throw UsageError("name either --suite or --file, not both") }
      return .file(try ContainerPath(file))
    }
    return suite.map { .suite($0) } ?? .standard
  }
}

/// The part of a setting's value.
struct SettingPartOptions: ParsableArguments {
  @Option(
    "The part of the value that this JSON pointer leads to, such as /accounts/0/name.", value: "pointer")
  var path: String?

  func address(_ key: String) throws -> SettingsChange.Address {
    try SettingsChange.Address(
      key, inside: UsageError.reading("--path") { try JSONPointer(path ?? "").tokens })
  }
}

extension SettingType: ExpressibleByArgument {
  /// The value of a text.
  ///
  /// - Parameter type: nil for the types of a migration: the YAML 1.2 core schema, and lists and dictionaries in brackets.
  /// - Throws: ``UsageError`` without the text, which may be a secret.
  static func value(of text: String, as type: SettingType?) throws -> PropertyListValue {
    guard let type else { return try untyped(text) }
    guard let value = try type.value(of: text) else {
      throw UsageError("the value is not of the type \(type.rawValue)\(type.advice)")
    }
    return value
  }

  private static func untyped(_ text: String) throws -> PropertyListValue {
    if text.hasPrefix("[") || text.hasPrefix("{") { return try collection(text) }
    if text.isEmpty { return .string("") }
    guard let value = YAMLScalar.resolve(text) else {
      throw UsageError("the number does not fit 64 bits; --type string writes it as text")
    }
    if value.isNull {
      throw UsageError(
        "a setting cannot be null; `drydock defaults delete` removes it, --type string writes the word")
    }
    return value
  }

  private static func collection(_ text: String) throws -> PropertyListValue {
    do {
      let root = try YAMLDocument(text: text, file: "VALUE").root
      return try root?.propertyListValue() ?? .string(text)
    } catch let error as DrydockError where error.code == .malformed {
      // The parser's message may quote the value.
      throw UsageError(
        "the value is not a list or dictionary in YAML or JSON, such as '[a, b]'; --type string writes it as text"
      )
    }
  }

  private func value(of text: String) throws -> PropertyListValue? {
    switch self {
    case .string: return .string(text)
    case .long: return Int64(text).map { .long($0) }
    case .int: return Int32(text).map { .int($0) }
    case .integer: return Int64(text).map { .integer($0) } ?? UInt64(text).map { .unsigned($0) }
    case .real: return Self.real(text).map { .real($0) }
    case .float:
      return Self.real(text).flatMap { Float($0).isFinite == $0.isFinite ? .single(Float($0)) : nil }
    case .boolean: return Self.booleans[text.lowercased()].map { .boolean($0) }
    case .date: return YAMLDate.parse(text).map { .date($0) }
    case .data: return Data(base64Encoded: text).map { .data([UInt8]($0)) }
    case .array:
      if case .array(let values) = try Self.collection(text) { return .array(values) }
      return nil
    case .set:
      if case .array(let values) = try Self.collection(text) {
        return StringSet(array: values).map { .set($0) }
      }
      return nil
    case .dictionary:
      if case .dictionary(let values) = try Self.collection(text) { return .dictionary(values) }
      return nil
    }
  }

  private static func real(_ text: String) -> Double? { text.lowercased().contains("x") ? nil : Double(text) }

  private static let booleans = [
    "true": true, "yes": true, "1": true, "false": false, "no": false, "0": false,
  ]

  private var advice: String {
    switch self {
    case .string: ""
    case .int: ": an integer of 32 bits; `integer` and `long` have 64"
    case .integer, .long: ": an integer of 64 bits"
    case .real, .float: ": a number, such as 0.5"
    case .boolean: ": true or false"
    case .date: ": a date, such as 2026-11-20T10:15:00Z"
    case .data: ": base64"
    case .array: ": a list, such as '[a, b]'"
    case .set: ": a list of different texts, such as '[a, b]'"
    case .dictionary: ": a dictionary, such as '{a: 1}'"
    }
  }
}

extension ExchangeFormat: ExpressibleByArgument {}

/// Files of property lists outside containers. `-` is standard input or output.
enum PropertyListInput {
  /// The largest file.
  private static let limit = 256 << 20

  static func read(_ path: String) throws -> PropertyListValue {
    let bytes = try SecretFile.read(orStandardInput: path, limit: limit)
    return try DrydockError.locating(path == "-" ? "standard input" : path) {
      try bytes.withBytes { try ExchangeFormat.read(Array($0), path: path) }
    }
  }

  /// Writes a new file, which only its owner can read: settings may contain secrets.
  static func write(_ bytes: [UInt8], to path: String) throws {
    if path == "-" { return bytes.withUnsafeBytes { Output.bytes($0) } }
    try SecretFile.create(path, SecretBytes(bytes))
  }

  /// Replaces a file at once, with its permissions.
  static func replace(_ path: String, with bytes: [UInt8]) throws {
    var status = stat()
    guard let place = realPath(path), stat(place, &status) == 0 else {
      throw DrydockError(.notFound, "no such file", path: path)
    }
    let new = "\(place).\(UInt64.random(in: 0...(.max)))"
    try SecretFile.create(new, SecretBytes(bytes))
    guard chmod(new, status.st_mode & 0o7777) == 0, rename(new, place) == 0 else {
      let reason = String(cString: strerror(errno))
      unlink(new)
      throw DrydockError(.io, "cannot be replaced: \(reason)", path: path)
    }
  }
}
