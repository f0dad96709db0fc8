import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// The schema version of a container, and how it was detected.
package struct DetectedVersion: Sendable, Equatable {
  /// How the version was detected.
  package enum Source: Sendable, Equatable, CustomStringConvertible {
    case history
    /// Another tool's record.
    case tool(String)
    /// A version marker of the app.
    case marker(String)
    case newContainer

    /// Such as "the history", "the setting `x`", "a new container".
    package var description: String {
      switch self {
      case .history: "the history"
      case .marker(let name), .tool(let name): name
      case .newContainer: "a new container"
      }
    }
  }

  package var version: Int
  package var source: Source
  /// The container's history; empty when it has none.
  package var history: MigrationHistory
  /// The migrations beyond the history that the app applied itself: to be recorded.
  package var appliedExternally: ExternalMigrations
  /// The version marker without `at:` that says the version of a container without a history. Its number may be older than
  /// the first migration. Nil when the number is confirmed.
  package var unconfirmedVersion: UnconfirmedVersion? = nil
  /// The app's own number for the version, where a marker with `at:` is the source and gives another one.
  package var appNumber: Int? = nil

  package struct UnconfirmedVersion: Sendable, Equatable {
    package var marker: String, number: Int
  }
}

/// The migrations that were applied externally: by the app or another tool.
package enum ExternalMigrations: Sendable, Equatable {
  case none
  /// A range of numbers, from a version marker that has only the last one.
  case through(ClosedRange<Int>)
  /// Single numbers, from another tool's table that has a row for each.
  case each(Set<Int>)

  package func contains(_ number: Int) -> Bool {
    switch self {
    case .none: false
    case .through(let range): range.contains(number)
    case .each(let numbers): numbers.contains(number)
    }
  }

  /// Without numbers below the history's version: a tool that stores one number does not know which ones below it were
  /// applied.
  func beyond(_ history: MigrationHistory) -> ExternalMigrations {
    guard case .through(let range) = self, history.version >= range.lowerBound else { return self }
    return history.version < range.upperBound ? .through(history.version + 1...range.upperBound) : .none
  }

  /// The numbers that are known to have been recorded.
  var recorded: Set<Int> {
    switch self {
    case .none: []
    case .through(let range): [range.upperBound]
    case .each(let numbers): numbers
    }
  }

  /// The newest of them; 0 without any.
  var newest: Int { recorded.max() ?? 0 }
}

extension DetectedVersion {
  /// Detects the version of a container: by its history, else by the markers of `drydock.yaml`, else 0 when it is empty,
  /// else by the `absent:` of a marker.
  ///
  /// A marker ahead of the history means that the app applied migrations itself.
  ///
  /// Another tool's record comes first: it is part of the database.
  ///
  /// - Parameter tool: the other tool; the one of `drydock.yaml` when nil.
  /// - Throws: ``DrydockError``: `unknownVersion` when none applies, or a marker's number is unknown;
  ///   `contradiction` when a marker is behind the history or two differ; `damagedHistory`.
  package static func detect(
    in stage: StagedContainer, tool: MigrationTool? = nil
  ) throws -> DetectedVersion {
    let history = try MigrationHistory.read(stage)
    if let tool = tool ?? stage.container.configuration.migrationTool,
      let detected = try detect(ToolRecord(tool, stage), history)
    {
      return detected
    }
    let readings = try stage.container.configuration.versionMarkers.compactMap { marker -> MarkerReading? in
      try MarkerReading(VersionMarkerAccess(marker: marker, stage: stage))
    }
    if history == nil && readings.isEmpty {
      if try isNew(stage) {
        return DetectedVersion(
          version: 0, source: .newContainer, history: MigrationHistory(), appliedExternally: .none)
      }
      return try absent(stage)
    }
    let recorded = history?.version ?? 0
    let version = max(recorded, readings.map(\.range.lowerBound).max() ?? 0)
    for reading in readings where !reading.range.contains(version) {
      throw contradiction(reading, version, recorded, readings, hasHistory: history != nil)
    }
    let source: Source
    if version > recorded || history == nil, let reading = readings.first {
      source = .marker(reading.name)
    } else {
      source = .history
    }
    // An `at:` confirms the marker's numbers.
    let isConfirmed = history != nil || version == 0 || readings.contains { !$0.isPlain }
    return DetectedVersion(
      version: version, source: source, history: history ?? MigrationHistory(),
      appliedExternally: version > recorded ? .through(recorded + 1...version) : .none,
      unconfirmedVersion: isConfirmed
        ? nil : readings.first.map { UnconfirmedVersion(marker: $0.name, number: $0.number) },
      appNumber: history == nil ? readings.first { $0.number != version && !$0.isCount }?.number : nil)
  }

  /// The version of a container without history and marker, from `absent:`.
  private static func absent(_ stage: StagedContainer) throws -> DetectedVersion {
    for marker in stage.container.configuration.versionMarkers {
      guard let version = marker.absent else { continue }
      let access = VersionMarkerAccess(marker: marker, stage: stage)
      return DetectedVersion(
        version: version, source: .marker("the absence of \(access.name)"), history: MigrationHistory(),
        appliedExternally: version > 0 ? .through(1...version) : .none)
    }
    throw unknown(stage.container)
  }

  /// The version by another tool's record; nil when only a history exists. Numbers that are missing in the record were
  /// reverted by the tool, and are removed from the history.
  private static func detect(_ record: ToolRecord, _ history: MigrationHistory?) throws -> DetectedVersion? {
    switch try record.read() {
    case .applied(let numbers):
      var history = history ?? MigrationHistory()
      for old in history.records where !numbers.contains(old.number) { history.remove(old.number) }
      return DetectedVersion(
        version: numbers.newest, source: .tool(record.name), history: history,
        appliedExternally: numbers.beyond(history))
    case .noDatabase:
      if history != nil { return nil }
      return DetectedVersion(
        version: 0, source: .newContainer, history: MigrationHistory(), appliedExternally: .none)
    case .unmarked:
      if history != nil { return nil }
      throw DrydockError(
        .unknownVersion,
        "the container's version is unknown: the database \(record.tool.database) has tables, but not "
          + "\(record.name); set the version")
    }
  }

  private struct MarkerReading {
    let name: String
    let number: Int
    let range: ClosedRange<Int>
    /// Whether the app's numbers are the numbers of migrations.
    let isPlain: Bool
    /// Whether it is the number of GRDB's migrations, which have names.
    let isCount: Bool

    init?(_ access: VersionMarkerAccess) throws {
      guard let number = try access.read() else { return nil }
      guard let range = VersionMarkerNumbers(access.marker.at).migrations(for: number) else {
        throw DrydockError(
          .unknownVersion,
          "\(access.name) is \(number), which means no migration: add it to the marker's `at:` in "
            + "drydock.yaml, or set the version")
      }
      name = access.name
      self.number = number
      self.range = range
      isPlain = access.marker.at.isEmpty
      if case .grdb = access.marker.place { isCount = true } else { isCount = false }
    }
  }

  private static func contradiction(
    _ reading: MarkerReading, _ version: Int, _ recorded: Int, _ readings: [MarkerReading], hasHistory: Bool
  ) -> DrydockError {
    if hasHistory, version == recorded {
      return DrydockError(
        .contradiction,
        "\(reading.name) is \(reading.number), behind the history, which says version \(recorded): older app data "
          + "is mixed with newer data; restore the container from a backup, or set "
          + "the version")
    }
    let other = readings.first { $0.range.lowerBound == version }
    return DrydockError(
      .contradiction,
      "two version markers differ: \(reading.name) is \(reading.number) and \(other?.name ?? "another") is "
        + "\(other?.number ?? version); set the version")
  }

  private static func unknown(_ container: Container) -> DrydockError {
    let markers = container.configuration.versionMarkers
    let what =
      container.configuration.file == nil
      ? "it has no history of migrations, and no drydock.yaml is here or above"
      : markers.isEmpty
        ? "it has no history of migrations, and drydock.yaml names no version marker"
        : "it has no history of migrations, and none of the version markers of drydock.yaml is in it"
    return DrydockError(
      .unknownVersion,
      "the container's version is unknown: \(what); "
        + (markers.isEmpty
          ? "name a marker (`version-markers: [{defaults: KEY}]`)"
          : "say with `absent: 0` in a marker which version its absence means")
        + ", or set the version", path: container.root)
  }

  /// Whether the container has no settings, databases or files. The vault does not count: on a device the keychain outlives
  /// the app, so that a new container may have the secrets of an earlier one.
  private static func isNew(_ stage: StagedContainer) throws -> Bool {
    let configuration = stage.container.configuration
    let named =
      configuration.databases.values.flatMap { $0 } + configuration.defaults.values
      + [stage.container.standardDefaults].compactMap { $0 }
    for path in named where try stage.status(of: path) != nil { return false }
    let layout = stage.container.layout
    for root in layout.includedRoots ?? [.root] where try containsFile(root, layout, stage) { return false }
    return true
  }

  private static func containsFile(_ path: ContainerPath, _ layout: ContainerLayout, _ stage: StagedContainer)
    throws
    -> Bool
  {
    guard let status = try stage.status(of: path), !layout.neverIncluded.contains(path),
      path != stage.container.vaultPath || status.type == .directory,
      path.isRoot || path != layout.historyPath.parent, path.nameString != ".DS_Store"
    else { return false }
    guard status.type == .directory else { return true }
    return try stage.children(of: path).contains { try containsFile($0, layout, stage) }
  }
}
