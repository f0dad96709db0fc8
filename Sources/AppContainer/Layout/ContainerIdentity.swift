import FileSystem
import Formats
import Foundation

/// Whose container a directory is, as far as its files and its name tell.
struct ContainerIdentity {
  /// The bundle id.
  var app: String?
  /// The UUID that iOS gave this container.
  var instance: String?
  /// The directory's name, without `.xcappdata`.
  var name: String

  init(root: Directory, bundle: Directory?, anchor: String) {
    var name = anchor.split(separator: "/").last.map(String.init) ?? anchor
    if bundle != nil { name = String(name.dropLast(".xcappdata".count)) }
    self.name = name

    let metadata = Self.strings(in: root, Layout.metadataFile)
    instance = metadata["MCMMetadataUUID"]
    app = metadata["MCMMetadataIdentifier"]
    if app == nil, let bundle { app = Self.strings(in: bundle, "AppDataInfo.plist")["CFBundleIdentifier"] }
    // A bare `<bundle-id>/` folder names its app; else the only settings file that is not Apple's does.
    if app == nil, Self.isBundleIdentifier(name) { app = name }
    if app == nil { app = Self.onlySettingsFile(in: root) ?? Self.androidPackage(in: root) }
  }

  private static func strings(in directory: Directory, _ path: ContainerPath) -> [String: String] {
    // A damaged file names nobody; whoever needs its settings will say that it is damaged.
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

  private static func onlySettingsFile(in root: Directory) -> String? {
    let folder: ContainerPath = "Library/Preferences"
    // A folder that is a link, or that may not be listed, tells nothing.
    guard let listed = try? root.directory(folder).names() else { return nil }
    let names = listed.map { String(decoding: $0, as: UTF8.self) }
    let settings = names.filter {
      $0.hasSuffix(".plist") && !$0.hasPrefix("com.apple.") && !$0.hasPrefix(".")
    }
    return settings.count == 1 ? settings.first.map { String($0.dropLast(".plist".count)) } : nil
  }

  /// The app's own settings on Android are `<package>_preferences.xml`.
  private static func androidPackage(in root: Directory) -> String? {
    guard let listed = try? root.directory("shared_prefs").names() else { return nil }
    let suffix = "_preferences.xml"
    let packages = listed.map { String(decoding: $0, as: UTF8.self) }.filter { $0.hasSuffix(suffix) }.map {
      String($0.dropLast(suffix.count))
    }.filter(isBundleIdentifier)
    return packages.count == 1 ? packages.first : nil
  }
}
