import ArgumentParser
import Drydock
import Foundation

/// The keys of encrypted archives, for commands that only read.
struct KeyOptions: ParsableArguments {
  @Option(
    name: .customLong("identity"), "Open encrypted archives with the keys in this file; repeatable.",
    value: "file")
  var identities: [String] = []

  @Option(
    name: [.customLong("passphrase-file"), .customLong("identity-passphrase-file")],
    "Open encrypted archives with the passphrase in this file.", value: "file")
  var passphraseFile: String?

  func keys() throws -> ArchiveKeys {
    try ArchiveKeys(identities: identities, passphraseFile: passphraseFile)
  }
}

/// The same for commands that write an archive too, where `--passphrase-file` has the passphrase of the new one.
struct SourceKeyOptions: ParsableArguments {
  @Option(
    name: .customLong("identity"), "Open the existing archive with the keys in this file; repeatable.",
    value: "file")
  var identities: [String] = []

  @Option("Open the existing archive with the passphrase in this file.", value: "file")
  var identityPassphraseFile: String?

  var isGiven: Bool { !identities.isEmpty || identityPassphraseFile != nil }

  func keys() throws -> ArchiveKeys {
    try ArchiveKeys(identities: identities, passphraseFile: identityPassphraseFile)
  }
}

extension ArchiveKeys {
  /// The keys in `DRYDOCK_IDENTITY`, for a backup: without a key it is a full one, so that an unusable key is a note.
  static func ofEnvironment() -> AgeKeys {
    do { return try ArchiveKeys(identities: [], passphraseFile: nil).all } catch {
      // The error may repeat a key that was given in place of its file.
      Output.note("a file in DRYDOCK_IDENTITY cannot be read, so no earlier archive is opened")
      return AgeKeys()
    }
  }
}

extension SecretFile {
  /// Reads a file, or standard input for `-`.
  static func read(orStandardInput path: String, limit: Int) throws -> SecretBytes {
    try path == "-" ? readStandardInput(limit: limit) : read(path, limit: limit)
  }
}

/// The given keys, and the passphrases that are asked for when an archive needs one.
struct ArchiveKeys {
  /// What was given and asked for so far.
  private(set) var all: AgeKeys

  /// The keys that open an archive at once: a passphrase takes a second for each.
  var quick: AgeKeys { AgeKeys(identities: all.identities) }

  /// - Parameter identities: key files; without any, those in `DRYDOCK_IDENTITY`, separated by colons.
  init(identities: [String], passphraseFile: String?) throws {
    all = try AgeKeys(
      identityFiles: Environment.files(identities, or: "IDENTITY"),
      passphrases: passphraseFile.map { [try Passphrase.read($0)] } ?? [])
  }

  /// The keys for an archive; asks for a passphrase when it needs one and none was given.
  mutating func opening(_ path: String) throws -> AgeKeys {
    guard all.passphrases.isEmpty, Passphrase.canAsk,
      let encryption = try? Archive.encryption(path: path), encryption.needsPassphrase
    else { return all }
    all.passphrases = [try Passphrase.ask("passphrase for \(path)")]
    return all
  }
}

struct DeviceKeyOptions: ParsableArguments {
  @Option(
    name: .customLong("device-key"),
    """
    The device key that opens the vault, a file as age-keygen writes it; repeatable, the current one first (default: \
    $DRYDOCK_DEVICE_KEY).
    """, value: "file")
  var files: [String] = []

  /// The option as a hint repeats it; empty where a variable names the keys.
  var words: String { files.map { " --device-key \(Output.word($0))" }.joined() }

  /// The keys in the files, or without any in those that `DRYDOCK_DEVICE_KEY` names, separated by colons.
  func deviceKeys() throws -> DeviceKeys? {
    try DeviceKeys(files: Environment.files(files, or: "DEVICE_KEY"))
  }
}

struct RecipientOptions: ParsableArguments {
  @Option(
    name: .customLong("recipient"), "Encrypt the new archive to this age public key; repeatable.",
    value: "age1…")
  var recipients: [String] = []

  @Option(
    name: .customLong("recipients-file"),
    "Encrypt the new archive to the public keys in this file; repeatable.", value: "file")
  var recipientsFiles: [String] = []

  @Option("Encrypt the new archive with the passphrase in this file.", value: "file")
  var passphraseFile: String?

  @Flag(help: "Encrypt the new archive with a passphrase; prompt for it.")
  var passphrase = false

  @Flag(help: "Write an unencrypted archive, whatever drydock.yaml says.")
  var noEncryption = false

  var isGiven: Bool {
    !recipients.isEmpty || !recipientsFiles.isEmpty || passphraseFile != nil || passphrase || noEncryption
  }

  /// To whom, as flags say, else `DRYDOCK_RECIPIENTS` (separated by commas or blanks), else `recipients:` of
  /// drydock.yaml; nil for an archive that is not encrypted.
  func encryption(_ configuration: ContainerConfiguration) throws -> AgeTarget? {
    let hasRecipients = !recipients.isEmpty || !recipientsFiles.isEmpty
    let given = [hasRecipients, passphraseFile != nil, passphrase, noEncryption].filter { $0 }.count
    guard given <= 1 else {
      throw UsageError("give recipients, a passphrase or --no-encryption, only one of them")
    }
    if noEncryption { return nil }
    if let passphraseFile { return .passphrase(try Passphrase.read(passphraseFile)) }
    if passphrase {
      guard Passphrase.canAsk else {
        throw UsageError("--passphrase needs a terminal; give --passphrase-file FILE")
      }
      return .passphrase(try Passphrase.askTwice())
    }
    var all = try recipients.map { try Self.recipient($0, "--recipient") }
    for file in recipientsFiles {
      all += try SecretFile.read(file, limit: 1 << 20).withBytes {
        try KeyFile.recipients(in: Array($0), path: file)
      }
    }
    if !hasRecipients { all = try Self.standing(configuration) }
    return all.isEmpty ? nil : .recipients(all)
  }

  /// The recipients in `DRYDOCK_RECIPIENTS`, else in drydock.yaml.
  static func standing(_ configuration: ContainerConfiguration) throws -> [AgeRecipient] {
    try Environment["RECIPIENTS"]?.split { $0 == "," || $0.isWhitespace }.map {
      try recipient(String($0), "DRYDOCK_RECIPIENTS")
    } ?? configuration.recipients
  }

  static func recipient(_ text: String, _ place: String) throws -> AgeRecipient {
    do {
      return try AgeRecipient(text)
    } catch let error as DrydockError {
      throw UsageError("\(place): \(error.advised.message)")
    }
  }
}

/// Passphrases, from files and from a person at a terminal.
enum Passphrase {
  private static let limit = 4096

  /// The one line of a file.
  static func read(_ file: String, _ name: String = "passphrase") throws -> SecretBytes {
    try SecretFile.read(file, limit: limit).withBytes { bytes in
      let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
      let rest = bytes[line.endIndex...]
      guard !line.isEmpty, rest.isEmpty || rest.elementsEqual("\n".utf8) || rest.elementsEqual("\r\n".utf8)
      else {
        throw UsageError("\(file) is not a \(name) file; it must hold one line, the \(name)")
      }
      return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: line))
    }
  }

  /// Whether there is a person to ask.
  static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

  /// Asks without showing what is typed.
  static func ask(_ question: String) throws -> SecretBytes {
    // Echo goes off before the question, so that nothing typed early is shown or lost.
    try StandardStreams.asking {
      try withoutEcho {
        StandardStreams.note("\(question): ")
        defer { StandardStreams.note("\n") }
        return try readLine()
      }
    }
  }

  /// Asks for a new passphrase twice: nobody could open an archive with a mistyped one.
  static func askTwice() throws -> SecretBytes {
    let first = try ask("passphrase for the archive")
    let second = try ask("the same passphrase again")
    guard first == second else {
      throw UsageError("the passphrases differ; nothing was written, run it again")
    }
    return first
  }

  /// Runs a body with a terminal that shows nothing and hands over every key, those that would stop the program too: it
  /// must not end with a terminal that stays silent.
  private static func withoutEcho<T>(_ body: () throws -> T) throws -> T {
    var before = termios()
    guard tcgetattr(STDIN_FILENO, &before) == 0 else {
      throw UsageError("the terminal cannot be asked for a passphrase; give it in a file")
    }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
    defer { tcsetattr(STDIN_FILENO, TCSAFLUSH, &before) }
    return try body()
  }

  private static func readLine() throws -> SecretBytes {
    var count = 0
    let line = try SecretBytes(count: limit) { line in
      while count < line.count {
        guard let key = line.baseAddress, Foundation.read(STDIN_FILENO, key + count, 1) == 1 else {
          throw givenUp
        }
        switch line[count] {
        case UInt8(ascii: "\r"), UInt8(ascii: "\n"): return
        case 0x03, 0x04, 0x1A, 0x1C: throw givenUp  // control and C, D, Z, \
        case 0x15: count = 0  // control and U: all of it
        case 0x08, 0x7F:  // backspace: one letter, which may have several bytes
          while count > 0, line[count - 1] & 0xC0 == 0x80 { count -= 1 }
          count = max(0, count - 1)
        default: count += 1
        }
      }
    }
    guard count > 0 else { throw givenUp }
    return line.withBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }

  private static let givenUp = UsageError("no passphrase was given; nothing was done")
}
