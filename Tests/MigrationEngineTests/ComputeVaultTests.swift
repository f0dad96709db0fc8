import AppStores
import ContainerTransaction
import Cryptography
import Foundation
import Testing

@Suite("Values and attributes of vault items") struct ComputeVaultTests {
  private static let canary = "canary-[012345"

  private func with<T>(_ body: (Lab) throws -> T) throws -> T {
    try Lab.with { lab in
      try lab.set(["theme": "dark"])
      var shared = VaultItem(service: "shared", account: "user", value: SecretBytes(Array("x".utf8)))
      shared.isSynchronizable = true
      let others = [("user", "ada"), ("password", Self.canary), ("pair", "ada:pass:word")].map {
        VaultItem(service: "notes", account: $0, value: SecretBytes(Array($1.utf8)))
      }
      try lab.put([shared, VaultItem(service: "bin", value: SecretBytes([0, 0xFF]))] + others)
      return try body(lab)
    }
  }

  private func items(_ stage: StagedContainer) throws -> [String] {
    try (stage.vault()?.sorted ?? []).map { item in
      let value = item.value.withBytes { String(validating: $0, as: UTF8.self) ?? "\(Array($0))" }
      return "\(item) \(item.accessControl.map { "(\($0)) " } ?? "")\(value)"
    }
  }

  /// The value of the item after a step, or the error.
  private func outcome(_ step: String, _ item: String = "notes/user") throws -> String {
    try with { lab in
      var found = "absent"
      let error = failure {
        try lab.tried(step) { stage, _ in
          found =
            try items(stage).first { $0.hasPrefix(item + " ") }?.replacing(item + " ", with: "") ?? found
        }
      }
      return error.text == "no error" ? found : error.text
    }
  }

  /// What `vault.compute` makes of the user, or of the item that it names itself.
  private func computed(_ arguments: String, of account: String) throws -> String {
    let item = arguments.hasPrefix("service: ") ? "" : "service: notes, account: \(account), value: "
    return try outcome("vault.compute: {\(item)\(arguments)}")
  }
  @Test(
    "Values are computed from items",
    arguments: [
      ("'upper(:value)'", "ADA"),
      ("\":service || '/' || :account || '=' || :value\"", "notes/user=ada"),
      (
        "\"json_object('u', :value, 'p', :p)\", parameters: {p: {service: notes, account: password}}",
        "{\"u\":\"ada\",\"p\":\"\(canary)\"}"
      ),
      ("'CAST(length(:value) AS TEXT)'", "3"),
      ("'typeof(:b)', parameters: {b: {service: bin}}", "blob"),
      ("':b', parameters: {b: {service: bin}}", "[0, 255]"),
      ("':x', if-null: keep, if-missing: null, parameters: {x: {service: none}}", "ada"),
      ("'NULL', if-null: delete", "absent"), ("':x', parameters: {x: {service: none}}", "ada"),
      ("service: none, value: ':value'", "ada"),
      ("'coalesce(:label, :access_group, 9) || 1'", "91"),
    ])
  func compute(_ arguments: String, _ value: String) throws {
    #expect(try computed(arguments, of: "user") == value)
  }

  @Test(
    "What fails says why, and never a value",
    arguments: [
      ("'json(:value)'", "cannot be computed: malformed JSON"),
      ("\"json_extract('{}', :value)\"", "cannot evaluate it"),
      ("'1'", "gives an integer, not text: write CAST"), ("'NULL'", "gives NULL: say `if-null"),
      ("':valu'", "`:valu` is unknown: use `:value`"),
      ("':x', parameters: {x: {service: none}}, if-missing: fail", "no vault item has service `none`"),
      ("':x', parameters: {x: {service: notes}}", "is the value of one vault item, and 3 have"),
      ("service: none, value: ':value', if-missing: fail", "no vault item has service `none`"),
      ("':value || random()'", "random gives another value"),
      ("service: notes, value: ':value', parameters: {value: {service: bin}}", "`:value` has a meaning"),
      (
        "\"(WITH c(x) AS (SELECT :value UNION ALL SELECT x FROM c) SELECT max(x) FROM c)\"",
        "does not end within"
      ),
    ])
  func failures(_ arguments: String, _ words: String) throws {
    let said = try computed(arguments, of: "password")
    #expect(said.contains(words) && !said.contains("canary"), "\(said)")
  }

  @Test func accessControl() throws {
    let step = "vault.set-access-control: {service: notes, account: user, access-control: "
    #expect(try outcome(step + "userPresence}") == "(userPresence) ada")
    #expect(
      try outcome(step + "[userPresence, or, devicePasscode]}") == "(devicePasscode, or, userPresence) ada")
    #expect(try outcome(step + "[userPresence]}\n  - \(step)[]}") == "ada")
    #expect(
      try outcome(step + "[userPresenc]}").contains(
        "unknown flag `userPresenc` in `access-control`; did you mean `userPresence`?"))
    #expect(
      try outcome("vault.set-access-control: {service: notes}").contains("needs the key `access-control`"))
    #expect(
      try outcome("vault.set-access-control: {service: shared, access-control: userPresence}").contains(
        "the vault item shared/user [synchronizable] cannot be changed: it cannot be synchronizable and under access control"
      ))
  }

  @Test func synchronizable() throws {
    let step = "vault.set-synchronizable: {service: notes, account: user, to: true"
    #expect(try outcome(step + "}", "notes/user [synchronizable]") == "ada")
    #expect(try outcome("vault.set-synchronizable: {service: shared, to: false}", "shared/user") == "x")
    #expect(try outcome("vault.set-synchronizable: {service: notes}").contains("needs the key `to`"))
    #expect(
      try outcome(
        "vault.set-accessibility: {service: notes, accessible: whenUnlockedThisDeviceOnly}\n  - \(step)}"
      ).contains(
        "it cannot be synchronizable and whenUnlockedThisDeviceOnly"))
    #expect(
      try outcome("vault.set-accessibility: {service: shared, accessible: whenUnlockedThisDeviceOnly}")
        .contains(
          "it cannot be synchronizable and whenUnlockedThisDeviceOnly"))
    // The flag is a part of the identity: another item may be there.
    let rename = "vault.rename: {service: notes, account: user, to: {service: shared}}\n  - "
    let flag = "vault.set-synchronizable: {service: shared, synchronizable: false, to: true"
    #expect(try outcome(rename + flag + "}").contains("shared/user [synchronizable] exists already"))
    #expect(try outcome(rename + flag + ", if-exists: replace}", "shared/user [synchronizable]") == "ada")
    #expect(try outcome(rename + flag + ", if-exists: keep}", "shared/user [synchronizable]") == "x")
  }

  @Test("The values are in no file of Drydock's state")
  func state() throws {
    try with { lab in
      let password = "{p: {service: notes, account: password}}"
      try lab.run("vault.compute: {service: notes, account: user, value: ':p', parameters: \(password)}")
      #expect(try lab.files(with: Self.canary) == [])
    }
  }
}
