import AppContainer
import FixtureTesting
import Foundation

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
}
