import AgeEncryption
import DrydockErrors

/// What an error of encryption means for a vault's file.
enum VaultErrors {
  static func translating<Value>(_ bytes: [UInt8], _ path: String, _ body: () throws -> Value) throws -> Value
  {
    guard AgeHeader.isPresent(in: bytes.prefix(AgeHeader.probeLength)) else {
      throw DrydockError(
        .badVault,
        bytes.isEmpty
          ? "the vault's file is empty; restore it from a backup, or remove it to begin anew"
          : "the vault's file is no age file; move it out of the way, or name another place with `vault:`",
        path: path)
    }
    do {
      return try body()
    } catch let error as DrydockError {
      throw translated(error, bytes, path)
    }
  }

  private static func translated(_ error: DrydockError, _ bytes: [UInt8], _ path: String) -> DrydockError {
    switch error.code {
    case .noIdentity:
      DrydockError(.vaultLocked, locked(bytes), path: path, cause: error)
    case .cryptography:
      DrydockError(.io, error.message, path: path, cause: error)
    case .badKey, .header, .mac, .payload, .armor:
      DrydockError(.badVault, "the vault's file is damaged: \(error.message)", path: path, cause: error)
    default: error
    }
  }

  private static func locked(_ bytes: [UInt8]) -> String {
    let summary = Vault.summary(of: bytes)
    if (try? Age.header(of: bytes).needsPassphrase) ?? false {
      return "the vault is \(summary), and a vault is sealed to device keys; decrypt it with `age -d`, and "
        + "encrypt that to the device key with `age -r age1…`"
    }
    return "none of the device keys at hand opens the vault, which is \(summary); give the right one with "
      + "--device-key"
  }
}
