import DrydockErrors
import FileSystem
import SystemPackage

/// The directory with one app's data: where it is, whose it is, and what is where in it.
package struct Container: Sendable {
  /// The absolute path of the data root, symbolic links resolved.
  package let root: String
  /// What the state directory stands beside: the root, or the `.xcappdata` bundle around it.
  package let anchor: String
  /// The layout, configured or detected.
  package let layout: Layout
  /// Bundle id or package: configured, from Apple's metadata, from the bundle, or from the directory's name.
  package let app: String
  /// Which instance of the app it is: given, the UUID in Apple's metadata, or the directory's name.
  package let instance: String
  /// What `drydock.yaml` says.
  package let configuration: Configuration
  /// The groups that share data with other apps, sorted by id.
  package let groups: [ContainerGroup]
  /// Groups of `drydock.yaml` whose directories do not exist, sorted by id.
  package let missingGroups: [ContainerGroup]
  /// Whether this process made it for itself and throws it away, as tests do: nothing waits for the disk then, and no
  /// other process is looked for that has something of it open.
  package var isScratch = false
  /// The instance's name as it was given; and whether all was, before anything was there.
  private let givenInstance: String?, isPlanned: Bool

  /// Looks at a directory, or at an `.xcappdata` bundle, and tells what container it is.
  ///
  /// - Parameters:
  ///   - path: the container as the user named it; symbolic links in it are resolved, when they are this user's
  ///     or root's.
  ///   - instance: overrides the instance's name.
  /// - Throws: ``DrydockError``: `notFound`, `notAContainer` (a file), `unreadable`, `permission` (another
  ///   user's link), `badConfiguration` (groups whose
  ///   roots overlap).
  package init(at path: String, configuration: Configuration = Configuration(), instance: String? = nil)
    throws
  {
    try Self.requireProcessFiles(path)
    let resolved = try Self.resolve(path)
    // The data root inside a bundle is the bundle: its state must not be kept in it.
    let anchor =
      resolved.hasSuffix(".xcappdata/AppData") ? String(resolved.dropLast("/AppData".count)) : resolved
    let bundle = try Directory(anchor)
    let isBundle = try anchor.hasSuffix(".xcappdata") && bundle.status("AppData")?.type == .directory
    let root = isBundle ? try bundle.directory("AppData") : bundle
    let identity = ContainerIdentity(root: root, bundle: isBundle ? bundle : nil, anchor: anchor)
    self.anchor = anchor
    self.root = isBundle ? anchor + "/AppData" : anchor
    self.configuration = configuration
    (givenInstance, isPlanned) = (instance, false)
    layout = try configuration.layout ?? (isBundle ? .ios : Layout.detect(in: root))
    app = configuration.app ?? identity.app ?? identity.name
    self.instance = instance ?? identity.instance ?? identity.name
    (groups, missingGroups) = try ContainerGroup.resolve(
      configuration, root: self.root, anchor: anchor)
  }

  /// A container that is about to be made where nothing is yet.
  package init(
    planned root: String, layout: Layout, app: String, instance: String, configuration: Configuration
  ) {
    self.root = root
    anchor = root
    self.layout = layout
    self.app = app
    self.instance = instance
    self.configuration = configuration
    (givenInstance, isPlanned) = (instance, true)
    (groups, missingGroups) = ContainerGroup.planned(configuration, root: root)
  }

  /// The container that a restore would make at a path where nothing is yet, with what is known of it before; nil
  /// when something is there.
  ///
  /// - Throws: ``DrydockError`` with code `notFound` when there is no directory for it either.
  package static func planned(
    at path: String, configuration: Configuration, instance: String? = nil
  ) throws -> Container? {
    try requireProcessFiles(path)
    guard FollowedStatus.identity(path) == nil else { return nil }
    let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    let slash = trimmed.lastIndex(of: "/")
    let parent = slash.map { $0 == trimmed.startIndex ? "/" : String(trimmed[..<$0]) } ?? "."
    guard let parent = try ownRealPath(parent) else {
      throw DrydockError(
        .notFound, "neither the container nor the directory for it exists; make the directory first",
        path: path)
    }
    let name = slash.map { String(trimmed[trimmed.index(after: $0)...]) } ?? trimmed
    return Container(
      planned: parent == "/" ? "/" + name : parent + "/" + name, layout: configuration.layout ?? .generic,
      app: configuration.app ?? name, instance: instance ?? name, configuration: configuration)
  }

  /// Attributes are reached through `/proc`, and so are programs that have a container open.
  private static func requireProcessFiles(_ path: String) throws {
    #if os(Linux)
      guard FollowedStatus.identity("/proc/self/fd") == nil else { return }
      throw DrydockError(
        .unsupported, "/proc is needed to read or change a container, and is not mounted here; mount it",
        path: path)
    #endif
  }

  /// What it is now, for one who has its lock: a restore may have made another app's of it.
  package func reopened() throws -> Container {
    if isPlanned { return self }
    var container = try Container(at: anchor, configuration: configuration, instance: givenInstance)
    container.isScratch = isScratch
    return container
  }

  private static func resolve(_ path: String) throws -> String {
    guard let resolved = try ownRealPath(path) else {
      let error = currentErrno()
      if error == .noSuchFileOrDirectory {
        throw DrydockError(.notFound, "no such container; check the path", path: path)
      }
      throw DrydockError.system("cannot find the container", path, error)
    }
    do {
      _ = try Directory(resolved)
    } catch let error as DrydockError where error.code == .notAContainer {
      throw DrydockError(
        .notAContainer,
        "this is a file; a container is a directory with an app's data, or to read it a zip or tar of one",
        path: path)
    }
    guard resolved != "/" else {
      throw DrydockError(.notAContainer, "the root of the file system cannot be a container", path: path)
    }
    return resolved
  }

  // MARK: Places

  /// The app's own settings file; nil when neither configuration nor layout names one.
  package var standardDefaults: ContainerPath? {
    if let configured = configuration.defaults["standard"] { return configured }
    guard layout == .ios else { return nil }
    return try? ContainerPath("Library/Preferences/\(app).plist")
  }

  /// Where the history of migrations is.
  package var historyPath: ContainerPath { layout.historyPath }

  /// Where the file of secrets is, or would be.
  package var vaultPath: ContainerPath { configuration.vault ?? layout.vaultPath }

  /// The places that a named database may be in, the present one first.
  ///
  /// - Throws: ``DrydockError`` with code `badConfiguration` for a name that `drydock.yaml` does not have.
  package func databasePlaces(_ name: String) throws -> [ContainerPath] {
    if let places = configuration.databases[name] { return places }
    let known = configuration.databases.keys.sorted()
    let advice =
      known.isEmpty
      ? "name its place in drydock.yaml: databases: {\(name): [path in the container]}"
      : "drydock.yaml knows \(known.joined(separator: ", "))"
    throw DrydockError(
      .badConfiguration, "no database is named \(name); \(advice)", path: configuration.file)
  }
}

extension Container {
  /// Whether a path is one of the container's settings files, which are compared and undone key by key.
  package func isSettings(_ path: ContainerPath) -> Bool {
    if path == standardDefaults || configuration.defaults.values.contains(path) { return true }
    // In a group on any layout, and told by the path alone: an archive of one is compared without it.
    if let group = path.inGroup {
      return group.path.parent == "Library/Preferences" && path.nameString.hasSuffix(".plist")
    }
    return layout == .ios && path.parent == "Library/Preferences" && path.nameString.hasSuffix(".plist")
  }
}
