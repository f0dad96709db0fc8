import Foundation
import TestSupport
import Testing

/// A container that is mounted at another place, too, as the volume of a program in a container of its own: a mount is of
/// a directory's inode, which an exchange would replace.
@Suite("Containers that are mounted elsewhere")
struct OtherMountTests {
  /// Whose directory is mounted.
  private static let sources = ["Notes", "Notes/Documents"]

  @Test("In another mount namespace: what is mounted there stays the container", arguments: sources)
  func elsewhere(_ source: String) throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.write("Data/empty", "")
      let space = try Namespace(sandbox, "mount --bind \"$0/\(source)\" \"$0/Data\"")
      try sandbox.drydock("migrate Notes").expect(
        errors: "changed in place: ", "is also mounted at \(sandbox("Data"))")
      try space.tree("Data").expectSame(as: sandbox.tree(source), comparing: TreeListing.copied)
      try RawFiles.write(Array("mine".utf8), to: Array(space("Data/written").utf8))
      #expect(try sandbox.read("\(source)/written") == Array("mine".utf8))
    }
  }

  @Test("What is mounted from beside it does not matter")
  func beside() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.create("Notes2")
      try sandbox.write("Data/empty", "")
      let space = try Namespace(sandbox, "mount --bind \"$0/Notes2\" \"$0/Data\"")
      let migrated = try sandbox.drydock("migrate Notes").expect()
      #expect(!migrated.errors.contains("in place"), "\(migrated)")
      try space.tree("Data").expectSame(as: sandbox.tree("Notes2"), comparing: TreeListing.copied)
    }
  }
}
