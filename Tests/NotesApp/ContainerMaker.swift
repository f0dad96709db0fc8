import Foundation

/// Makes a container with everything that real ones have and that tools get wrong.
struct ContainerMaker {
  let options: ContainerOptions
  private var root: String { options.directory }

  init(options: ContainerOptions) {
    self.options = options
  }

  func make() throws {
    try RawFile.makeDirectories(root)
    guard try RawFile.names(in: Array(root.utf8)).isEmpty else { throw AppError("\(root) is not empty") }
    for directory in [
      "Documents/Notes", "Documents/Inbox", "Documents/Photos", "Library/Preferences",
      "Library/Application Support/Downloads", "Library/Caches/com.example.notes", "tmp", "SystemData",
    ] {
      try RawFile.makeDirectories(root + "/" + directory)
    }
    try writeMetadata()
    try RawFile.write(
      AppSettings.encoded(AppSettings.values(options)), to: root + "/" + AppSettings.path,
      mode: 0o600)
    try NotesSchema(options: options).create(at: root + "/" + options.databasePlace)
    try writeDocuments()
    try writeWhatIsNotBackedUp()
    try writeGroup()
    try setTimes(Array(root.utf8))
    print("made a container of version \(options.version) in \(root)")
  }

  private func writeMetadata() throws {
    let metadata: [String: Any] = [
      "MCMMetadataIdentifier": "com.example.notes", "MCMMetadataContentClass": 2,
      "MCMMetadataUUID": options.uuid,
      "MCMMetadataInfo": ["com.apple.MobileInstallation.ContentProtectionClass": 0],
    ]
    let data = try PropertyListSerialization.data(fromPropertyList: metadata, format: .binary, options: 0)
    try RawFile.write(Array(data), to: root + "/.com.apple.mobile_container_manager.metadata.plist")
  }

  private func writeDocuments() throws {
    let documents = root + "/Documents/"
    for number in 1...max(1, options.texts) {
      let text = String(repeating: "Note \(number): the dock is dry. ", count: 10 + number % 90)
      try RawFile.write(Array(text.utf8), to: documents + "Notes/\(padded(number)).md")
    }
    var noise = Noise(seed: 1)
    for number in 0..<options.photos {
      let size = 40_000 + Int(noise.next() % 160_000)
      try RawFile.write(noise.bytes(size), to: documents + "Photos/IMG_\(padded(number + 1)).jpg")
    }
    // One name composed, one decomposed: whoever normalises names loses one of them.
    try RawFile.write(Array("composed\n".utf8), to: documents + "Gr\u{fc}\u{df}e.txt")
    try RawFile.write(Array("decomposed\n".utf8), to: documents + "Cafe\u{301}.txt")
    try RawFile.write(Array("いろは\n".utf8), to: documents + "日本語 📝.txt")
    #if !canImport(Darwin)
      // APFS refuses names that are not UTF-8; elsewhere they come with files from old systems.
      try RawFile.write(
        [0, 1, 2, 0xff], to: Array((documents + "scan-").utf8) + [0xff, 0xfe] + Array(".dat".utf8))
    #endif
    try RawFile.write([], to: documents + "empty.txt")
    try RawFile.write(Array("only the owner\n".utf8), to: documents + "private.txt", mode: 0o600)
    try RawFile.write(Array("nobody writes\n".utf8), to: documents + "read-only.txt", mode: 0o444)
    try RawFile.write(Array("#!/bin/sh\n".utf8), to: documents + "export.sh", mode: 0o755)
    guard chmod(documents + "Photos", 0o711) == 0 else { throw AppError(call: "chmod", path: "Photos") }
    guard symlink("Notes/0001.md", documents + "Latest.md") == 0 else {
      throw AppError(call: "symlink", path: "Latest.md")
    }
    guard symlink("../Gone", documents + "Dangling") == 0 else {
      throw AppError(call: "symlink", path: "Dangling")
    }
    guard link(documents + "Notes/0001.md", documents + "Notes/Pinned.md") == 0 else {
      throw AppError(call: "link", path: "Notes/Pinned.md")
    }
    try RawFile.setAttribute(
      attribute("com.example.notes.color"), [0x72, 0x65, 0x64, 0x00, 0xfe], of: documents + "Notes/0001.md")
  }

  private func writeWhatIsNotBackedUp() throws {
    for number in 0..<options.caches {
      let text = String(repeating: "thumbnail \(number) ", count: 500)
      try RawFile.write(
        Array(text.utf8), to: root + "/Library/Caches/com.example.notes/thumb-\(padded(number)).bin")
    }
    try RawFile.write(Array("half an upload".utf8), to: root + "/tmp/upload-1.part")
    let downloads = root + "/Library/Application Support/Downloads"
    for number in 1...3 {
      let text = String(repeating: "episode \(number) ", count: 2000)
      try RawFile.write(Array(text.utf8), to: downloads + "/episode-\(number).mp3")
    }
    let reason = try PropertyListSerialization.data(
      fromPropertyList: "com.apple.backupd", format: .binary, options: 0)
    try RawFile.setAttribute(
      attribute("com.apple.metadata:com_apple_backup_excludeItem"), Array(reason), of: downloads)
  }

  /// The app group, from which the widget reads.
  private func writeGroup() throws {
    guard let group = options.group else { return }
    try RawFile.makeDirectories(group)
    guard options.version >= 7 else { return }
    let settings = AppSettings.values(options).filter { ["theme", "fontSize"].contains($0.key) }
    try RawFile.makeDirectories(group + "/Library/Preferences")
    try RawFile.write(
      AppSettings.encoded(settings), to: group + "/Library/Preferences/group.com.example.notes.plist",
      mode: 0o600)
  }

  /// Gives every path a time of its own, months ago and to the nanosecond, children before their directory.
  private func setTimes(_ path: [UInt8]) throws {
    if RawFile.isDirectory(path) {
      for name in try RawFile.names(in: path) { try setTimes(path + [0x2f] + name) }
    }
    let below = path.dropFirst(root.utf8.count)
    let mixed = below.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
    try RawFile.setTime(
      path, seconds: 1_760_000_000 + Int(mixed % 5_000_000), nanoseconds: Int((mixed >> 24) % 1_000_000_000))
  }

  /// Linux lets users set attributes in one namespace only.
  private func attribute(_ name: String) -> String {
    #if canImport(Darwin)
      name
    #else
      "user." + name
    #endif
  }

  private func padded(_ number: Int) -> String {
    String(repeating: "0", count: max(0, 4 - String(number).count)) + String(number)
  }
}
