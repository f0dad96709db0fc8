import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// What an app declares: its `Info.plist`, privacy manifests and entitlements.
public struct AppDeclaration: Sendable {
  /// A property list and the file that it is from.
  package struct Part: Sendable {
    package var path: String
    package var values: PropertyListDictionary

    package init(path: String, values: PropertyListDictionary) { (self.path, self.values) = (path, values) }
  }

  package var info: Part?
  /// Nil when it was not looked for; empty when the app has none.
  package var privacy: [Part]?
  package var entitlements: Part?
  /// What could not be known.
  package var notes: [String] = []

  package init(info: Part? = nil, privacy: [Part]? = nil, entitlements: Part? = nil) {
    (self.info, self.privacy, self.entitlements) = (info, privacy, entitlements)
  }

  /// Reads single files, property lists in any format.
  ///
  /// - Throws: ``DrydockError`` for one that does not exist or is not a property list.
  public init(info: String? = nil, privacyManifest: String? = nil, entitlements: String? = nil) throws {
    self.init(
      info: try info.map(Self.read), privacy: try privacyManifest.map { [try Self.read($0)] },
      entitlements: try entitlements.map(Self.read))
  }

  /// This declaration with the parts of another one in place of its own.
  package func replacing(with other: AppDeclaration) -> AppDeclaration {
    var result = self
    if let info = other.info { result.info = info }
    if let privacy = other.privacy { result.privacy = privacy }
    if let entitlements = other.entitlements {
      result.entitlements = entitlements
      // They were about the entitlements that the bundle has.
      result.notes = []
    }
    result.notes += other.notes
    return result
  }

  private static let limit = 16 << 20

  private static func read(_ path: String) throws -> Part {
    let (folder, name) = try ContainerPath.split(path)
    return try read(name, in: Directory(folder), shown: path)
  }

  private static func read(_ file: ContainerPath, in directory: Directory, shown path: String) throws -> Part
  {
    let bytes = try directory.contents(file, limit: limit)
    do {
      return Part(path: path, values: try PropertyListFile(bytes: bytes).root)
    } catch let error as DrydockError {
      throw DrydockError(.malformed, error.message, path: path, cause: error)
    }
  }

  // MARK: Bundles

  /// Reads an app's bundle: the directory `X.app`, or a directory with it, alone or in `Payload`.
  ///
  /// - Parameter shown: the path in messages, such as that of the archive that was unpacked.
  /// - Throws: ``DrydockError``: `notFound` when there is no bundle, `malformed` for corrupt property lists.
  package init(bundle path: String, shown: String) throws {
    var found = try Self.bundle(in: Directory(path), shown: shown)
    found.name = shown + "/" + found.name
    let directory = found.directory
    func part(_ file: ContainerPath) throws -> Part? {
      guard try directory.status(file)?.type == .file else { return nil }
      return try Self.read(file, in: directory, shown: found.name + file.description)
    }
    // A bundle of macOS has everything in `Contents`.
    guard let info = try part("Info.plist") else {
      throw DrydockError(
        .notFound, "the app has no Info.plist in its root; only apps for iOS and its relatives are read",
        path: shown)
    }
    let manifest: ContainerPath = "PrivacyInfo.xcprivacy"
    var privacy = [try part(manifest)]
    for folder in [ContainerPath.root, "Frameworks"] {
      guard try folder.isRoot || directory.status(folder)?.type == .directory else { continue }
      for name in try directory.directory(folder).names() {
        let text = String(decoding: name, as: UTF8.self)
        guard text.hasSuffix(".bundle") || text.hasSuffix(".framework") else { continue }
        privacy.append(try part(folder.appending(name: name).appending(manifest.nameString)))
      }
    }
    self.init(info: info, privacy: privacy.compactMap { $0 })
    hasOwnManifest = privacy.first.flatMap { $0 } != nil
    try readEntitlements(directory, info, found.name, part)
  }

  /// Whether the first manifest is the app's, not an SDK's.
  package private(set) var hasOwnManifest = true

  private static func bundle(in directory: Directory, shown: String) throws -> (
    directory: Directory, name: String
  ) {
    for folder in [ContainerPath.root, "Payload"] {
      if folder.isRoot, try directory.status("Info.plist") != nil { return (directory, "") }
      guard try folder.isRoot || directory.status(folder)?.type == .directory else { continue }
      let apps = try directory.directory(folder).names().filter { $0.suffix(4).elementsEqual(".app".utf8) }
      guard let app = apps.first else { continue }
      guard apps.count == 1 else {
        throw DrydockError(.ambiguous, "there are \(apps.count) apps; give one of them", path: shown)
      }
      let place = folder.appending(name: app)
      return (try directory.directory(place), place.description + "/")
    }
    throw DrydockError(
      .notFound, "no app found: give a directory `X.app`, or an .ipa file", path: shown)
  }

  /// The signature has what the app may do; a provisioning profile what it could be signed with.
  private mutating func readEntitlements(
    _ directory: Directory, _ info: Part, _ prefix: String, _ part: (ContainerPath) throws -> Part?
  ) throws {
    if case .string(let name)? = info.values["CFBundleExecutable"], let path = try? ContainerPath(name),
      path.parent.isRoot, try directory.status(path)?.type == .file
    {
      if let values = try CodeSignature.entitlements(of: path, in: directory) {
        entitlements = Part(path: prefix + path.description, values: values)
        return
      }
    }
    let expanded: ContainerPath = "archived-expanded-entitlements.xcent"
    if let found = try part(expanded) {
      entitlements = found
      return
    }
    let profile: ContainerPath = "embedded.mobileprovision"
    if try directory.status(profile)?.type == .file {
      let bytes = try directory.contents(profile, limit: Self.limit)
      if case .dictionary(let values)? = Self.profile(bytes)?["Entitlements"] {
        entitlements = Part(path: prefix + profile.description, values: values)
        notes.append(
          "entitlements: from the provisioning profile, which allows more than the app may be signed with")
        return
      }
    }
    notes.append("entitlements: the app has no readable signature, .xcent file or provisioning profile")
  }

  /// The property list in a profile, which is inside of a signed message in the clear.
  static func profile(_ bytes: [UInt8]) -> PropertyListDictionary? {
    guard let start = bytes.firstRange(of: Array("<?xml".utf8)) else { return nil }
    guard let end = bytes[start.lowerBound...].firstRange(of: Array("</plist>".utf8)) else { return nil }
    return try? PropertyListFile(bytes: Array(bytes[start.lowerBound..<end.upperBound])).root
  }

  // MARK: Values

  /// The class of data protection that files of the app have by default.
  var defaultProtection: ProtectionClass? {
    guard case .string(let name)? = entitlements?.values["com.apple.developer.default-data-protection"] else {
      return nil
    }
    return ProtectionClass.allCases.first { $0.appleName == name }
  }
}

extension PropertyListDictionary {
  /// The texts of a list; a single text is a list of one.
  func texts(_ key: String) -> [String] {
    switch self[key] {
    case .string(let text): [text]
    case .array(let values):
      values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    default: []
    }
  }

  func dictionaries(_ key: String) -> [PropertyListDictionary] {
    guard case .array(let values)? = self[key] else { return [] }
    return values.compactMap { if case .dictionary(let fields) = $0 { fields } else { nil } }
  }

  func dictionary(_ key: String) -> PropertyListDictionary? {
    if case .dictionary(let fields)? = self[key] { fields } else { nil }
  }
}
