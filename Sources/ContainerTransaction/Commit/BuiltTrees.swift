import FileSystem

/// The inodes of the trees that a commit by exchange has built, in a file of the transaction's folder: what is under their
/// names with another inode is what was live.
struct BuiltTrees: Codable {
  private static let file: ContainerPath = "trees"

  /// By the names of the trees in the folder.
  private var inodes: [String: UInt64] = [:]

  /// Writes down what was built.
  static func note(_ names: [ContainerPath], in folder: Directory) throws {
    var trees = BuiltTrees()
    for name in names { trees.inodes[name.nameString] = try folder.status(name)?.inode }
    // A kill must leave the whole list or none: half of one would have to count as a damaged record.
    try folder.replace(file, with: StateRecord.encode(trees))
  }

  /// Whether one of the trees was exchanged, or has gone to its place.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState` when the file cannot be read.
  static func areExchanged(in folder: Directory) throws -> Bool {
    guard try folder.status(file) != nil else { return false }
    let trees: BuiltTrees = try StateRecord.read(
      file, in: folder, limit: 1 << 20,
      damaged: "the list of the trees of a commit cannot be read; nothing was removed")
    return try trees.inodes.contains { name, inode in
      try folder.status(ContainerPath(name: Array(name.utf8)))?.inode != inode
    }
  }
}
