import Foundation
import TestSupport
import Testing

/// The vault of the container `Notes`, through the program and by hand.
extension Sandbox {
  static let vault = "Notes/Library/Vault/vault.age"

  func setItem(_ name: String, _ value: String, _ options: String...) throws {
    try succeed(["vault", "set", "Notes", name] + options, input: Array(value.utf8))
  }

  func item(_ name: String, _ options: String...) throws -> [UInt8] {
    try drydock(["vault", "get", "Notes", name] + options).expect().outputBytes
  }

  /// The names of the items.
  func itemNames() throws -> [String] {
    try document("vault", "list", "Notes")["items"].list.compactMap { $0["name"].text }
  }

  /// The vault's document, opened by the age program.
  func openedVault() throws -> String {
    try run(Tools.system("age"), "-d", "-i", directory("device.key"), directory(Self.vault))
  }

  /// Writes the vault as another program does: a document that the age program encrypts.
  func writeVault(_ document: String, armored: Bool = false) throws {
    let options = try (armored ? ["-a"] : []) + ["-r", recipient(of: "device.key")]
    let sealed = try Command.run(
      Tools.system("age"), options, input: Array(document.utf8), directory: directory.path
    ).expect()
    try write(Self.vault, bytes: sealed.outputBytes)
  }

  /// A document with these items, each as the fields that it has besides class, accessibility and value.
  func vaultDocument(_ items: [String]) throws -> String {
    let all = items.map {
      #"{"class": "genericPassword", "accessible": "whenUnlocked", "value": "bWFkZS11cA=="\#($0)}"#
    }
    return """
      {"format": 1, "device": "00112233445566778899aabbccddeeff",
       "recipients": ["\(try recipient(of: "device.key"))"],
       "items": [\(all.joined(separator: ",\n"))]}
      """
  }
}
