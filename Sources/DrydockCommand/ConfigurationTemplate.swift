import Drydock

/// The text that `drydock init` writes.
struct ConfigurationTemplate {
  private let container: Container?
  private var databases: [(String, ContainerPath)] = []
  /// What the container seems to count its own schema by.
  private var markers: [VersionMarkerSearch.Finding] = []
  /// The newest schema version that has been released.
  private let released: Int

  init(_ container: Container?, released: Int) throws {
    (self.container, self.released) = (container, released)
    guard let container else { return }
    let scan = ContainerScan(try container.open(), rules: ExclusionRules(container))
    var found: [ContainerPath] = []
    try scan.visit { entry in
      if case .database(let unit) = entry.kind, entry.exclusion == nil { found.append(unit.main) }
    }
    databases = found.enumerated().map { number, path in
      let stem = path.nameString.split(separator: ".").first.map(String.init) ?? "database"
      let isPlain = stem.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" }
      let name = isPlain ? stem : "database\(number + 1)"
      let isTaken = found[..<number].contains { $0.nameString.hasPrefix(stem + ".") }
      return (isTaken ? "\(name)\(number + 1)" : name, path)
    }
    markers = try Transaction.inspect(container) { [databases] stage in
      VersionMarkerSearch(stage, databases: databases.map { (name: $0.0, path: $0.1) }).findings
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
    let lines = ["version-markers:", "  - \(text(first))"] + markers.dropFirst().map { "  # - \(text($0))" }
    return lines.joined(separator: "\n")
  }

  /// A number that no release of Drydock's migrations explains is from before them: the first one comes next.
  private func text(_ marker: VersionMarkerSearch.Finding) -> String {
    let place =
      switch marker.place {
      case .defaults(let key): "defaults: \(quoted(key))"
      case .userVersion(let database): "pragma: \(database)"
      case .json(let path, let pointer): "json: \(quoted(path.description)), pointer: \(quoted(pointer))"
      }
    if marker.number > released { return "{\(place), at: {0: \(marker.number)}}" }
    return "{\(place), absent: 0}"
  }

  func text() -> String {
    let defaults = container?.standardDefaults.map { "defaults: {standard: \(quoted($0.description))}" }
    let places = databases.map { "  \($0.0): [\(quoted($0.1.description))]" }.joined(separator: "\n")
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
      \(databases.isEmpty ? "# databases:\n#   notes: [Library/Application Support/notes.sqlite]" : "databases:\n" + places)

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

      # Directories, relative to this file.
      migrations: Migrations
      repository: Backups

      """
  }

  private func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
