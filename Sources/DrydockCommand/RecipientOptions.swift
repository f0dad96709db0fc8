import ArgumentParser
import Drydock

/// To whom a new archive is encrypted.
struct RecipientOptions: ParsableArguments {
  @Option(
    name: .customLong("recipient"),
    help: ArgumentHelp("Encrypt the archive to this public key of age's; repeatable.", valueName: "age1…"))
  var recipients: [String] = []

  @Option(
    name: .customLong("recipients-file"),
    help: ArgumentHelp("Encrypt the archive to the public keys in this file; repeatable.", valueName: "file"))
  var recipientsFiles: [String] = []

  @Option(help: ArgumentHelp("Encrypt the archive with the passphrase in this file.", valueName: "file"))
  var passphraseFile: String?

  @Flag(help: "Encrypt the archive with a passphrase that is asked for.")
  var passphrase = false

  @Flag(help: "Write an archive that everybody can read, whatever drydock.yaml says.")
  var noEncryption = false

  /// To whom, as flags say, else `DRYDOCK_RECIPIENTS` (separated by commas or blanks), else `recipients:` of
  /// drydock.yaml; nil for nobody.
  func lock(_ configuration: ContainerConfiguration) throws -> AgeLock? {
    let hasRecipients = !recipients.isEmpty || !recipientsFiles.isEmpty
    let given = [hasRecipients, passphraseFile != nil, passphrase, noEncryption].filter { $0 }.count
    guard given <= 1 else {
      throw UsageError(
        message:
          "give recipients, or one passphrase, or --no-encryption: an archive with a passphrase has no other key"
      )
    }
    if noEncryption { return nil }
    if let passphraseFile { return .passphrase(try Passphrase.read(passphraseFile)) }
    if passphrase {
      guard Passphrase.canAsk else {
        throw UsageError(
          message: "--passphrase asks on a terminal, and there is none; give --passphrase-file FILE")
      }
      return .passphrase(try Passphrase.askTwice())
    }
    let all = try hasRecipients ? fromFlags() : Self.fromEnvironment() ?? configuration.recipients
    return all.isEmpty ? nil : .recipients(all)
  }

  private func fromFlags() throws -> [AgeRecipient] {
    try recipients.map { try Self.recipient($0, "--recipient") }
      + recipientsFiles.flatMap { file in
        try SecretFile.read(file, limit: 1 << 20).withBytes {
          try KeyFile.recipients(in: Array($0), path: file)
        }
      }
  }

  private static func fromEnvironment() throws -> [AgeRecipient]? {
    try Environment["RECIPIENTS"].map {
      try $0.split { $0 == "," || $0.isWhitespace }.map { try recipient(String($0), "DRYDOCK_RECIPIENTS") }
    }
  }

  private static func recipient(_ text: String, _ place: String) throws -> AgeRecipient {
    do {
      return try AgeRecipient(text)
    } catch let error as DrydockError {
      throw UsageError(message: "\(place): \(error.message)")
    }
  }
}
