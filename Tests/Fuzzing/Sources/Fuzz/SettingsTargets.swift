@testable import Formats

extension FuzzTarget {
  /// A settings file that can be written gives the same file again.
  func readSettings(_ bytes: [UInt8], _ path: String) throws {
    let file = try SettingsFile(bytes: bytes, path: path)
    let written = try file.encoded()
    let again = try SettingsFile(bytes: written, path: path)
    guard again.root == file.root, try again.encoded() == written else {
      fatalError("what is written is not what is read")
    }
  }
}
