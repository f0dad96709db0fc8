import FileSystem
import Formats

/// What holds for all fixtures of a directory: `fixtures.yaml`, which need not be there.
struct FixtureCommon {
  var volatile = VolatileValues()
  var optionalSettings: [String] = []

  private static let name: ContainerPath = "fixtures.yaml"

  /// Reads the file of a directory of fixtures.
  ///
  /// - Throws: `DrydockError` with `file:line:column`.
  init(of directory: String) throws {
    let folder = try Directory(directory)
    guard try folder.status(Self.name) != nil else { return }
    let bytes = try folder.contents(Self.name, limit: 1 << 20)
    guard let root = try YAMLDocument(bytes, file: folder.full(Self.name)).root else { return }
    let reader = try YAMLReader(root, what: "fixtures.yaml", keys: ["volatile", "optional-settings"])
    volatile = try VolatileValues(reader["volatile"])
    optionalSettings = try reader.texts("optional-settings") ?? []
  }
}
