import Drydock

/// What became of a vault's items, for people.
enum RestoredVaultText {
  /// How many items of a kind are named.
  private static let shown = 100

  /// - Parameter isDone: false for a dry run.
  static func write(_ vault: RestoredVault, isDone: Bool) {
    let counts =
      "\(vault.returned.count), removed: \(vault.removed.count), left behind: \(vault.leftBehind.count)"
    Output.line("vault items \(isDone ? "restored" : "to restore"): \(counts)")
    names(vault.returned, "+")
    names(vault.removed, "-")
    for item in vault.leftBehind.prefix(shown) {
      Output.line("  left behind \((item.item ?? "all that is in the vault").printable): \(item.reason)")
    }
    more(vault.leftBehind.count)
  }

  /// What a container lacks of an archive's items, and has beyond them.
  static func writeDifference(_ vault: RestoredVault) {
    names(vault.returned, "- or other:")
    names(vault.removed, "+")
  }

  private static func names(_ names: [String], _ sign: String) {
    for name in names.prefix(shown) { Output.line("  \(sign) \(name.printable)") }
    more(names.count)
  }

  private static func more(_ count: Int) {
    if count > shown { Output.line("  … and \(count - shown) more; --json lists them") }
  }
}
