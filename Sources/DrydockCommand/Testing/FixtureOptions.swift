import ArgumentParser
import Drydock
import FixtureTesting
import Foundation

/// Which fixtures.
struct FixtureOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Names of fixtures, or their directories; or one directory of fixtures. By default all.",
      valueName: "fixture")) var names: [String] = []

  @Option(
    name: .customLong("fixtures"),
    help: ArgumentHelp(
      "The directory of fixtures; by default `fixtures:` of drydock.yaml.", valueName: "directory"))
  var directory: String?

  @Option(
    help: ArgumentHelp("Of them only those with such a name, such as 'v*'; repeatable.", valueName: "pattern")
  )
  var filter: [String] = []

  /// The directory of fixtures, if one is named.
  func directory(_ configuration: ContainerConfiguration) -> String? {
    directory ?? Environment["FIXTURES"] ?? configuration.fixtures
  }

  /// The fixtures with what checks them.
  func suite(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration, _ options: SuiteOptions
  ) throws -> FixtureSuite {
    do { return try load(catalog, configuration, options) } catch var error as DrydockError
      where error.code == .malformed
    {
      // A file that the user wrote, not one of a container's: validation, as with migrations.
      error.code = .badConfiguration
      throw error
    }
  }

  private func load(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration, _ options: SuiteOptions
  ) throws -> FixtureSuite {
    let releases = try Releases.read(catalog.directory)
    if let whole = try whole(configuration) {
      return try FixtureSuite(
        catalog: catalog, releases: releases, configuration: configuration, directory: whole, options: options
      )
    }
    return try FixtureSuite(
      catalog: catalog, releases: releases, configuration: configuration, fixtures: chosen(configuration),
      options: options)
  }

  /// The directory of which all fixtures are meant.
  private func whole(_ configuration: ContainerConfiguration) throws -> String? {
    guard names.isEmpty else {
      return names.count == 1 && isDirectory(names[0]) && !isFixture(names[0])
        && find(names[0], configuration) == nil
        ? names[0] : nil
    }
    guard let directory = directory(configuration) else {
      throw UsageError(
        message:
          "no fixtures are named; give a FIXTURE, --fixtures DIRECTORY, or `fixtures: DIRECTORY` in drydock.yaml"
      )
    }
    return directory
  }

  /// Each once. Results are told by name: two of one name would be one.
  private func chosen(_ configuration: ContainerConfiguration) throws -> [Fixture] {
    var places: [String: String] = [:]
    var chosen: [Fixture] = []
    for name in names {
      guard let path = find(name, configuration) else {
        throw notFound(name, configuration)
      }
      let fixture = try Fixture.load(path)
      let place = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
      if let other = places.updateValue(place, forKey: fixture.name) {
        if other == place { continue }
        throw UsageError(
          message:
            "two fixtures are called \(fixture.name), \(other) and \(place): test them one after the other")
      }
      chosen.append(fixture)
    }
    return chosen
  }

  private func notFound(_ name: String, _ configuration: ContainerConfiguration) -> DrydockError {
    let known = directory(configuration).flatMap { try? Fixture.all(in: $0).map(\.name) } ?? []
    let near = NearestWord.to(name, among: known)
    // A wall of names would hide the mistake.
    let hint =
      near == nil && known.count > 20
      ? "there are \(known.count) others" : NearestWord.hint(for: name, among: known)
    return DrydockError(.notFound, "there is no fixture \(name); \(hint)")
  }

  /// A fixture's directory by its name in the directory of fixtures, or else by its path.
  private func find(_ name: String, _ configuration: ContainerConfiguration) -> String? {
    let places = directory(configuration).map { [$0 + "/" + name] } ?? []
    return ((name.contains("/") ? [] : places) + [name]).first(where: isFixture)
  }

  private func isFixture(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: path + "/fixture.yaml")
  }

  private func isDirectory(_ path: String) -> Bool {
    var isDirectory: ObjCBool = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
  }
}
