import ArgumentParser
import Drydock
import DrydockTesting
import Foundation

struct InitCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Write a commented drydock.yaml into the working directory.",
    discussion: """
      With a container, fills in what it finds there: the app, its settings files and \
      databases, and the app's own schema number, which becomes the version before the \
      first migration, unless Migrations/releases.yaml accounts for it. With --fixture \
      the container becomes the first fixture, as by `drydock fixture capture`. An \
      existing file is never replaced.

      Examples:
        drydock init Notes
        drydock init Notes --fixture v1
      """)

  @Argument(
    help: "A container to take the app, the settings file and the databases from.", completion: .file())
  var container: String?
  @Option("Also make the first fixture of the container, with this name.", value: "name") var fixture: String?
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func validate() throws {
    if fixture != nil, container == nil { throw ValidationError("--fixture needs a container to capture") }
  }

  func run() throws {
    if let fixture { try refuseSecret(as: fixture) }
    let path = FileManager.default.currentDirectoryPath + "/" + ContainerConfiguration.fileName
    let released = try Releases.read("Migrations").version
    let template =
      try container.map { path in
        try Container.reading(at: path) { try ConfigurationTemplate($0, released: released) }
      } ?? ConfigurationTemplate(nil, released: released)
    let directory = try Directory(FileManager.default.currentDirectoryPath)
    guard try directory.status(ContainerPath(ContainerConfiguration.fileName)) == nil else {
      throw DrydockError(.io, "already exists and is not replaced; edit it, or move it away", path: path)
    }
    try directory.create(
      ContainerPath(ContainerConfiguration.fileName), Array(template.text().utf8), mode: 0o644)
    let captured: CaptureReport?
    do { captured = try captureFixture(ContainerConfiguration(file: path)) } catch {
      // Both or none: the command can be repeated.
      try directory.removeFile(ContainerPath(ContainerConfiguration.fileName))
      throw error
    }
    let ignored = try Self.ignore(
      ["device.key", "device.txt", "Backups/", ".drydock-*/"], in: directory)
    let personal = template.personal
    if common.json {
      return Output.json([
        "path": path, "fixture": captured, "ignored": ignored, "personal_settings": personal,
      ])
    }
    Output.line(path)
    if !ignored.isEmpty { Output.message("added to .gitignore: \(ignored.joined(separator: ", "))") }
    if !personal.isEmpty {
      Output.note(
        "settings that look personal: \(personal.joined(separator: ", ").printable); "
          + "`drydock fixture capture CONTAINER NAME --replace-key KEY` replaces one in a fixture")
    }
    let made = [ContainerConfiguration.fileName] + (captured.map { [$0.shownDirectory] } ?? [])
    let advice =
      "Next: review \(made.joined(separator: " and ")), then "
      + (template.room.map {
        "write Room's migrations, such as Migrations/\($0.version)_\($0.version + 1).sql."
      }
        ?? "run `drydock new NAME`, which creates the first migration.")
    captured?.write(next: advice)
    if captured == nil {
      Output.message(advice)
    }
  }

  private func captureFixture(_ configuration: ContainerConfiguration) throws -> CaptureReport? {
    guard let container, let fixture else { return nil }
    var options = CaptureOptions()
    // Before the first migration, whether the app counts its versions or not.
    if configuration.versionMarkers.isEmpty, configuration.migrationTool == nil { options.version = 0 }
    let directory = FixtureOptions.directory(nil, configuration)
    return try Container.reading(at: container, configuration: configuration) { opened in
      try FixtureOptions.capturing(in: directory) {
        try FixtureCapture.run(
          .container(opened), as: fixture, in: directory, configuration: configuration, options: options)
      }
    }
  }

  /// Adds what must not get into version control, keys and users' data, to `.gitignore` where git is used.
  ///
  /// - Returns: those that were not there.
  private static func ignore(_ lines: [String], in directory: Directory) throws -> [String] {
    var above = FileManager.default.currentDirectoryPath
    while !FileManager.default.fileExists(atPath: above + "/.git") {
      guard above.count > 1 else { return [] }
      above = (above as NSString).deletingLastPathComponent
    }
    let file: ContainerPath = ".gitignore"
    let text = String(decoding: FileManager.default.contents(atPath: "\(file)") ?? Data(), as: UTF8.self)
    let known = Set(text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: ["/", " "]) })
    let new = lines.filter { !known.contains($0.trimmingCharacters(in: ["/"])) }
    if new.isEmpty { return [] }
    let start = text.isEmpty || text.hasSuffix("\n") ? text : text + "\n"
    try directory.replace(file, with: Array((start + new.joined(separator: "\n") + "\n").utf8), mode: 0o644)
    return new
  }
}

struct KeygenCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "keygen", abstract: "Generate a key for encrypted archives or for a device's vault.",
    discussion: """
      The key file holds a secret identity (AGE-SECRET-KEY-1…), which opens what is \
      encrypted to its public key (age1…), the recipient. The format is that of \
      age-keygen, and age can read it. Without -o it goes to standard output, and the \
      public key to standard error.

      Without the file, what was encrypted to it cannot be opened: keep a copy in a \
      safe place. Whoever has the file can open it.

      Examples:
        drydock keygen -o key.txt            a new key, readable by its owner only
        drydock keygen -y key.txt            its public key, for --recipient
      """)

  @Option(name: [.short, .long], "Write the key to this new file.", value: "file") var output: String?
  @Flag(
    name: [.customShort("y"), .customLong("recipients")], help: "Print the public keys of a key file instead."
  )
  var showsRecipients = false
  @Argument(
    help: ArgumentHelp("With -y: the key file, or - for standard input.", valueName: "file"),
    completion: .file())
  var input: String?
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    guard showsRecipients else { return try make() }
    guard let input else {
      throw UsageError("-y needs a key file, or - for standard input: drydock keygen -y FILE")
    }
    guard output == nil else {
      throw UsageError("-o is for a new key; the public keys of a file go to standard output")
    }
    try printRecipients(of: input)
  }

  private func make() throws {
    guard input == nil else {
      throw UsageError("a new key goes to -o FILE; to read a key file, give -y before it")
    }
    let identity = try AgeIdentity.generate()
    let created = Date().ISO8601Format()
    let file = KeyFile.text(of: identity, created: created)
    if let output { try SecretFile.create(output, file) }
    if common.json {
      // Only without a file the result has the secret.
      let secret = output == nil ? identity.secretText.withBytes { String(decoding: $0, as: UTF8.self) } : nil
      return Output.json([
        "created": created, "path": output, "recipient": "\(identity.recipient)", "identity": secret,
      ])
    }
    if output == nil {
      warnIfOthersCanRead()
      file.withBytes { Output.bytes($0) }
      // Nobody must encrypt to a key that is nowhere.
      guard StandardStreams.fault == nil else { return }
    }
    // At a terminal the key itself was just shown, with its public key in a comment.
    if output != nil || isatty(STDOUT_FILENO) != 1 { Output.message("Public key: \(identity.recipient)") }
  }

  /// A shell makes the file of a redirection as readable as any other.
  private func warnIfOthersCanRead() {
    var status = stat()
    guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0
    else { return }
    Output.warning(
      "the key goes to a file that others can read; -o FILE creates a private one")
  }

  private func printRecipients(of path: String) throws {
    let file = try SecretFile.read(orStandardInput: path, limit: 1 << 20)
    let identities = try KeyFile.identities(in: file, path: path == "-" ? "standard input" : path)
    let recipients = identities.map(\.recipient.description)
    if common.json { return Output.json(["recipients": recipients]) }
    for recipient in recipients { Output.line(recipient) }
  }
}
