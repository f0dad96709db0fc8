import FileSystem

/// What a backup of an Android app is made for: it decides which section of the rules counts.
package enum AndroidTransfer: String, Sendable, Codable, CaseIterable {
  /// A backup in the cloud.
  case cloud
  /// A move to another Android device.
  case device
  /// A move to a device of another kind.
  case crossPlatform = "cross-platform"
}

/// One `<include>` or `<exclude>` as it stands in a file.
struct AndroidRule: Sendable, Equatable {
  var isInclude: Bool
  var domain: AndroidDomain
  /// Below the domain; the root for all of it.
  var path: ContainerPath
  /// The flags that an include needs.
  var requiredFlags: Set<String> = []
  /// The element as text, with the file's name and the line in front.
  var source: String
}

/// Where a rule's path counts from.
enum AndroidDomain: String, Sendable, CaseIterable {
  case root, file, database, sharedpref, external
  case deviceRoot = "device_root"
  case deviceFile = "device_file"
  case deviceDatabase = "device_database"
  case deviceSharedpref = "device_sharedpref"

  /// Its directory in the container; nil for storage that is not in it.
  var directory: ContainerPath? {
    switch self {
    case .root: .root
    case .file: "files"
    case .database: "databases"
    case .sharedpref: "shared_prefs"
    case .external, .deviceRoot, .deviceFile, .deviceDatabase, .deviceSharedpref: nil
    }
  }
}

/// The rules of one section, placed in a container.
struct AndroidRules: Sendable {
  private struct Placed: Sendable {
    var path: ContainerPath
    var source: String
    /// A whole domain `root` leaves the other domains alone.
    var isWholeRoot = false

    func covers(_ other: ContainerPath) -> Bool {
      if isWholeRoot { return !Self.otherDomains.contains { other == $0 || other.isInside($0) } }
      return other == path || other.isInside(path)
    }

    static let otherDomains: [ContainerPath] = ["files", "databases", "shared_prefs"]
  }

  private var includes: [Placed] = []
  private var excludes: [Placed] = []
  private let includesSomething: Bool
  private let disabled: String?

  /// - Parameters:
  ///   - flags: what the transport can: an include that requires another flag is passed over.
  ///   - disabled: why Android would make no backup at all.
  ///   - isDirectory: whether a path of the container is a directory now.
  init(
    _ rules: [AndroidRule], flags: Set<String>, disabled: String?, isDirectory: (ContainerPath) -> Bool
  ) {
    self.disabled = disabled
    let valid = rules.filter { !$0.isInclude || $0.requiredFlags.isSubset(of: flags) }
    // An include that is passed over still means that only includes are taken.
    includesSomething = rules.contains(where: \.isInclude)
    for rule in valid {
      guard let directory = rule.domain.directory else { continue }
      let path = rule.path.isRoot ? directory : rule.path.rebased(from: .root, to: directory)
      var paths = [path]
      if !rule.path.isRoot, !isDirectory(path) {
        if rule.domain == .database { paths += [path.withSuffix("-journal"), path.withSuffix("-wal")] }
        if rule.domain == .sharedpref, !path.nameString.hasSuffix(".xml") {
          paths.append(path.withSuffix(".xml"))
        }
      }
      let placed = paths.map {
        Placed(path: $0, source: rule.source, isWholeRoot: rule.domain == .root && rule.path.isRoot)
      }
      if rule.isInclude { includes += placed } else { excludes += placed }
    }
  }

  /// Why a path is left out; nil when it is taken. A directory above an included path is taken.
  func reason(against path: ContainerPath, isDirectory: Bool) -> String? {
    if let disabled { return disabled }
    if let rule = excludes.first(where: { $0.covers(path) }) { return rule.source }
    guard includesSomething, !includes.contains(where: { $0.covers(path) }) else { return nil }
    if isDirectory, includes.contains(where: { $0.path.isInside(path) }) { return nil }
    return "no <include> of the rules covers it"
  }
}
