import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Which version a container has, and how that was found out.
package struct DetectedVersion: Sendable, Equatable {
  /// What said it.
  package enum Source: Sendable, Equatable, CustomStringConvertible {
    /// The history of migrations.
    case history
    /// Another tool's own record, named in words.
    case tool(String)
    /// A version marker of the app, named in words.
    case marker(String)
    /// There is nothing in the container yet.
    case newContainer

    /// Words for people: "the history", "the setting `x`", "a new container".
    package var description: String {
      switch self {
      case .history: "the history"
      case .marker(let name), .tool(let name): name
      case .newContainer: "a new container"
      }
    }
  }

  /// The schema version.
  package var version: Int
  /// What said it.
  package var source: Source
  /// The history as it is in the container; empty when there is none.
  package var history: MigrationHistory
  /// What the container has beyond the history, because the app migrated itself: to be recorded.
  package var elsewhere: MigratedElsewhere
  /// What a container without a history is judged by, when that is a version marker without `at:`: its number may be
  /// from before there were migrations of Drydock's. Nil for one that somebody has vouched for.
  package var firstContact: FirstContact? = nil

  package struct FirstContact: Sendable, Equatable {
    /// The marker in words, and its number.
    package var marker: String, number: Int
  }
}

/// Which migrations a container has although Drydock did not run them.
package enum MigratedElsewhere: Sendable, Equatable {
  /// None.
  case none
  /// All numbers from one to another, as a version marker tells that knows the last one only.
  case through(ClosedRange<Int>)
  /// These, as another tool's table tells that has a row for each.
  case each(Set<Int>)

  /// Whether a number is among them.
  package func contains(_ number: Int) -> Bool {
    switch self {
    case .none: false
    case .through(let range): range.contains(number)
    case .each(let numbers): numbers.contains(number)
    }
  }

  /// Without what a history would have, had it been run: a tool that keeps one number for all does not know which ones
  /// below it were there then.
  func beyond(_ history: MigrationHistory) -> MigratedElsewhere {
    guard case .through(let range) = self, history.version >= range.lowerBound else { return self }
    return history.version < range.upperBound ? .through(history.version + 1...range.upperBound) : .none
  }

  /// The newest of them; 0 without any.
  var newest: Int {
    switch self {
    case .none: 0
    case .through(let range): range.upperBound
    case .each(let numbers): numbers.max() ?? 0
    }
  }
}

extension DetectedVersion {
  /// Finds out which version a container has: its history, else the markers of `drydock.yaml`, else 0 when
  /// nothing is in it yet, else what the absence of a marker means.
  ///
  /// A marker ahead of the history means that the app migrated itself, and is believed.
  ///
  /// Where another tool's migrations are used, its own record comes first: it goes with the database.
  ///
  /// - Parameter tool: the other tool; the one of `drydock.yaml` when nil.
  /// - Throws: ``DrydockError``: `unknownVersion` when nothing tells, or a marker's number means nothing;
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
          version: 0, source: .newContainer, history: MigrationHistory(), elsewhere: .none)
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
    // Numbers that an `at:` translates were vouched for by whoever wrote it.
    let isVouchedFor = history != nil || version == 0 || readings.contains { !$0.isPlain }
    return DetectedVersion(
      version: version, source: source, history: history ?? MigrationHistory(),
      elsewhere: version > recorded ? .through(recorded + 1...version) : .none,
      firstContact: isVouchedFor
        ? nil : readings.first.map { FirstContact(marker: $0.name, number: $0.number) })
  }

  /// The version of a container with neither history nor marker, where `absent:` says it.
  private static func absent(_ stage: StagedContainer) throws -> DetectedVersion {
    for marker in stage.container.configuration.versionMarkers {
      guard let version = marker.absent else { continue }
      let access = VersionMarkerAccess(marker: marker, stage: stage)
      return DetectedVersion(
        version: version, source: .marker("the absence of \(access.name)"), history: MigrationHistory(),
        elsewhere: version > 0 ? .through(1...version) : .none)
    }
    throw unknown(stage.container)
  }

  /// What another tool's record says; nil when there is none but a history. Numbers that the record does not have were
  /// taken back by the tool: the history's word on them counts no more.
  private static func detect(_ record: ToolRecord, _ history: MigrationHistory?) throws -> DetectedVersion? {
    switch try record.read() {
    case .applied(let numbers):
      var history = history ?? MigrationHistory()
      for old in history.records where !numbers.contains(old.number) { history.remove(old.number) }
      return DetectedVersion(
        version: numbers.newest, source: .tool(record.name), history: history,
        elsewhere: numbers.beyond(history))
    case .noDatabase:
      if history != nil { return nil }
      return DetectedVersion(
        version: 0, source: .newContainer, history: MigrationHistory(), elsewhere: .none)
    case .unmarked:
      if history != nil { return nil }
      throw DrydockError(
        .unknownVersion,
        "nothing says which version this container has: the database \(record.tool.database) has tables, and not "
          + "\(record.name); say the version with `drydock baseline CONTAINER --to N`")
    }
  }

  /// What one marker says.
  private struct MarkerReading {
    let name: String
    let number: Int
    let range: ClosedRange<Int>
    /// Whether the app's numbers are taken for those of migrations.
    let isPlain: Bool

    init?(_ access: VersionMarkerAccess) throws {
      guard let number = try access.read() else { return nil }
      guard let range = VersionMarkerNumbers(access.marker.at).migrations(for: number) else {
        throw DrydockError(
          .unknownVersion,
          "\(access.name) is \(number), which stands for no migration: add it to the marker's `at:` in "
            + "drydock.yaml, or say the version with `drydock baseline CONTAINER --to N`")
      }
      name = access.name
      self.number = number
      self.range = range
      isPlain = access.marker.at.isEmpty
    }
  }

  private static func contradiction(
    _ reading: MarkerReading, _ version: Int, _ recorded: Int, _ readings: [MarkerReading], hasHistory: Bool
  ) -> DrydockError {
    if hasHistory, version == recorded {
      return DrydockError(
        .contradiction,
        "\(reading.name) is \(reading.number), behind the history, which says version \(recorded): an older "
          + "state of the app's data is mixed with newer; restore the container from a backup, or say which "
          + "version it is with `drydock baseline CONTAINER --to N`")
    }
    let other = readings.first { $0.range.lowerBound == version }
    return DrydockError(
      .contradiction,
      "two version markers differ: \(reading.name) is \(reading.number) and \(other?.name ?? "another") is "
        + "\(other?.number ?? version); say which version it is with `drydock baseline CONTAINER --to N`")
  }

  private static func unknown(_ container: Container) -> DrydockError {
    let markers = container.configuration.versionMarkers
    let what =
      markers.isEmpty
      ? "it has no history of migrations, and drydock.yaml names no version marker"
      : "it has no history of migrations, and none of the version markers of drydock.yaml is in it"
    return DrydockError(
      .unknownVersion,
      "nothing says which version this container has: \(what); "
        + (markers.isEmpty
          ? "name a marker (`version-markers: [{defaults: KEY}]`)"
          : "say with `absent: 0` in a marker which version that means")
        + ", or say the version with `drydock baseline CONTAINER --to N`", path: container.root)
  }

  /// Whether the container holds nothing of the app's yet: no settings, databases or files. The vault does not count: on a
  /// device the keychain outlives the app, so that a container made anew may have the secrets of the one before.
  private static func isNew(_ stage: StagedContainer) throws -> Bool {
    let configuration = stage.container.configuration
    let named =
      configuration.databases.values.flatMap { $0 } + configuration.defaults.values
      + [stage.container.standardDefaults].compactMap { $0 }
    for path in named where try stage.status(of: path) != nil { return false }
    let layout = stage.container.layout
    for root in layout.includedRoots ?? [.root] where try holdsFile(root, layout, stage) { return false }
    return true
  }

  private static func holdsFile(_ path: ContainerPath, _ layout: ContainerLayout, _ stage: StagedContainer) throws
    -> Bool
  {
    guard let status = try stage.status(of: path), !layout.neverIncluded.contains(path),
      path != stage.container.vaultPath || status.type == .directory,
      path.isRoot || path != layout.historyPath.parent, path.nameString != ".DS_Store"
    else { return false }
    guard status.type == .directory else { return true }
    return try stage.children(of: path).contains { try holdsFile($0, layout, stage) }
  }
}
