import Foundation
import TestSupport
import Testing

/// A symbolic link of another user in the path of a container: who owns it chooses what a command would change.
@Suite("Links of other users")
struct ForeignLinkTests {
  private static let user = "65534"

  /// `Link` leads to the container, and `Way` to the directory that it is in; both are another user's.
  private func prepare(_ lab: Lab) throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can make another user's link")
    try lab.create("Place/Notes", version: 0)
    let files = FileManager.default
    try files.createSymbolicLink(atPath: lab("Link"), withDestinationPath: "Place/Notes")
    try files.createSymbolicLink(atPath: lab("Way"), withDestinationPath: lab("Place"))
    for name in ["Link", "Way"] { try lab.run(Tools.system("chown"), "-h", Self.user, lab(name)) }
  }

  @Test("No command goes through one, and each says where it leads")
  func refused() throws {
    try Lab.with { lab in
      try prepare(lab)
      let archive = try lab.snapshot("Place/Notes")
      try lab.write("Place/Notes/Documents/new.txt", "newer than the archive\n")
      for container in ["Link", "Way/Notes", "Way/../Way/Notes/"] {
        let link = container == "Link" ? "Link" : "Way"
        for arguments in [
          ["restore", archive, container], ["migrate", container], ["rollback", container],
          ["snapshot", container, "-r", "Backups"], ["inspect", container], ["recover", container],
        ] {
          try lab.expectRefusal(
            arguments, exit: 1,
            [lab(link), "link of another user (uid \(Self.user))", "name its target instead"],
            container: "Place/Notes")
        }
      }
      // One that leads to a container that is to be made.
      try lab.expectRefusal(
        ["restore", archive, "Way/New"], exit: 1, [lab("Way"), "another user"], container: "Place/Notes")
      // An archive is not written through one either.
      for place in [["-o", "Way/A.tar.zst"], ["-r", "Way"]] {
        try lab.expectRefusal(
          ["snapshot", "Place/Notes"] + place, exit: 1, ["Way", "another user"], container: "Place/Notes"
        )
      }
    }
  }

  @Test("A group behind one is not touched")
  func group() throws {
    try Lab.with { lab in
      try prepare(lab)
      try lab.write("Place/Group/file", "shared\n")
      try lab.write("drydock.yaml", "app: com.example.notes\ngroups: {group.lab: \(lab("Way/Group"))}\n")
      let before = try lab.tree("Place")
      let result = try lab.drydock("snapshot", "Place/Notes", "-r", "Place")
      lab.expect(result, refusedWith: 1, [lab("Way"), "another user"], #_sourceLocation)
      try lab.tree("Place").expectSame(as: before)
    }
  }

  @Test("The caller's own links, and root's, are followed")
  func followed() throws {
    try Lab.with { lab in
      try prepare(lab)
      for path in ["", "Place"] { try lab.run(Tools.system("chmod"), "0777", lab(path)) }
      for path in ["tmp"] { try lab.run(Tools.system("chmod"), "0777", lab(path)) }
      try lab.run(Tools.system("chown"), "-Rh", Self.user, lab("Place"))
      try FileManager.default.createSymbolicLink(atPath: lab("Root"), withDestinationPath: "Way/Notes")
      for container in ["Link", "Root"] {
        let result = try Command.run(
          Tools.system("setpriv"),
          [
            "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", lab.program, "snapshot",
            container,
            "-o", container + ".tar.zst",
          ], environment: lab.environment, directory: lab.directory.path)
        #expect(result.succeeded, "\(result)")
      }
      try lab.run(Tools.system("chown"), "-h", "0", lab("Link"), lab("Way"))
      for container in ["Link", "Root"] { try lab.succeed("inspect", container) }
    }
  }
}
