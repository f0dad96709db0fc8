import DrydockErrors
import FileSystem
import Foundation

/// A full copy of a container as it will be, for a program that is to change it: whatever the program does, it does it
/// here. Databases are captured, each one consistent file; sockets, FIFOs, devices and what is mounted are left out.
package struct PrivateCopy: Sendable {
  /// The copy's root.
  package let root: Directory
  /// An empty directory beside it for the program's own use; it goes with the copy.
  package let work: Directory
  /// The copy as it was made.
  let before: TreeIndex

  /// The processes that have something of the copy open, or work in it.
  ///
  /// A process that just ends is given a little time.
  package func users() throws -> [OpenFile] {
    var inodes = try TreeIndex(of: root).inodes()
    inodes[try root.status().identity] = .root
    let search = OpenFileSearch(inodes: inodes, ownDescriptors: [root.descriptor.rawValue])
    let deadline = ContinuousClock.now + .seconds(1)
    while true {
      let users = search.run().found
      if users.isEmpty || ContinuousClock.now > deadline { return users }
      Thread.sleep(forTimeInterval: 0.05)
    }
  }
}

extension StagedContainer {
  /// Runs a body on a full private copy, and takes over what differs in it then; all else stays as it is.
  ///
  /// - Throws: what the body throws, and then nothing is taken over; ``DrydockError`` `checkFailed` when a process is
  ///   still at work in the copy, or when what it has become cannot be a container's.
  package func changeCopy<T>(_ body: (PrivateCopy) throws -> T) throws -> T {
    let folder = newName()
    try stage.createDirectory(folder)
    defer { try? stage.removeTree(folder) }
    let copy = try CopyBuilder(self, in: stage.directory(folder)).build()
    let result = try body(copy)
    if let user = try copy.users().first {
      throw DrydockError(
        .checkFailed, "\(user), of the private copy: a script must wait for all that it starts")
    }
    try CopyAdoption(of: copy, by: self).run()
    return result
  }
}
