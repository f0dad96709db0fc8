import ArgumentParser
import Drydock

/// What opens encrypted archives, for commands that only read.
struct KeyOptions: ParsableArguments {
  @Option(
    name: .customLong("identity"),
    help: ArgumentHelp("Open encrypted archives with the keys in this file; repeatable.", valueName: "file"))
  var identities: [String] = []

  @Option(
    name: [.customLong("passphrase-file"), .customLong("identity-passphrase-file")],
    help: ArgumentHelp("Open encrypted archives with the passphrase in this file.", valueName: "file"))
  var passphraseFile: String?

  func keys() throws -> ArchiveKeys {
    try ArchiveKeys(identities: identities, passphraseFile: passphraseFile)
  }
}

/// The same for commands that write an archive too, where `--passphrase-file` has the passphrase of the new one.
struct SourceKeyOptions: ParsableArguments {
  @Option(
    name: .customLong("identity"),
    help: ArgumentHelp("Open the archive with the keys in this file; repeatable.", valueName: "file"))
  var identities: [String] = []

  @Option(help: ArgumentHelp("Open the archive with the passphrase in this file.", valueName: "file"))
  var identityPassphraseFile: String?

  func keys() throws -> ArchiveKeys {
    try ArchiveKeys(identities: identities, passphraseFile: identityPassphraseFile)
  }
}

/// Keys that were given, and passphrases that a person is asked for when an archive needs one.
struct ArchiveKeys {
  /// What was given and asked for so far.
  private(set) var all: AgeKeys

  /// Those that open an archive in no time: a passphrase takes a second for each.
  var quick: AgeKeys { AgeKeys(identities: all.identities) }

  /// - Parameter identities: key files; without any, those in `DRYDOCK_IDENTITY`, separated by colons.
  init(identities: [String], passphraseFile: String?) throws {
    let named = Environment["IDENTITY"]?.split(separator: ":").map(String.init) ?? []
    let files = identities.isEmpty ? named : identities
    all = try AgeKeys(
      identityFiles: files, passphrases: passphraseFile.map { [try Passphrase.read($0)] } ?? [])
  }

  /// What opens an archive: a person is asked for a passphrase when it needs one and none was given.
  mutating func opening(_ path: String) throws -> AgeKeys {
    guard all.passphrases.isEmpty, Passphrase.canAsk,
      let encryption = try? ArchiveEncryption.of(path: path), encryption.needsPassphrase
    else { return all }
    all.passphrases = [try Passphrase.ask("passphrase for \(path)")]
    return all
  }
}
