import Foundation
import TestSupport
import Testing

/// A sandbox with a container and its device's key, which `DRYDOCK_DEVICE_KEY` names.
struct VaultSandbox {
  static let path = "Notes/Library/Vault/vault.age"

  let sandbox: Sandbox

  static func with(version: Int = 0, _ body: (VaultSandbox) throws -> Void) throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: version)
      try sandbox.run(Tools.system("age-keygen"), "-o", "device.txt")
      try body(VaultSandbox(sandbox: sandbox))
    }
  }

  /// Runs `drydock` with the device's key.
  func drydock(_ arguments: String..., key: String? = "device.txt", input: [UInt8] = []) throws
    -> CommandResult
  {
    try Command.run(
      sandbox.program, arguments,
      environment: sandbox.environment.merging(["DRYDOCK_DEVICE_KEY": key]) { $1 }, input: input,
      directory: sandbox.directory.path)
  }

  /// Runs it, which must succeed; gives its output.
  @discardableResult
  func succeed(_ arguments: String..., key: String? = "device.txt", input: [UInt8] = []) throws -> String {
    let result = try Command.run(
      sandbox.program, arguments,
      environment: sandbox.environment.merging(["DRYDOCK_DEVICE_KEY": key]) { $1 }, input: input,
      directory: sandbox.directory.path)
    guard result.succeeded else {
      throw SystemFailure("drydock \(arguments.joined(separator: " ")): \(result)")
    }
    return result.output
  }

  /// Expects a refusal that changes nothing.
  @discardableResult
  func expectRefusal(
    _ arguments: String..., exit: Int32, _ words: [String], key: String? = "device.txt",
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> CommandResult {
    try sandbox.expectRefusal(
      arguments, exit: exit, words, environment: ["DRYDOCK_DEVICE_KEY": key], sourceLocation: sourceLocation)
  }

  func set(_ name: String, _ value: String, _ options: String...) throws {
    try run(["vault", "set", "Notes", name] + options, Array(value.utf8))
  }

  func run(_ arguments: [String], _ input: [UInt8]) throws {
    let result = try Command.run(
      sandbox.program, arguments,
      environment: sandbox.environment.merging(["DRYDOCK_DEVICE_KEY": "device.txt"]) { $1 },
      input: input, directory: sandbox.directory.path)
    guard result.succeeded else { throw SystemFailure("drydock \(arguments): \(result)") }
  }

  func value(_ name: String, _ options: String...) throws -> [UInt8] {
    let result = try Command.run(
      sandbox.program, ["vault", "get", "Notes", name] + options,
      environment: sandbox.environment.merging(["DRYDOCK_DEVICE_KEY": "device.txt"]) { $1 },
      directory: sandbox.directory.path)
    guard result.succeeded else { throw SystemFailure("vault get \(name): \(result)") }
    return result.outputBytes
  }

  /// The names of the items.
  func names(key: String = "device.txt") throws -> [String] {
    let list = try json("vault", "list", "Notes", "--json", key: key)
    return (list["items"] as? [[String: Any]])?.compactMap { $0["name"] as? String } ?? []
  }

  func json(_ arguments: String..., key: String = "device.txt") throws -> [String: Any] {
    let result = try sandbox.drydock(arguments, environment: ["DRYDOCK_DEVICE_KEY": key])
    guard result.succeeded else { throw SystemFailure("drydock \(arguments): \(result)") }
    return try #require(
      try JSONSerialization.jsonObject(with: Data(result.outputBytes)) as? [String: Any])
  }

  // MARK: Files by hand

  func recipient(of file: String) throws -> String {
    try sandbox.run(Tools.system("age-keygen"), "-y", sandbox(file)).trimmingCharacters(in: .newlines)
  }

  /// Writes the vault as another program does: a document that the age program encrypts.
  func write(_ document: String, _ options: [String]? = nil) throws {
    let sealed = try Command.run(
      Tools.system("age"), options ?? ["-r", recipient(of: "device.txt")], input: Array(document.utf8),
      directory: sandbox.directory.path)
    guard sealed.succeeded else { throw SystemFailure("age: \(sealed)") }
    try sandbox.write(Self.path, bytes: sealed.outputBytes)
  }

  /// A document with these items, each as the fields that it has besides class, accessibility and value.
  func document(_ items: [String], recipients: [String]? = nil) throws -> String {
    let recipients = try recipients ?? [recipient(of: "device.txt")]
    let all = items.map {
      #"{"class": "genericPassword", "accessible": "whenUnlocked", "value": "bWFkZS11cA=="\#($0)}"#
    }
    return """
      {"format": 1, "device": "00112233445566778899aabbccddeeff",
       "recipients": [\(recipients.map { "\"\($0)\"" }.joined(separator: ", "))],
       "items": [\(all.joined(separator: ",\n"))]}
      """
  }
}
