import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Formats

extension AuditRule {
  static let settings = [
    AuditRule(
      .settingsLarge, .warning, "a settings file above 1 MB",
      why: "the whole file is read when the app starts, and written again at each change",
      fix: "move large values to files of their own: `defaults.move-to-file`",
      source: apple("foundation/userdefaults/sizelimitexceedednotification")),
    AuditRule(
      .blobInSettings, .warning, "a blob in settings",
      why:
        "settings are for small values; data of 16 kB or more slows each start and each write of any setting",
      fix: "move it to a file: `defaults.move-to-file`",
      source: apple("foundation/userdefaults")),
    AuditRule(
      .jsonInSettings, .note, "a document in settings",
      why: "JSON inside of a setting has no schema version of its own, and each change rewrites all of it",
      fix: "move it to a file (`defaults.move-to-file`), or give it a version: `defaults.document-migrate`"),
    AuditRule(
      .pathInSettings, .warning, "a path to the container in settings or documents",
      why:
        "the container's path has an ID that changes at each installation and restore: the stored path is then wrong",
      fix: "store paths relative to the container: `defaults.patch`, `defaults.set` or `files.patch`",
      source: "https://developer.apple.com/library/archive/technotes/tn2406/_index.html"),
    AuditRule(
      .customClassInArchive, .note, "a keyed archive of the app's own classes",
      why:
        "renaming such a class makes the archive unreadable, and decoding it safely needs NSSecureCoding; whether it was "
        + "written so is not in the archive",
      fix: "decode it once into JSON or a property list: `files.unarchive`, for files, settings and columns",
      source: apple("foundation/nssecurecoding")),
    AuditRule(
      .cloudStoreLimit, .error, "an iCloud key-value store beyond its limits",
      why:
        "iCloud takes 1024 keys of at most 128 characters and 1 MB of values; beyond that it stores no change, and reports "
        + "it only to apps that observe it",
      fix:
        "move values to the app's settings or to files: `defaults.move` with `from: {suite: icloud}`, `defaults.move-to-file`",
      source: apple("foundation/nsubiquitouskeyvaluestore")),
    AuditRule(
      .settingsDamaged, .error, "a settings file that cannot be read",
      why:
        "the app starts without its settings, or fails; a file without bytes, or of zeros, is what a device leaves that lost "
        + "its power while the app wrote",
      fix: "restore the file from an older snapshot, or say `if-damaged: reset` in the steps that change it",
      source:
        "https://developer.android.com/reference/kotlin/androidx/datastore/core/handlers/ReplaceFileCorruptionHandler"
    ),
    AuditRule(
      .settingsOfDevice, .warning, "settings that only one device can read",
      why:
        "the key of EncryptedSharedPreferences is in the device's keystore: after a restore on another device, or a new "
        + "installation, the app cannot read the file, and may fail when it opens it",
      fix:
        "exclude the file in the app's `<data-extraction-rules>`, and let the app begin it anew when it cannot be read",
      source: "https://developer.android.com/reference/androidx/security/crypto/EncryptedSharedPreferences"),
  ]
}

/// Examines a settings file.
struct SettingsRules {
  static let largeSize: UInt64 = 1 << 20
  static let blobSize = 16_384
  static let jsonSize = 512
  static let pathMessage = "an absolute path to the container, which changes at the next restore"

  private let path: ContainerPath
  private let status: FileStatus
  private let isExcluded: Bool

  init(_ path: ContainerPath, _ status: FileStatus, isExcluded: Bool) {
    (self.path, self.status, self.isExcluded) = (path, status, isExcluded)
  }

  func check(_ context: inout AuditContext) {
    let name = path.nameString
    // The system's own files, which no app can change.
    if name.hasPrefix("com.apple.") || name.hasPrefix(".") { return }
    do {
      let values = try context.staged.defaults(path)?.root ?? [:]
      if context.container.isKeyValueStore(path) {
        for excess in KeyValueStore(values).excesses {
          context.findings.add(.cloudStoreLimit, path.description, excess)
        }
      }
      if status.size > Self.largeSize {
        context.findings.add(
          .settingsLarge, path.description, "it has \(status.size) bytes and \(values.count) settings")
      }
      check(values, &context)
    } catch let error as DrydockError where error.code == .malformed {
      context.findings.add(.settingsDamaged, path.description, error.message)
    } catch let error as DrydockError where error.code == .unsupported && !isExcluded {
      context.findings.add(.settingsOfDevice, path.description, error.message)
    } catch {
      context.skip(path, error)
    }
  }

  private func check(_ values: PropertyListDictionary, _ context: inout AuditContext) {
    var search = SecretValueSearch(budget: max(4 << 20, Int(clamping: status.size) * 4))
    var hasSecret = false
    for (key, value) in values.sorted() where !Self.isSystems(key) {
      context.facts.note(setting: key, value, in: path)
      if SecretEvidence.form(in: key) != nil {
        hasSecret = true
        add(.secretInSettings, "the name of a setting has the form of a secret", key, &context)
      } else if let found = search.evidence(in: value, name: key) {
        hasSecret = true
        add(.secretInSettings, "values that are secrets by name or form", "`\(key)`, \(found)", &context)
      }
      if isExcluded { continue }
      checkSize(key, value, &context)
      if search.findsPath(in: value) {
        add(.pathInSettings, Self.pathMessage, "`\(key)`", &context)
      }
    }
    if search.left <= 0 {
      context.limits.append(
        "\(path): expands to much more than its size, and was searched for secrets in part")
    }
    if hasSecret, status.mode & 0o004 != 0 { context.facts.readableSecrets.append(path) }
  }

  private func checkSize(_ key: String, _ value: PropertyListValue, _ context: inout AuditContext) {
    let shown = "`\(key)`"
    switch value {
    case .data(let bytes):
      if let found = ArchivedClasses.custom(in: bytes).first {
        add(.customClassInArchive, ArchivedClasses.message, "\(shown): \(found)", &context)
      }
      if Self.isJSON(value, bytes.count) {
        add(.jsonInSettings, "JSON as data", "\(shown), \(bytes.count) bytes", &context)
      } else if bytes.count >= Self.blobSize {
        add(
          .blobInSettings, "data of \(Self.blobSize) bytes or more", "\(shown), \(bytes.count) bytes",
          &context)
      }
    case .string(let text) where Self.isJSON(value, text.utf8.count):
      add(.jsonInSettings, "JSON in a text", "\(shown), \(text.utf8.count) bytes", &context)
    default: break
    }
  }

  private static func isJSON(_ value: PropertyListValue, _ size: Int) -> Bool {
    guard size >= jsonSize else { return false }
    let first: UInt8? =
      switch value {
      case .string(let text): text.utf8.first { $0 > 0x20 }
      case .data(let bytes): bytes.first { $0 > 0x20 }
      default: nil
      }
    guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return false }
    return value.document?.isStructured ?? false
  }

  private func add(
    _ rule: AuditRuleID, _ message: String, _ example: String, _ context: inout AuditContext
  ) {
    context.findings.add(rule, path.description, message, unit: "setting", example: example)
  }

  /// What systems and their frameworks write into an app's settings.
  static func isSystems(_ key: String) -> Bool {
    ["Apple", "NS", "com.apple.", "WebKit", "AK", "PK", "INNext", "METAL"].contains(where: key.hasPrefix)
  }
}

/// The classes in keyed archives.
enum ArchivedClasses {
  static let message = "classes that are not Apple's, by their names"
  private static let limit = 4 << 20
  /// The prefixes of Apple's frameworks whose objects apps archive.
  private static let apple = [
    "NS", "UI", "CG", "CL", "CK", "MK", "CN", "AV", "PH", "UT", "WK", "SK", "PK", "HK", "IN", "LP", "CA",
    "CI",
    "SC", "AS", "AK", "MP", "GK", "CS", "QL", "CF", "EK", "SF", "LA", "AR", "PDF", "CM", "CW", "CT",
  ]

  /// The names of classes that are not Apple's, in a keyed archive; none in other data.
  static func custom(in bytes: [UInt8]) -> [String] {
    guard bytes.count <= limit, PropertyListDocument.isBegun(by: bytes),
      let file = try? PropertyListFile(bytes: bytes), file.root["$archiver"] != nil,
      case .array(let objects)? = file.root["$objects"]
    else { return [] }
    let names = objects.compactMap { object -> String? in
      guard case .dictionary(let fields) = object, case .string(let name)? = fields["$classname"] else {
        return nil
      }
      return isApples(name) ? nil : name
    }
    return Set(names).sorted().map { ContainerPath.printable(Array($0.utf8.prefix(100))) }
  }

  private static func isApples(_ name: String) -> Bool {
    if name.hasPrefix("_TtC") { return false }
    // A class in Swift has its module before a dot.
    if let dot = name.firstIndex(of: ".") { return name[..<dot] == "Foundation" || name[..<dot] == "Swift" }
    let bare = name.drop { $0 == "_" }
    return apple.contains { prefix in
      bare.hasPrefix(prefix) && bare.dropFirst(prefix.count).first?.isUppercase ?? false
    }
  }
}
