import AppContainer
import DrydockErrors
import FileSystem
import MigrationEngine

/// Checks migrations on fixtures: each by itself, and what must be true over all of them.
package struct FixtureSuite: Sendable {
  /// The fixtures that are checked, by name.
  package let fixtures: [Fixture]
  /// Whether these are all fixtures of the app, so that what must be true over all of them can be checked.
  package let isWhole: Bool

  let catalog: MigrationCatalog
  let releases: Releases
  let configuration: Configuration
  let options: SuiteOptions

  /// The fixtures of a directory, or of it those that the options' filter names.
  ///
  /// - Throws: `DrydockError` or `DrydockError` (with `file:line:column`) for a fixture that cannot be understood;
  ///   `DrydockError` with code `notFound` when there is none, or none that the filter names: a check of nothing must not
  ///   pass.
  package init(
    catalog: MigrationCatalog, releases: Releases, configuration: Configuration, directory: String,
    options: SuiteOptions = SuiteOptions()
  ) throws {
    let all = try Fixture.all(in: directory)
    try self.init(
      catalog: catalog, releases: releases, configuration: configuration, fixtures: all,
      isWhole: options.filter.isEmpty, options: options)
  }

  /// Fixtures that were chosen by hand; what must be true over all fixtures is left out.
  ///
  /// - Throws: `DrydockError` with code `notFound` when the options' filter names none of them.
  package init(
    catalog: MigrationCatalog, releases: Releases, configuration: Configuration, fixtures: [Fixture],
    options: SuiteOptions = SuiteOptions()
  ) throws {
    try self.init(
      catalog: catalog, releases: releases, configuration: configuration, fixtures: fixtures, isWhole: false,
      options: options)
  }

  private init(
    catalog: MigrationCatalog, releases: Releases, configuration: Configuration, fixtures: [Fixture],
    isWhole: Bool, options: SuiteOptions
  ) throws {
    self.fixtures = try Self.chosen(fixtures, options.filter)
    (self.catalog, self.releases, self.configuration) = (catalog, releases, configuration)
    (self.isWhole, self.options) = (isWhole, options)
  }

  private static func chosen(_ fixtures: [Fixture], _ filter: [String]) throws -> [Fixture] {
    guard !filter.isEmpty else { return fixtures }
    let patterns = PatternList(filter)
    let chosen = fixtures.filter { fixture in
      let path = ContainerPath(name: Array(fixture.name.utf8))
      guard case .matched = patterns.verdict(of: path, isDirectory: true) else { return false }
      return true
    }
    guard !chosen.isEmpty else {
      throw DrydockError(
        .notFound,
        "no fixture is called \(filter.map { "“\($0)”" }.joined(separator: " or ")); there are "
          + fixtures.prefix(10).map(\.name).joined(separator: ", ") + (fixtures.count > 10 ? ", …" : ""))
    }
    return chosen
  }
}
