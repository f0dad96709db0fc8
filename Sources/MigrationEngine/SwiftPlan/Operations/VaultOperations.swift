import AppContainer
import Formats

extension MigrationStage.Operation {
  /// The operations on the vault; each needs the device key.
  package static var vault: VaultOperations { VaultOperations() }
}

/// The operations on the vault, named as in a migration's file.
package struct VaultOperations: Sendable {
  /// What each of them is.
  package typealias Operation = MigrationStage.Operation

  /// `vault.move-from-defaults`: makes a setting a vault item.
  package func moveFromDefaults(
    _ key: String, service: String, account: String? = nil, accessGroup: String? = nil,
    accessible: VaultAccessibility = .whenUnlocked, suite: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "vault.move-from-defaults",
      [
        "key": .text(key), "service": .text(service), "account": account.map { .text($0) },
        "access-group": accessGroup.map { .text($0) }, "accessible": .word(accessible),
        "suite": suite.map { .text($0) }, "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `vault.rename`: gives the items of a service, or the one of an account in it, other names.
  package func rename(
    service: String, account: String? = nil, toService: String? = nil, toAccount: String? = nil,
    ifMissing: IfMissing = .skip, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    let target: [(key: PropertyListValue, value: StageArgument)] =
      [("service", toService), ("account", toAccount)].compactMap { key, text in
        text.map { (.string(key), .text($0)) }
      }
    return Operation(
      "vault.rename",
      [
        "service": .text(service), "account": account.map { .text($0) }, "to": .pairs(target),
        "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `vault.set-accessibility`: says when a device can read the items, and with that whether they leave it.
  package func setAccessibility(
    _ accessible: VaultAccessibility, service: String, account: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "vault.set-accessibility",
      [
        "accessible": .word(accessible), "service": .text(service), "account": account.map { .text($0) },
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }

  /// `vault.delete`: removes items.
  ///
  /// - Parameter destructive: why they may go.
  package func delete(
    service: String, account: String? = nil, destructive: String, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "vault.delete",
      [
        "service": .text(service), "account": account.map { .text($0) }, "destructive": .text(destructive),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }
}
