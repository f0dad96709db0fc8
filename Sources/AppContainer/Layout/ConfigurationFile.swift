import AgeEncryption
import DrydockErrors
import FileSystem
import Formats

/// Reading `drydock.yaml`.
extension Configuration {
  /// The file's name.
  package static let fileName = "drydock.yaml"

  private static let keys = [
    "app", "layout", "defaults", "registered-defaults", "databases", "vault", "groups", "version-markers",
    "exclude", "include", "functions",
    "android", "migrations", "fixtures", "repository", "recipients",
  ]

  /// Looks for `drydock.yaml` in a directory and those above it; without one the configuration says nothing.
  package static func find(from directory: String) throws -> Configuration {
    var directory = realPath(directory) ?? directory
    while true {
      let file = directory == "/" ? "/" + fileName : directory + "/" + fileName
      if FollowedStatus.identity(file) != nil { return try Configuration(file: file) }
      guard directory != "/", let slash = directory.lastIndex(of: "/") else { return Configuration() }
      directory = slash == directory.startIndex ? "/" : String(directory[..<slash])
    }
  }

  /// Reads a configuration file.
  ///
  /// - Throws: ``DrydockError`` with code `badConfiguration` and `file:line:column` in front.
  package init(file: String) throws {
    guard let file = realPath(file) else {
      throw DrydockError(.notFound, "no such configuration file; `drydock init` writes one", path: file)
    }
    let slash = file.lastIndex(of: "/") ?? file.startIndex
    let folder = slash == file.startIndex ? "/" : String(file[..<slash])
    let bytes = try Directory(folder).contents(
      ContainerPath(String(file[file.index(after: slash)...])), limit: 1 << 20)
    do {
      try self.init(YAMLDocument(bytes, file: file), folder: folder)
    } catch var error as DrydockError where error.code == .malformed {
      error.code = .badConfiguration
      throw error
    }
    self.file = file
  }

  /// Reads a parsed document; paths of the host in it are relative to `folder`.
  init(_ document: YAMLDocument, folder: String) throws {
    guard let root = document.root else { return }
    let reader = try YAMLReader(root, what: Self.fileName, keys: Self.keys)
    app = try reader.text("app")
    layout = try reader.choice("layout", of: Layout.self)
    defaults = try Self.paths(reader["defaults"], "defaults") { [try Self.path($0)] }.compactMapValues(
      \.first)
    if let node = reader["registered-defaults"], !node.isNull {
      registeredDefaults = try RegisteredDefaults(node, folder: folder)
    }
    databases = try Self.paths(reader["databases"], "databases") { node in
      try (node.sequence ?? [node]).map(Self.path)
    }
    functions = try Self.functions(reader["functions"])
    vault = try reader["vault"].map(Self.path)
    groups = try Self.groups(reader["groups"])
    versionMarkers = try reader["version-markers"]?.elements("`version-markers`").map(Self.marker) ?? []
    exclude = try reader.texts("exclude").map { PatternList($0) } ?? []
    include = try reader.texts("include").map { PatternList($0) } ?? []
    if let node = reader["android"], !node.isNull {
      guard layout ?? .android == .android else {
        throw node.position.error(
          "`android` is for the layout android, and this file says `layout: \(layout?.rawValue ?? "")`")
      }
      layout = .android
      android = try AndroidConfiguration(node, folder: folder)
    }
    let resolve = { (text: String) in
      text.hasPrefix("/") ? text : text == "." ? folder : folder + "/" + text
    }
    if let node = reader["migrations"], node.mapping != nil {
      migrationTool = try MigrationTool(node, databases: databases.keys.sorted())
      let keys = MigrationTool.keys
      migrations = resolve(
        try YAMLReader(node, what: "`migrations`", keys: keys).required("path").text("`path`"))
    } else {
      migrations = try reader.text("migrations").map(resolve)
    }
    fixtures = try reader.text("fixtures").map(resolve)
    repository = try reader.text("repository").map(resolve)
    if let node = reader["recipients"], !node.isNull {
      recipients = try node.elements("`recipients`").map(Self.recipient)
    }
  }

  private static func recipient(_ node: YAMLNode) throws -> AgeRecipient {
    let text = try node.text("a recipient")
    do {
      return try AgeRecipient(text)
    } catch let error as DrydockError {
      throw node.position.error(error.message)
    }
  }

  private static func path(_ node: YAMLNode) throws -> ContainerPath {
    let text = try node.text("a path in the container")
    guard let path = try? ContainerPath(text), !path.isRoot else {
      throw node.position.error(
        "`\(text)` is not a path below the container; write it without a leading `/` or `..`")
    }
    return path
  }

  private static func paths(
    _ node: YAMLNode?, _ what: String, _ read: (YAMLNode) throws -> [ContainerPath]
  ) throws -> [String: [ContainerPath]] {
    guard let node, !node.isNull else { return [:] }
    var result: [String: [ContainerPath]] = [:]
    for pair in try node.pairs("`\(what)`").pairs { result[pair.key.source] = try read(pair.value) }
    return result
  }

  private static func pointer(_ node: YAMLNode?) throws -> String {
    guard let text = try node?.text("`pointer`") else { return "" }
    do {
      return try JSONPointer(text).description
    } catch let error as DrydockError {
      throw node?.position.error(error.message) ?? error
    }
  }

  private static func groups(_ node: YAMLNode?) throws -> [String: String] {
    guard let node, !node.isNull else { return [:] }
    var result: [String: String] = [:]
    for pair in try node.pairs("`groups`").pairs {
      guard let id = try? ContainerPath(pair.key.source), !id.isRoot, id.parent.isRoot else {
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
      node, what: "a version marker", keys: ["defaults", "pragma", "json", "pointer", "at", "absent"])
    let given = ["defaults", "pragma", "json"].filter { reader[$0] != nil }
    guard given.count == 1 else {
      throw node.position.error(
        "a version marker has one of `defaults: KEY`, `pragma: DATABASE`, `json: PATH`")
    }
    let place: VersionMarker.Place
    if let key = try reader.text("defaults") {
      place = .defaults(key: key)
    } else if let database = try reader.text("pragma") {
      place = .userVersion(database: database)
    } else {
      place = .json(path: try path(reader.required("json")), pointer: try pointer(reader["pointer"]))
    }
    var at: [Int: Int] = [:]
    for pair in try reader["at"]?.pairs("`at`").pairs ?? [] {
      guard let number = Int(pair.key.source) else {
        throw pair.keyPosition.error(
          "`at` maps the number of a migration to the app's number, as in {4: 2, 6: 3}")
      }
      at[number] = Int(try pair.value.integer("the app's number"))
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
