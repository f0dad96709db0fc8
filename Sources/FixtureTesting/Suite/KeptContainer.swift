import AgeEncryption
import FileSystem
import Foundation

/// The container of a failure, for a person to look at: migrated as far as it could be, and beside it the key that opens
/// its vault.
struct KeptContainer {
  /// The directory with `container` and `device-key.txt`.
  let path: String

  /// Makes it. What an earlier run kept stays: the next free name is taken.
  ///
  /// - Parameter directory: is made when it does not exist.
  init(_ work: FixtureWork, in directory: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let parent = try Directory(directory)
    let name = work.fixture.name
    var free = name
    var number = 2
    while try parent.status(ContainerPath(name: Array(free.utf8))) != nil {
      free = "\(name)-\(number)"
      number += 1
    }
    path = directory + "/" + free
    let container = try work.runner.build(work.fixture, in: path)
    try SecretFile.create(
      path + "/device-key.txt",
      KeyFile.text(of: work.runner.deviceKeys.present, created: Date().ISO8601Format()))
    // One that cannot be migrated is kept as it was.
    _ = try? work.runner.migrate(container)
  }
}
