import Drydock
import DrydockTesting
import Foundation

/// The commented drydock.yaml that `init` writes.
struct ConfigurationTemplate {
  private let container: Container?
  private var databases: [(name: String, path: ContainerPath)] = []
  /// What the databases' own libraries say of their schemas, by the database's name.
  private var records: [String: SchemaRecord] = [:]
  /// A database of Room whose exported schemas are below the working directory: its migrations are Room's.
  private(set) var room: (database: String, version: Int, schemas: String)?
  /// The settings that look like personal data.
  private(set) var personal: [String] = []
  /// Whether the settings file that the layout expects is there.
  private var hasDefaults = false
  /// What the container seems to count its own schema by.
  private var markers: [VersionMarkerSearch.Finding] = []
  /// The newest schema version that has been released.
  private let released: Int

  init(_ container: Container?, released: Int) throws {
    (self.container, self.released) = (container, released)
    guard let container else { return }
    var scan = ContainerScan(try container.open(), rules: ExclusionRules(container))
    var found: [ContainerPath] = []
    while let entry = try scan.nextEntry() {
      if case .database(let unit) = entry.kind, entry.exclusion == nil { found.append(unit.main) }
    }
    databases = found.enumerated().map { number, path in
      let stem = path.nameString.split(separator: ".").first.map(String.init) ?? "database"
      let isPlain = stem.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" }
      let name = isPlain ? stem : "database\(number + 1)"
      let isTaken = found[..<number].contains { $0.nameString.hasPrefix(stem + ".") }
      return (isTaken ? "\(name)\(number + 1)" : name, path)
    }
    let stage = try DiscardedStage(on: container)
    markers = VersionMarkerSearch(stage, databases: databases).findings
    personal = try stage.personalSettings()
    hasDefaults = try container.standardDefaults.map { try stage.status(of: $0) != nil } ?? false
    for (name, path) in databases {
      records[name] = SchemaRecord.find(in: path, of: stage)
      guard room == nil, let identity = records[name]?.room,
        let schemas = RoomSchema.folder(below: FileManager.default.currentDirectoryPath, identity)
      else { continue }
      room = (name, identity.version, schemas)
      markers.removeAll { $0.place == .userVersion(database: name) }
    }
  }

  /// The lines of `version-markers`: the first place that was found counts, others are named.
  private var markerLines: String {
    guard let first = markers.first else {
      return """
        # version-markers:
        #   - {defaults: dataSchemaVersion, absent: 0}
        #   - {pragma: notes, at: {4: 2, 6: 3}}
        #   - {json: Documents/state.json, pointer: /version}
        """
    }
    var found = markers.map { marker in
      if case .grdb(_, let identifiers) = marker.place {
        return "# Found: the last migration in \(marker.place.name) is \(quoted(identifiers.last ?? ""))."
      }
      return "# Found: \(marker.place.name) is \(marker.number)."
    }
    if case .grdb(_, let identifiers) = first.place {
      found.append(
        "# When the app registers another migration with one here, add its identifier, so that the app does not run it again: "
          + "at: {0: \(quoted(identifiers.last ?? "")), 1: \"NEW\"}.")
    } else if first.number > released {
      found.append(
        "# When the app's number changes with a migration, add both: at: {0: \(first.number), 1: \(first.number + 1)}."
      )
    }
    let lines = ["version-markers:", "  - \(text(first))"] + markers.dropFirst().map { "  # - \(text($0))" }
    return (found + lines).joined(separator: "\n")
  }

  private var databaseLines: String {
    if databases.isEmpty { return "# databases:\n#   notes: [Library/Application Support/notes.sqlite]" }
    let places = databases.flatMap { name, path in
      (records[name].map { ["  # \($0.text)"] } ?? []) + ["  \(name): [\(quoted(path.description))]"]
    }
    return (["databases:"] + places).joined(separator: "\n")
  }

  /// The migrations of a tool that has left its record in a database are read as they are.
  private var migrationLines: String {
    if let room {
      return
        "migrations: {path: Migrations, format: room, database: \(room.database), schemas: \(quoted(room.schemas))}"
    }
    guard
      let (name, tool) = databases.lazy.compactMap({ name, _ in records[name]?.tool.map { (name, $0) } })
        .first
    else { return "migrations: Migrations" }
    let more = tool == .room ? ", schemas: app/schemas/DATABASE" : ""
    return """
      # If the directory is \(tool.rawValue)'s: migrations: {path: migrations, format: \(tool.rawValue), database: \(name)\(more)}
      migrations: Migrations
      """
  }

  /// A number that no release of Drydock's migrations explains is from before them: the first one comes next.
  private func text(_ marker: VersionMarkerSearch.Finding) -> String {
    let place =
      switch marker.place {
      case .defaults(let key): "defaults: \(quoted(key))"
      case .userVersion(let database): "pragma: \(database)"
      case .json(let path, let pointer): "json: \(quoted(path.description)), pointer: \(quoted(pointer))"
      case .grdb(let database, let identifiers):
        "grdb: \(database), at: {0: \(quoted(identifiers.last ?? ""))}"
      }
    if case .grdb = marker.place { return "{\(place)}" }
    if marker.number > released { return "{\(place), at: {0: \(marker.number)}}" }
    return "{\(place), absent: 0}"
  }

  func text() -> String {
    let defaults = container?.standardDefaults.map {
      (hasDefaults ? "" : "# ") + "defaults: {standard: \(quoted($0.description))}"
    }
    return """
      # Settings of Drydock for one app. `drydock` looks for this file in the working directory and above. Every key
      # is optional: what is absent is detected, or has a default. An unknown key is an error.

      # The app's bundle id.
      \(container.map { "app: \(quoted($0.app))" } ?? "# app: com.example.notes")

      # What is where in a container, and what is never backed up: ios, android or generic.
      \(container.map { "layout: \($0.layout.rawValue)" } ?? "# layout: ios")

      # Settings files by suite, as paths in the container.
      \(defaults ?? "# defaults: {standard: Library/Preferences/com.example.notes.plist}")

      # What the app registers as its settings' defaults: a property list or YAML file, relative to this one.
      # registered-defaults: Defaults.plist

      # Databases by name, each with the places that it had over the versions, the present one first.
      \(databaseLines)

      # Directories that the app shares with its extensions, by the group's id; relative to the container's root.
      # groups: {group.com.example.notes: ../Shared/AppGroup/notes}

      # Where the app itself says which schema version its data has: a setting, PRAGMA user_version of a database,
      # or a field of a JSON file. `at` maps a migration's number to the app's where they differ: `at: {0: 7}` when the
      # app's was 7 before the first migration. `absent` is the version of a container that lacks the number.
      \(markerLines)

      # What a backup leaves out besides the layout's own list, and what it takes all the same; as in .gitignore.
      # exclude: ["Documents/**/*.part"]
      # include: []

      # An Android app's own backup rules, files relative to this one; transfer is cloud, device or cross-platform.
      # android:
      #   full-backup-content: res/xml/backup_rules.xml
      #   data-extraction-rules: res/xml/data_extraction_rules.xml
      #   transfer: device

      # Public keys of age's to which archives are encrypted; `drydock keygen` makes one.
      # recipients: [age1…]
      # trusted: [backup.pub]                   # public keys: restore only archives that one of them signed

      # Which archives `drydock forget` keeps; the rules are alternatives.
      # retention: {last: 7, daily: 14, weekly: 8, monthly: 12, yearly: 5, within: 90d, tags: [keep]}

      # When a snapshot is a full archive: after that many incremental ones, or when these are larger together.
      # snapshot: {full-after: 30, full-above: 100%}

      # Directories, relative to this file: migrations, containers of old versions that test them, archives. Archives hold
      # users' data: keep them out of version control.
      \(migrationLines)
      fixtures: Fixtures
      repository: Backups

      """
  }

  private func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
