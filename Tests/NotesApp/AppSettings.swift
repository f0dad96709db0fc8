import Foundation

/// The app's settings, as UserDefaults keeps them: one binary property list.
enum AppSettings {
  static let path = "Library/Preferences/com.example.notes.plist"

  /// The settings as the app of a schema version wrote them.
  static func values(_ options: ContainerOptions) -> [String: Any] {
    let version = options.version
    var values: [String: Any] = [
      "dataSchemaVersion": version,
      "launchCount": 42,
      "zoom": 1.25,
      "lastOpened": Date(timeIntervalSinceReferenceDate: 781_234_567.125),
      "recentSearches": ["milk", "Grüße", "日本"],
      "window.frame": ["x": 0, "y": 0.5, "visible": true],
      "bookmark": Data([0x62, 0x6f, 0x6f, 0x6b, 0x00, 0xff]),
    ]
    if version >= 1 {
      values["theme"] = "light"
      values["fontSize"] = 14
    }
    if version >= 2 {
      values["username"] = "Ada Lovelace"
      values["email"] = "ada@example.com"
      values["theme"] = options.isAsShipped && version == 2 ? true : "dark"
    } else {
      values["user_name"] = "Ada Lovelace"
      values["user_email"] = "ada@example.com"
      values["dark_mode"] = true
    }
    // From version 5 on it is in the vault; a container that this program makes of such a version is one of somebody
    // who has not signed in.
    values["auth_token"] = options.token
    return values
  }

  static func encoded(_ values: [String: Any]) throws -> [UInt8] {
    Array(try PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0))
  }

  /// Writes one setting: the whole file anew, put in place by a rename, as the system's daemon does; and a note,
  /// so that there is a new file too.
  static func change(_ key: String, to text: String, in directory: String) throws {
    let file = URL(fileURLWithPath: directory + "/" + path)
    var values = access(file.path, F_OK) == 0 ? try read(from: directory) : [:]
    values[key] = typed(text)
    try Data(encoded(values)).write(to: file, options: .atomic)
    let note = "Documents/Notes/About \(key).md"
    try RawFile.makeDirectories(directory + "/Documents/Notes")
    try RawFile.write(Array("\(key) became \(text)\n".utf8), to: directory + "/" + note)
    print("wrote \(key) to \(path), and \(note)")
  }

  /// Prints every setting, sorted.
  static func printAll(of directory: String) throws {
    for (key, value) in try read(from: directory).sorted(by: { $0.key < $1.key }) {
      print("\(key) = \(value)")
    }
  }

  private static func read(from directory: String) throws -> [String: Any] {
    let data = try Data(contentsOf: URL(fileURLWithPath: directory + "/" + path))
    return try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any] ?? [:]
  }

  private static func typed(_ text: String) -> Any {
    if text == "true" || text == "false" { return text == "true" }
    if let integer = Int(text) { return integer }
    if let real = Double(text) { return real }
    return text
  }
}
