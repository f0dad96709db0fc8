import AppStores
import DrydockErrors
import FileSystem
import Formats

/// The settings in `drydock.yaml`. Every key is optional.
public struct ContainerConfiguration: Sendable, Equatable {
  /// The place of the schema version in a container without history.
  public struct VersionMarker: Sendable, Equatable {
    /// What holds the app's number.
    public enum Place: Sendable, Equatable {
      case defaults(key: String)
      /// `PRAGMA user_version` of a named database.
      case userVersion(database: String)
      /// A field of a JSON file, by JSON pointer.
      case json(path: ContainerPath, pointer: String)
      /// GRDB's table of applied migrations in a named database: how many of these, in their order, it has. Without
      /// identifiers, its number of rows.
      case grdb(database: String, identifiers: [String])
    }

    /// What holds the app's number.
    public var place: Place
    /// The app's numbers where they differ, by migration number.
    public var at: [Int: Int]
    /// The schema version of a container without the number and without history, if that is known.
    public var absent: Int?

    /// A marker whose numbers are the migrations', apart from those in `at`.
    public init(place: Place, at: [Int: Int] = [:], absent: Int? = nil) {
      self.place = place
      self.at = at
      self.absent = absent
    }
  }

  /// The bundle ID or package name; nil if it is detected.
  public var app: String?
  /// What is where in a container; nil if it is detected.
  public var layout: ContainerLayout?
  /// Settings files by suite name; `standard` is the app's.
  public var defaults: [String: ContainerPath] = [:]
  /// The places of each database over the versions, the current one first.
  public var databases: [String: [ContainerPath]] = [:]
  package var databasePaths: Set<ContainerPath> { Set(databases.values.joined()) }
  /// Databases that are stored as their bytes, because SQLite cannot open them: encrypted ones.
  package var opaque: Set<ContainerPath> = []
  package var sql = AppDefinedSQL()
  /// The vault's file; nil for the layout's.
  public var vault: ContainerPath?
  /// The roots of the app's groups by id: absolute, or relative to the container's root.
  public var groups: [String: String] = [:]
  /// What shows the version of a container without a history; the first one that is there counts.
  public var versionMarkers: [VersionMarker] = []
  package var exclude: PatternList = []
  /// Patterns of paths that are included although a rule excludes them.
  package var include: PatternList = []
  package var android: AndroidConfiguration?
  /// The protection classes that paths must have.
  package var protection: [ProtectionRule] = []
  /// An absolute path, as are the following; nil for the default, `Migrations` beside the file.
  public var migrations: String?
  /// The tool whose format the migrations have; nil for Drydock's.
  package var migrationTool: MigrationTool?
  /// The directory of test fixtures.
  public var fixtures: String?
  /// The default repository: a directory, or the URL of a remote one.
  public var repository: String?
  /// The file that this was read from; nil without one.
  public var file: String?
  /// What other modules read in their sections.
  private var values = SectionValues()

  /// Detects everything.
  public init() {}

  /// A directory by its default name, such as `Migrations`: beside `drydock.yaml`, or without one in the working directory.
  package func directory(named name: String) -> String {
    guard let file, let slash = file.lastIndex(of: "/") else { return name }
    return (slash == file.startIndex ? "" : String(file[..<slash])) + "/" + name
  }
}

extension ContainerConfiguration {
  package static let fileName = "drydock.yaml"

  private static let keys = [
    "app", "layout", "defaults", "databases", "opaque", "vault", "groups", "version-markers", "exclude",
    "include", "functions", "collations", "protection", "android", "migrations", "fixtures", "repository",
  ]

  /// The `drydock.yaml` in a directory or the nearest one above it; nil without one.
  package static func nearestFile(from directory: String) -> String? {
    var directory = realPath(directory) ?? directory
    while true {
      let file = directory == "/" ? "/" + fileName : directory + "/" + fileName
      if FollowedStatus.identity(file) != nil { return file }
      guard directory != "/", let slash = directory.lastIndex(of: "/") else { return nil }
      directory = slash == directory.startIndex ? "/" : String(directory[..<slash])
    }
  }

  /// Reads a configuration file: the keys of the container, and the sections of the modules above.
  ///
  /// - Throws: ``DrydockError`` (`badConfiguration`) with `file:line:column`.
  package init(file: String, sections: [ConfigurationSection]) throws {
    guard let file = realPath(file) else {
      throw DrydockError(
        .notFound, "the configuration file does not exist", path: file)
    }
    let (folder, name) = try ContainerPath.split(file)
    let bytes = try Directory(folder).contents(name, limit: 1 << 20, isNamed: true)
    do {
      try self.init(YAMLDocument(bytes, file: file), folder: folder, sections: sections)
    } catch var error as DrydockError where error.code == .malformed {
      error.code = .badConfiguration
      throw error
    }
    self.file = file
  }

  /// Reads a parsed document. Paths outside the container are relative to `folder`.
  package init(_ document: YAMLDocument, folder: String, sections: [ConfigurationSection]) throws {
    guard let root = document.root else { return }
    let reader = try YAMLReader(root, what: Self.fileName, keys: Self.keys + sections.map(\.key))
    app = try reader.text("app")
    layout = try reader.choice("layout", of: ContainerLayout.self)
    for pair in try reader.pairs("defaults") { defaults[pair.key.source] = try Self.path(pair.value) }
    for pair in try reader.pairs("databases") {
      databases[pair.key.source] = try (pair.value.sequence ?? [pair.value]).map(Self.path)
    }
    opaque = Set(try reader["opaque"]?.elements("`opaque`").map(Self.path) ?? [])
    sql = try AppDefinedSQL(functions: reader["functions"], collations: reader["collations"])
    vault = try reader["vault"].map(Self.path)
    groups = try Self.groups(reader.pairs("groups"))
    versionMarkers = try reader["version-markers"]?.elements("`version-markers`").map(Self.marker) ?? []
    exclude = try reader.texts("exclude").map { PatternList($0) } ?? []
    include = try reader.texts("include").map { PatternList($0) } ?? []
    if let node = reader["android"], !node.isNull {
      guard layout ?? .android == .android else {
        throw node.position.error(
          "`android` needs the layout android, and this file has `layout: \(layout?.rawValue ?? "")`")
      }
      layout = .android
      android = try AndroidConfiguration(node, folder: folder)
    }
    let resolve = { (text: String) in
      text == "." ? folder : Self.absolute(text, in: folder)
    }
    if let node = reader["migrations"], node.mapping != nil {
      migrationTool = try MigrationTool(node, databases: databases.keys.sorted(), resolve)
      let keys = MigrationTool.keys
      migrations = resolve(
        try YAMLReader(node, what: "`migrations`", keys: keys).required("path").text("`path`"))
    } else {
      migrations = try reader.text("migrations").map(resolve)
    }
    fixtures = try reader.text("fixtures").map(resolve)
    // A remote repository has a URL.
    repository = try reader.text("repository").map { $0.contains("://") ? $0 : resolve($0) }
    if let node = reader["protection"], !node.isNull { protection = try ProtectionRule.list(node) }
    for section in sections {
      if let node = reader[section.key] { try section.read(node, &self, resolve) }
    }
  }

  /// A path of the file system that `drydock.yaml` has.
  static func absolute(_ path: String, in folder: String) -> String {
    path.hasPrefix("/") ? path : folder + "/" + path
  }

  private static func path(_ node: YAMLNode) throws -> ContainerPath {
    let text = try node.text("a path in the container")
    guard let path = try? ContainerPath(text), !path.isRoot else {
      throw node.position.error(
        "`\(text)` is not a path below the container: write it without a leading `/` or `..`")
    }
    return path
  }

  private static func pointer(_ node: YAMLNode?) throws -> String {
    guard let text = try node?.text("`pointer`") else { return "" }
    do {
      return try JSONPointer(text).description
    } catch let error as DrydockError {
      throw node?.position.error(error.message) ?? error
    }
  }

  private static func groups(_ pairs: [YAMLMapping.Pair]) throws -> [String: String] {
    var result: [String: String] = [:]
    for pair in pairs {
      guard ContainerGroup.isID(pair.key.source) else {
        throw pair.keyPosition.error(
          "`\(pair.key.source)` is not a group's id, such as group.com.example.notes")
      }
      let path = try pair.value.text("the group's directory")
      guard !path.isEmpty else {
        throw pair.value.position.error("name the group's directory, relative to the container's root")
      }
      result[pair.key.source] = path
    }
    return result
  }

  private static func marker(_ node: YAMLNode) throws -> VersionMarker {
    let reader = try YAMLReader(
      node, what: "a version marker",
      keys: ["defaults", "pragma", "grdb", "json", "pointer", "at", "absent"])
    let given = ["defaults", "pragma", "grdb", "json"].filter { reader[$0] != nil }
    guard given.count == 1 else {
      throw node.position.error(
        "a version marker has one of `defaults: KEY`, `pragma: DATABASE`, `grdb: DATABASE`, `json: PATH`")
    }
    var at: [Int: Int] = [:]
    var identifiers: [Int: String] = [:]
    for pair in try reader["at"]?.pairs("`at`").pairs ?? [] {
      guard let number = Int(pair.key.source) else {
        throw pair.keyPosition.error(
          "`at` maps the number of a migration to the app's number, as in {4: 2, 6: 3}")
      }
      if given == ["grdb"], case .string(let identifier)? = pair.value.scalar?.value {
        identifiers[number] = identifier
      } else {
        at[number] = Int(try pair.value.integer("the app's number"))
      }
    }
    let place: VersionMarker.Place
    if let database = try reader.text("grdb") {
      guard identifiers.isEmpty || at.isEmpty else {
        throw node.position.error("`at` of `grdb` has identifiers or numbers of migrations, not both")
      }
      let sorted = identifiers.sorted { $0.key < $1.key }
      for (index, pair) in sorted.enumerated() { at[pair.key] = index + 1 }
      place = .grdb(database: database, identifiers: sorted.map(\.value))
    } else if let key = try reader.text("defaults") {
      place = .defaults(key: key)
    } else if let database = try reader.text("pragma") {
      place = .userVersion(database: database)
    } else {
      place = .json(path: try path(reader.required("json")), pointer: try pointer(reader["pointer"]))
    }
    var absent: Int?
    if let node = reader["absent"], !node.isNull {
      guard let version = Int(exactly: try node.integer("`absent`")), version >= 0 else {
        throw node.position.error("`absent` is a schema version, such as 0")
      }
      absent = version
    }
    return VersionMarker(place: place, at: at, absent: absent)
  }
}

/// A key of `drydock.yaml` that a module above reads, which keeps its value in the configuration.
package struct ConfigurationSection: Sendable {
  /// - Parameter resolve: makes a path absolute that is relative to the file.
  package typealias Reading =
    @Sendable (YAMLNode, inout ContainerConfiguration, _ resolve: (String) -> String) throws -> Void

  let key: String
  let read: Reading

  package init(_ key: String, _ read: @escaping Reading) { (self.key, self.read) = (key, read) }
}

/// Values of types that only the modules above know.
private struct SectionValues: Sendable, Equatable {
  var byName: [String: any Sendable & Equatable] = [:]

  static func == (left: Self, right: Self) -> Bool {
    left.byName.keys == right.byName.keys
      && left.byName.allSatisfy { $0.value.isEqual(to: right.byName[$0.key]) }
  }
}

extension Equatable {
  fileprivate func isEqual(to other: Any?) -> Bool { self == other as? Self }
}

extension ContainerConfiguration {
  /// The value that a module keeps under a name; the default until it is set.
  package subscript<Value: Sendable & Equatable>(value name: String, default value: Value) -> Value {
    get { values.byName[name] as? Value ?? value }
    // What is set to its default equals what is not set.
    set { values.byName[name] = newValue == value ? nil : newValue }
  }
}
