import Foundation
import TestSupport
import Testing

/// A symbolic link of another user in the path of a container: who owns it chooses what a command would change.
@Suite struct ForeignLinkTests {
  private let sandbox: Sandbox

  /// `Link` leads to the container, and `Way` to the directory that it is in; both are another user's.
  init() throws {
    sandbox = try Sandbox()
    try #require(getuid() == 0, "run as root, as CI does: only root can make another user's link")
    try sandbox.create("Place/Notes", version: 0)
    let files = FileManager.default
    try files.createSymbolicLink(atPath: sandbox("Link"), withDestinationPath: "Place/Notes")
    try files.createSymbolicLink(atPath: sandbox("Way"), withDestinationPath: sandbox("Place"))
    for name in ["Link", "Way"] { try sandbox.run(Tools.system("chown"), "-h", Self.user, sandbox(name)) }
  }

  private static let user = "65534"

  @Test func `No command goes through one, and each says where it leads`() throws {
    let archive = try sandbox.snapshot("Place/Notes")
    try sandbox.write("Place/Notes/Documents/new.txt", "newer than the archive\n")
    try sandbox.expectUnchanged("Place/Notes") {
      for container in ["Link", "Way/Notes", "Way/../Way/Notes/"] {
        let link = container == "Link" ? "Link" : "Way"
        for arguments in [
          ["restore", archive, container], ["migrate", container], ["rollback", container],
          ["snapshot", container, "-r", "Backups"], ["inspect", container], ["recover", container],
        ] {
          try sandbox.expectError(
            arguments, exit: 1,
            [sandbox(link), "link of another user (uid \(Self.user))", "name its target instead"])
        }
      }
      // A link to a container that is to be made, and archives, which are not written through a link either.
      for arguments in [
        ["restore", archive, "Way/New"], ["snapshot", "Place/Notes", "-o", "Way/A.tar.zst"],
        ["snapshot", "Place/Notes", "-r", "Way"],
      ] { try sandbox.expectError(arguments, exit: 1, ["Way", "another user"]) }
    }
  }

  @Test func `A group behind one is not touched`() throws {
    try sandbox.write("Place/Group/file", "shared\n")
    try sandbox.write(
      "drydock.yaml", "app: com.example.notes\ngroups: {group.sandbox: \(sandbox("Way/Group"))}\n")
    let before = try sandbox.tree("Place")
    try sandbox.drydock("snapshot Place/Notes -r Place").expectError(
      exit: 1, [sandbox("Way"), "another user"])
    try sandbox.tree("Place").expectSame(as: before)
  }

  @Test func `The caller's own links, and root's, are followed`() throws {
    for path in ["", "Place"] { try sandbox.run(Tools.system("chmod"), "0777", sandbox(path)) }
    for path in ["tmp"] { try sandbox.run(Tools.system("chmod"), "0777", sandbox(path)) }
    try sandbox.run(Tools.system("chown"), "-Rh", Self.user, sandbox("Place"))
    try FileManager.default.createSymbolicLink(atPath: sandbox("Root"), withDestinationPath: "Way/Notes")
    for container in ["Link", "Root"] {
      try sandbox.asOther(["snapshot", container, "-o", container + ".tar.zst"]).expect()
    }
    try sandbox.run(Tools.system("chown"), "-h", "0", sandbox("Link"), sandbox("Way"))
    for container in ["Link", "Root"] { try sandbox.succeed("inspect", container) }
  }
}
