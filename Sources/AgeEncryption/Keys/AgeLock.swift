/// To whom a file is encrypted.
package enum AgeLock: Sendable {
  /// To the owners of these keys: each can open it alone. There must be at least one.
  case recipients([AgeRecipient])
  /// To who knows the passphrase. Every step of the work factor doubles the time and the memory that one try takes;
  /// 18 is age's own: about a second, and 256 MiB.
  case passphrase(SecretBytes, workFactor: Int = 18)
}
