import Foundation
import TestSupport
import Testing

/// `latest` beside a container, in a repository with archives of two instances.
@Suite struct LatestArchiveTests {
  private static let other = "0B7E2C11-1111-4222-8333-944455556666"

  private func with(isEncrypted: Bool = false, _ body: (Sandbox) throws -> Void) throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Notes")
      try sandbox.create("Other", version: 0, photos: 2, "--uuid", Self.other)
      try sandbox.write("words", "correct horse\n")
      for name in ["Notes", "Other"] { try take(name, sandbox, isEncrypted) }
      try body(sandbox)
    }
  }

  private func take(_ name: String, _ sandbox: Sandbox, _ isEncrypted: Bool) throws {
    let archive = try sandbox.snapshot(name)
    if isEncrypted { try sandbox.seal(archive, passphrase: "correct horse") }
  }

  @Test(arguments: [false, true])
  func `It is that of the own instance, or of the one restored into it`(_ isEncrypted: Bool) throws {
    try with(isEncrypted: isEncrypted) { sandbox in
      let options = ["-r", "Backups"] + (isEncrypted ? ["--passphrase-file", "words"] : [])
      func run(_ words: String...) throws -> CommandResult { try sandbox.drydock(words + options) }
      // The newest archive of all is the other's.
      try sandbox.remove("Notes/Documents/private.txt")
      let restored = try run("restore", "latest", "Notes").expect()
      #expect(sandbox.exists("Notes/Documents/private.txt"), "\(restored)")
      for name in ["Notes", "Other"] {
        try run("diff", "latest", name, "--exit-code").expect()
        try run("verify", "latest", "--container", name).expect()
      }

      let candidates =
        "use INSTANCE@latest: \(Self.other)@latest, 6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90@latest"
      let new = try run("restore", "latest", "New").expect(exit: 1)
      #expect(!sandbox.exists("New"), "\(new)")
      if !isEncrypted { #expect(new.errors.contains(candidates), "\(new)") }
      // A container without Apple's metadata is named after its directory.
      try run("restore", "\(Self.other)@latest", "New").expect()
      try sandbox.remove("New/Documents/private.txt")
      let again = try run("restore", "latest", "New").expect()
      #expect(sandbox.exists("New/Documents/private.txt"), "\(again)")
      // As soon as it has archives of its own, these.
      try sandbox.write("New/Documents/own.txt", "own\n")
      try take("New", sandbox, isEncrypted)
      try sandbox.remove("New/Documents/own.txt")
      let own = try run("restore", "latest", "New").expect()
      #expect(sandbox.exists("New/Documents/own.txt"), "\(own)")
    }
  }
}
