import ArgumentParser
import Drydock
import Foundation

struct KeygenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keygen", abstract: "Make a key for encrypted archives or for a device's vault.",
    discussion: """
      Its file holds a secret identity (AGE-SECRET-KEY-1…), which opens what is
      encrypted to its public key (age1…), the recipient. It is what age-keygen
      writes, and the age program reads it too. Without -o it goes to standard
      output; the public key then goes to standard error.

      Who loses the file cannot open what was encrypted to it: keep a copy in a
      safe place. Who gets the file can.

      Examples:
        drydock keygen -o key.txt            a new key, readable by its owner only
        drydock keygen -y key.txt            its public key, for --recipient
      """)

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("Write the key to this file, which must not exist.", valueName: "file"))
  var output: String?
  @Flag(
    name: [.customShort("y"), .customLong("recipients")], help: "Print the public keys of a key file instead."
  )
  var showsRecipients = false
  @Argument(help: ArgumentHelp("With -y: the key file, or - for standard input.", valueName: "file"))
  var input: String?
  @OptionGroup var common: CommonOptions

  struct MadeKey: Encodable {
    var created: String
    var path: String?
    var recipient: String
    /// Only where there is no file that has it.
    var identity: String?
  }

  struct Recipients: Encodable { var recipients: [String] }

  func run() throws {
    guard showsRecipients else { return try make() }
    guard let input else {
      throw UsageError(message: "-y needs a key file, or - for standard input: drydock keygen -y FILE")
    }
    guard output == nil else {
      throw UsageError(message: "-o is for a new key; the public keys of a file go to standard output")
    }
    try printRecipients(of: input)
  }

  private func make() throws {
    guard input == nil else {
      throw UsageError(message: "a new key goes to -o FILE; to read a key file, give -y before it")
    }
    let identity = try AgeIdentity.generate()
    let created = Date().ISO8601Format()
    let file = KeyFile.text(of: identity, created: created)
    var made = MadeKey(created: created, path: output, recipient: "\(identity.recipient)")
    if let output { try SecretFile.create(output, file) }
    if common.json {
      if output == nil {
        made.identity = identity.secretText.withBytes { String(decoding: $0, as: UTF8.self) }
      }
      return Output.json(made)
    }
    if output == nil {
      warnIfOthersCanRead()
      file.withBytes { Output.bytes($0) }
      // Nobody must encrypt to a key that is nowhere.
      guard StandardStreams.fault == nil else { return }
    }
    // At a terminal the key itself was just shown, with its public key in a comment.
    if output != nil || isatty(STDOUT_FILENO) != 1 { Output.note("Public key: \(identity.recipient)") }
  }

  /// A shell makes the file of a redirection as readable as any other.
  private func warnIfOthersCanRead() {
    var status = stat()
    guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0
    else { return }
    Output.note(
      "drydock: warning: the key goes to a file that others can read; -o FILE makes one that they cannot")
  }

  private func printRecipients(of path: String) throws {
    let limit = 1 << 20
    let isStandardInput = path == "-"
    let file =
      isStandardInput
      ? try SecretFile.readStandardInput(limit: limit) : try SecretFile.read(path, limit: limit)
    let identities = try KeyFile.identities(in: file, path: isStandardInput ? "standard input" : path)
    let recipients = identities.map(\.recipient.description)
    if common.json { return Output.json(Recipients(recipients: recipients)) }
    for recipient in recipients { Output.line(recipient) }
  }
}
