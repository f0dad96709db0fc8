import ArgumentParser
import Drydock
import Foundation

struct SignCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "sign", abstract: "Sign existing archives, after verifying every byte.",
    discussion: """
      Writes a signature payload and its signature beside each archive, as `drydock \
      snapshot --sign` does. Needs --sign or DRYDOCK_SIGN. What you sign is what you have \
      verified yourself: whoever trusts your key restores it. An archive and those that \
      it needs are signed one by one.

      Examples:
        drydock sign latest -r Backups --sign minisign.key
        drydock sign A.tar.zst --sign ~/.ssh/id_ed25519
      """)

  @OptionGroup var archives: ArchivesOptions
  @OptionGroup(title: OptionTitle.keys) var signing: SigningOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.limits) var wait: RepositoryWaitOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func run() throws {
    let configuration = try common.configuration()
    let signing = try signing.keys()
    guard !signing.isEmpty else { throw UsageError("no key signs; give --sign FILE, or DRYDOCK_SIGN") }
    var keys = try key.keys()
    let timeout = try wait.timeout()
    let paths = try paths(configuration, keys)
    let display = try showing.display()
    defer { display.end() }
    var signed: [ResultObject] = []
    for (index, path) in paths.enumerated() {
      if paths.count > 1 { display.progress?.begin(item: index + 1, of: paths.count) }
      _ = try Repository.sign(
        path, with: signing, keys: keys.opening(path), limit: expansion.limit(), lockTimeout: timeout,
        progress: display.progress)
      signed.append(["path": path, "signed_by": signing.map(\.description)])
      if !common.json, !common.quiet { Output.line(path) }
    }
    display.end()
    if common.json { return Output.json(["archives": signed]) }
    if paths.isEmpty { Output.line("no archives") }
  }

  private func paths(_ configuration: ContainerConfiguration, _ keys: ArchiveKeys) throws -> [String] {
    guard let listing = try archives.listing(configuration, keys, "sign") else {
      return try archives.names.map { try archives.repository.archive($0, configuration, keys) }
    }
    if let error = listing.locked.first?.error ?? listing.unreadable.first?.error { throw error }
    return listing.items.map(\.path)
  }
}
