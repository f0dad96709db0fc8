import FileSystem
import Foundation

/// Looks for whoever has some inodes open: once before staging for all of the container, and around the commit for what
/// is replaced.
struct HolderSearch {
  /// What is looked for, with a path that leads to it; nothing in a scratch container, which nobody else uses.
  let inodes: [FileIdentity: ContainerPath]
  /// Descriptors of this process that are Drydock's own.
  let own: Set<Int32>

  /// A program that another thread of this process is just starting holds copies of all descriptors until it runs, and
  /// another Drydock command that tries for the lock has the root open for a moment: what is really open is still open a
  /// little later.
  func run() -> OpenFileSearch.Result {
    if inodes.isEmpty { return OpenFileSearch.Result() }
    let files = OpenFileSearch(inodes: inodes, ownDescriptors: own)
    var search = files.run()
    for _ in 0..<3 where !search.found.isEmpty {
      Thread.sleep(forTimeInterval: 0.05)
      search = files.run()
    }
    return search
  }
}

extension OpenFileSearch.Result {
  /// The first few of those that were found, for a message.
  var shown: String {
    let shown = found.prefix(5).map(\.description).joined(separator: "; ")
    return found.count > 5 ? "\(shown) and \(found.count - 5) more" : shown
  }
}
