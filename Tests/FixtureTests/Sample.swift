import AppContainer
import AppStores
import DrydockTesting
import FileSystem
import Foundation
import MigrationEngine

/// Where the sample app's files are in this package.
enum Sample {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
  static let fixtures = root + "/Fixtures"
  static let migrations = root + "/Migrations"
  static let defaults: ContainerPath = "Library/Preferences/com.example.notes.plist"

  static func fixture(_ name: String) throws -> Fixture {
    try Fixture.load(fixtures + "/" + name)
  }

  /// A fixture's container, built as `drydock.yaml` of the sample app says.
  static func build(
    _ name: String, in work: String, deviceKeys: DeviceKeys? = nil
  ) throws -> Container {
    try fixture(name).build(in: work, configuration: configuration, deviceKeys: deviceKeys)
  }

  static func runner() throws -> FixtureRunner {
    try FixtureRunner(catalog: try MigrationCatalog.load(migrations), configuration: configuration)
  }

  /// What `Fixtures/drydock.yaml` says.
  static var configuration: ContainerConfiguration {
    get throws { try ContainerConfiguration(file: fixtures + "/drydock.yaml") }
  }
}
