import Foundation
import TestSupport
import Testing

/// What other users can put beside or into their own containers, for root to find.
@Suite struct ForeignStateTests {
  private let sandbox: Sandbox

  /// A container of user 65534 in that user's directory, and somebody else's directory.
  init() throws {
    sandbox = try Sandbox()
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    try sandbox.create()
    try sandbox.shell(
      """
      mkdir Place Victim; mv Notes Place/Notes; echo safe > Victim/file
      chown -hR 65534:65534 Place
      """)
  }

  private static let transaction = "20260101T000000Z-00000001"
  private static let readers = [
    ["snapshot", "Place/Notes", "-r", "Backups"], ["inspect", "Place/Notes"], ["log", "Place/Notes"],
    ["status", "Place/Notes"], ["explain", "Place/Notes", "Documents"],
  ]

  /// A state directory as an attacker writes it: by its journal a commit was interrupted that is to exchange the victim's
  /// directory for one of the attacker's.
  private func plant() throws -> String {
    let name = try sandbox.shell("printf %s Notes | sha256sum | cut -c1-16").trimmingCharacters(in: .newlines)
    let state = "Place/.drydock-" + name
    func inode(_ path: String) throws -> String {
      try sandbox.shell("stat -c %i '\(path)'").trimmingCharacters(in: .newlines)
    }
    let stage = "\(state)/stage/\(Self.transaction)"
    try sandbox.shell(
      "mkdir -p \(stage)/tree-1 \(stage)/tree \(state)/undo \(state)/conflict; echo evil > \(stage)/tree-1/file"
    )
    let own = try "{\"device\":1,\"inode\":\(inode("Place/Notes"))}"
    let old = try "{\"device\":1,\"inode\":\(inode("Victim"))}"
    let new = try "{\"device\":1,\"inode\":\(inode(stage + "/tree-1"))}"
    let end = "\"time\":\"2026-01-01T00:00:00Z\",\"transaction\":\"\(Self.transaction)\""
    try sandbox.write(
      state + "/journal",
      """
      {"kind":"migrate","step":"begin","summary":"s",\(end)}
      {"groups":[{"after":\(new),"before":\(old),"id":"g","root":"\(sandbox("Victim"))","tree":"tree-1"}],\
      "rootAfter":\(own),"rootBefore":{"device":1,"inode":1},"step":"commit",\(end)}

      """)
    try sandbox.shell("chmod -R go-rwx \(state); chown -hR 65534:65534 \(state)")
    return state
  }

  @Test func `A planted one changes nothing: who reads goes on without it, who writes is refused`() throws {
    let state = try plant()
    let before = try (sandbox.tree("Victim"), sandbox.tree("Place"))
    for command in Self.readers {
      try sandbox.drydock(command).expect(errors: "belongs to user 65534")
    }
    for command in ["recover Place/Notes", "migrate Place/Notes", "rollback Place/Notes"] {
      try sandbox.drydock(command).expectError(
        exit: 1, [sandbox(state), "belongs to user 65534", "as that user"])
    }
    try sandbox.tree("Victim").expectSame(as: before.0, comparing: TreeListing.untouched)
    try sandbox.tree("Place").expectSame(as: before.1)
  }

  @Test func `One that seems root's own opens nothing that the configuration does not name`() throws {
    let state = try plant()
    try sandbox.shell("chown -hR 0:0 \(state)")
    let before = try sandbox.tree("Victim")
    for command in Self.readers + [["recover", "Place/Notes"], ["migrate", "Place/Notes"]] {
      try sandbox.drydock(command).expectError(exit: 5, [sandbox("Victim"), "does not name"])
    }
    // A path that leads out, and an id that is one.
    let journal = try sandbox.text(state + "/journal")
    for (text, by) in [
      ("\"rootBefore\"", "\"place\":\"../../Victim\",\"rootBefore\""),
      ("\"tree\":\"tree-1\"", "\"tree\":\"../../../../Victim\""),
      ("\"tree\":\"tree-1\"", "\"tree\":\"tree-1/file\""),
      (Self.transaction, "../../Victim"), ("\"groups\"", "\"undoes\":[\"../../Victim\"],\"groups\""),
    ] {
      try sandbox.write(state + "/journal", journal.replacing(text, with: by))
      try sandbox.drydock("recover Place/Notes").expectError(exit: 1, ["/journal", "cannot be read"])
    }
    try sandbox.tree("Victim").expectSame(as: before, comparing: TreeListing.untouched)
  }

  @Test(arguments: ["chmod 770 S", "rm -r S; ln -s ../Victim S"])
  func `One in which others can write, and what is no directory`(_ change: String) throws {
    let state = try plant()
    try sandbox.shell("chown -hR 0:0 \(state); " + change.replacing("S", with: state))
    let before = try sandbox.tree("Victim")
    try sandbox.drydock("snapshot Place/Notes -r Backups").expect(errors: "is not used")
    try sandbox.drydock("migrate Place/Notes").expectError(exit: 1, [sandbox(state), "is not used"])
    try sandbox.tree("Victim").expectSame(as: before, comparing: TreeListing.untouched)
  }

  @Test func `One inside is believed only as far as it forbids`() throws {
    let sandbox = self.sandbox.with(commit: "in-place")
    try sandbox.kill("migrate Place/Notes", at: "moved:2")
    try sandbox.shell("chown -hR 65534:65534 Place")
    let before = try sandbox.tree("Place")
    for command in ["snapshot Place/Notes -r Backups", "inspect Place/Notes"] {
      try sandbox.drydock(command).expectError(exit: 5, ["interrupted", "neither old nor new"])
    }
    try sandbox.drydock("recover Place/Notes").expectError(
      exit: 1, [".drydock-state", "belongs to user 65534"])
    try sandbox.drydock("migrate Place/Notes").expectError(exit: 5, ["interrupted", "neither old nor new"])
    try sandbox.tree("Place").expectSame(as: before)
    // Its owner ends it; what is left of it is in nobody's way who reads.
    try sandbox.openToOthers("Migrations")
    try sandbox.asOther("recover Place/Notes").expect()
    try sandbox.drydock("snapshot Place/Notes -r Backups").expect(errors: "belongs to user 65534")
  }
}
