import DrydockErrors
import FileSystem
import Formats
import Foundation
import SystemPackage

/// The directory with one app's data: its place, its app and instance, and its layout.
public struct Container: Sendable {
  /// The absolute path of the data root, with links resolved.
  public let root: String
  /// The root, or the `.xcappdata` bundle around it. The state directory is beside it.
  package let anchor: String
  /// What is where in it.
  public private(set) var layout: ContainerLayout
  /// The bundle id or package: configured, from Apple's metadata, from the bundle, or the directory's name.
  public private(set) var app: String
  /// The instance of the app: given, the UUID in Apple's metadata, or the directory's name.
  public private(set) var instance: String
  /// What `drydock.yaml` says of it.
  public package(set) var configuration: ContainerConfiguration
  /// The app groups, sorted by id.
  package let groups: [ContainerGroup]
  /// Configured groups whose directories do not exist, sorted by id.
  package let missingGroups: [ContainerGroup]
  /// Whether it is a temporary container of this process, as in tests: nothing is synced, and other processes' open files
  /// are not searched.
  package var isScratch = false
  /// Files `._NAME` of the foreign archive that it was unpacked from, whose attributes could not be kept.
  package var lost: [ContainerPath] = []
  /// Whether it does not exist yet.
  package let isPlanned: Bool
  private var givenInstance: String?

  /// Identifies the container in a directory or `.xcappdata` bundle.
  ///
  /// - Parameters:
  ///   - path: the container; its symbolic links must belong to this user or to root.
  ///   - instance: overrides the instance's name.
  /// - Throws: ``DrydockError``: `notFound`, `notAContainer` (a file), `permission` (another user's link),
  ///   `badConfiguration` (groups whose roots overlap).
  public init(
    at path: String, configuration: ContainerConfiguration = ContainerConfiguration(), instance: String? = nil
  )
    throws
  {
    try Self.requireProcessFiles(path)
    let resolved = try Self.resolve(path)
    // The data root inside a bundle means the bundle: the state must not be inside it.
    let anchor =
      resolved.hasSuffix(".xcappdata/AppData") ? String(resolved.dropLast("/AppData".count)) : resolved
    let bundle = try Directory(anchor)
    let isBundle = try anchor.hasSuffix(".xcappdata") && bundle.status("AppData")?.type == .directory
    if try !isBundle && Self.holdsData("AppData", in: bundle) {
      throw DrydockError(
        .notAContainer,
        "this looks like a renamed .xcappdata bundle: give its directory AppData, or name it NAME.xcappdata",
        path: anchor)
    }
    let root = isBundle ? try bundle.directory("AppData") : bundle
    let detected = try ContainerLayout.detect(in: root)
    if let source = try DeviceSource(directory: root, layout: detected) { throw source.error(path) }
    let identity = Self.identity(root: root, bundle: isBundle ? bundle : nil, anchor: anchor)
    self.anchor = anchor
    self.root = isBundle ? anchor + "/AppData" : anchor
    self.configuration = configuration
    (givenInstance, isPlanned) = (instance, false)
    layout = configuration.layout ?? (isBundle ? .ios : detected)
    app = configuration.app ?? identity.app ?? identity.name
    self.instance = instance ?? identity.instance ?? identity.name
    (groups, missingGroups) = try ContainerGroup.resolve(
      configuration, root: self.root, anchor: anchor)
  }

  /// Whether a directory is a container's root, and the one around it is not.
  private static func holdsData(_ name: ContainerPath, in directory: Directory) throws -> Bool {
    try ["Documents", "Library"].allSatisfy { folder in
      try directory.status(ContainerPath(folder)) == nil
        && directory.status(ContainerPath("\(name)/\(folder)"))?.type == .directory
    }
  }

  package init(
    planned anchor: String, isBundle: Bool = false, layout: ContainerLayout, app: String, instance: String,
    configuration: ContainerConfiguration
  ) {
    root = isBundle ? anchor + "/AppData" : anchor
    self.anchor = anchor
    self.layout = layout
    self.app = app
    self.instance = instance
    self.configuration = configuration
    (givenInstance, isPlanned) = (instance, true)
    (groups, missingGroups) = ContainerGroup.planned(configuration, root: root)
  }

  package static let bundleInfo: ContainerPath = "AppDataInfo.plist"

  /// Whether a path is that of a bundle without data: nothing is there, or at most what a killed creation left.
  package static func isNewBundle(_ path: String) -> Bool {
    let url = URL(fileURLWithPath: path)
    guard url.pathExtension == "xcappdata",
      let parent = try? Directory(url.deletingLastPathComponent().path),
      let name = try? ContainerPath(url.lastPathComponent)
    else { return false }
    guard let status = try? parent.status(name) else { return true }
    guard status.type == .directory, let names = try? parent.directory(name).names() else { return false }
    return names.allSatisfy { $0 == bundleInfo.bytes }
  }

  /// The container that a restore would create at a path, in a bundle if the path is named like one; nil when there is one.
  ///
  /// - Throws: ``DrydockError`` (`notFound`) when its parent directory does not exist.
  package static func planned(
    at path: String, configuration: ContainerConfiguration, instance: String? = nil
  ) throws -> Container? {
    try requireProcessFiles(path)
    // A recovery does not know the layout yet.
    let isBundle = (configuration.layout ?? .ios) == .ios && isNewBundle(path)
    guard isBundle || FollowedStatus.identity(path) == nil else { return nil }
    let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    // A path that ends in `..` of what does not exist leads nowhere either.
    guard let (above, last) = try? ContainerPath.split(trimmed), let parent = try ownRealPath(above) else {
      throw DrydockError(
        .notFound, "neither the container nor its parent directory exists; create the parent first",
        path: path)
    }
    let name = last.nameString
    return Container(
      planned: parent == "/" ? "/" + name : parent + "/" + name, isBundle: isBundle,
      layout: configuration.layout ?? .generic,
      app: configuration.app ?? name, instance: instance ?? name, configuration: configuration)
  }

  /// An empty container with the identity of the data that it will get.
  package func assuming(layout: ContainerLayout, app: String, instance: String) -> Container {
    var container = self
    (container.layout, container.app, container.instance) = (layout, app, instance)
    (container.configuration.layout, container.configuration.app) = (layout, app)
    container.givenInstance = instance
    return container
  }

  /// On Linux, attributes and the open files of other processes are read through `/proc`; and Dispatch, which counts its
  /// threads there, ends a process without it after a second.
  package static func requireProcessFiles(_ path: String? = nil) throws {
    #if os(Linux)
      guard FollowedStatus.identity("/proc/self/fd") == nil else { return }
      throw DrydockError(.unsupported, "/proc, which is needed, is not mounted; mount it", path: path)
    #endif
  }

  /// The container as it is now, for the holder of its lock: a restore may have replaced it with another app's.
  package func reopened() throws -> Container {
    if isPlanned { return self }
    var container = try Container(at: anchor, configuration: configuration, instance: givenInstance)
    (container.isScratch, container.lost) = (isScratch, lost)
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
      if DeviceSource.isAndroidBackup(resolved) { throw DeviceSource.androidBackup.error(path) }
      throw DrydockError(
        .notAContainer,
        "this is a file; a container is a directory with an app's data, or, for reading, a zip or tar of one",
        path: path)
    }
    guard resolved != "/" else {
      throw DrydockError(.notAContainer, "the root of the file system cannot be a container", path: path)
    }
    return resolved
  }

  // MARK: Places

  /// The app's settings file; nil when neither configuration nor layout names one.
  public var standardDefaults: ContainerPath? {
    if let configured = configuration.defaults["standard"] { return configured }
    switch layout {
    case .ios: return try? ContainerPath("Library/Preferences/\(app).plist")
    case .android: return try? ContainerPath.sharedPreferences.appending("\(app)_preferences.xml")
    case .generic: return nil
    }
  }

  /// Where the history of its migrations is.
  public var historyPath: ContainerPath { layout.historyPath }

  /// Whether a path is the directory of the history, or in it.
  package func isHistory(_ path: ContainerPath) -> Bool {
    let directory = historyPath.parent
    return path == directory || path.isInside(directory)
  }

  /// Where its vault is, or would be.
  public var vaultPath: ContainerPath { configuration.vault ?? layout.vaultPath }

  /// The possible places of a named database, the current one first. Throws ``DrydockError`` (`badConfiguration`) for an
  /// unknown name.
  package func databasePlaces(_ name: String) throws -> [ContainerPath] {
    if let places = configuration.databases[name] { return places }
    let known = configuration.databases.keys.sorted()
    let advice =
      known.isEmpty
      ? "add its path to drydock.yaml: databases: {\(name): [path in the container]}"
      : "known in drydock.yaml: \(known.joined(separator: ", "))"
    throw DrydockError(
      .badConfiguration, "unknown database \(name); \(advice)", path: configuration.file)
  }
}

extension Container {
  /// Whether a path is a settings file, which is compared and undone key by key.
  package func isSettings(_ path: ContainerPath) -> Bool {
    if path == standardDefaults || configuration.defaults.values.contains(path) { return true }
    if isAndroidSettings(path) || isKeyValueStore(path) { return true }
    // In a group, of any layout, the path alone decides: archives are compared without the group.
    if let group = path.inGroup {
      return group.path.parent == "Library/Preferences" && path.nameString.hasSuffix(".plist")
    }
    return layout == .ios && path.parent == "Library/Preferences" && path.nameString.hasSuffix(".plist")
  }
}

/// The four stores that a container's data is in.
public enum ContainerStore: String, Sendable, Hashable, Codable, CaseIterable {
  case defaults
  case vault
  /// Databases, with their sidecars and external data.
  case databases
  case files
}

// The app and instance of a container, as far as its files and its name reveal them.
extension Container {
  /// - Returns: the app, the container ID that iOS assigned, and the directory's name, without `.xcappdata`.
  private static func identity(
    root: Directory, bundle: Directory?, anchor: String
  ) -> (app: String?, instance: String?, name: String) {
    var name = anchor.split(separator: "/").last.map(String.init) ?? anchor
    if bundle != nil { name = String(name.dropLast(".xcappdata".count)) }
    let metadata = strings(in: root, ContainerLayout.metadataFile)
    var app = metadata["MCMMetadataIdentifier"]
    if app == nil, let bundle { app = strings(in: bundle, bundleInfo)["CFBundleIdentifier"] }
    // The app is named by a `<bundle-id>/` folder, else by the only settings file that is not Apple's.
    if app == nil, isBundleIdentifier(name) { app = name }
    app =
      app
      ?? only(in: root, "Library/Preferences", ".plist") {
        !$0.isEmpty && !$0.hasPrefix(".") && !"\($0).".hasPrefix("com.apple.")
      }
      // An app's settings on Android are `<package>_preferences.xml`.
      ?? only(in: root, .sharedPreferences, "_preferences.xml", where: isBundleIdentifier)
    return (app, metadata["MCMMetadataUUID"], name)
  }

  private static func strings(in directory: Directory, _ path: ContainerPath) -> [String: String] {
    // A corrupt file is reported when its settings are needed.
    guard let bytes = try? directory.contents(path, limit: 1 << 20),
      let file = try? PropertyListFile(bytes: bytes)
    else { return [:] }
    return file.root.compactMapValues { value in
      if case .string(let text) = value { text } else { nil }
    }
  }

  private static func isBundleIdentifier(_ name: String) -> Bool {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count >= 3
      && parts.allSatisfy { part in
        !part.isEmpty
          && part.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
      }
  }

  /// The beginning of the only name in a directory that ends so; nil when there are several.
  private static func only(
    in root: Directory, _ folder: ContainerPath, _ ending: String, where isOfApp: (String) -> Bool
  ) -> String? {
    guard let listed = try? root.directory(folder).names() else { return nil }
    let names = listed.map { String(decoding: $0, as: UTF8.self) }.filter { $0.hasSuffix(ending) }
      .map { String($0.dropLast(ending.count)) }.filter(isOfApp)
    return names.count == 1 ? names.first : nil
  }
}
