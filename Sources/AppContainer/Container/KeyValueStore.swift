import DrydockErrors
import FileSystem
import Formats

/// The local file of an iCloud key-value store (`NSUbiquitousKeyValueStore`), in `Library/SyncedPreferences`.
///
/// Apple does not document the file. Two forms are known: a dictionary of the values, and that of the system's daemon, which
/// has a record with more than the value for each key: `{values: {KEY: {value: …}}}`. Records are read and preserved, but
/// not changed: their other fields are for the daemon.
package struct KeyValueStore: Sendable {
  /// The limits that Apple documents. Older documents limit keys to 64 bytes.
  package static let keyLimit = 1024
  package static let byteLimit = 1 << 20
  package static let keyLengthLimit = 128

  private static let records = "values"
  private static let value = "value"

  package let values: PropertyListDictionary
  /// Whether the file has the daemon's records.
  package let hasRecords: Bool

  /// - Parameter root: the settings in the file, as they are written.
  package init(_ root: PropertyListDictionary) {
    guard let records = Self.records(in: root) else {
      (values, hasRecords) = (root, false)
      return
    }
    hasRecords = true
    values = PropertyListDictionary(
      records.compactMap { key, record in
        guard case .dictionary(let fields) = record else { return nil }
        return fields[Self.value].map { (key, $0) }
      })
  }

  /// The daemon's records; nil when the file is a dictionary of the values.
  private static func records(in root: PropertyListDictionary) -> PropertyListDictionary? {
    guard case .dictionary(let records) = root[Self.records],
      records.values.allSatisfy({ if case .dictionary = $0 { true } else { false } })
    else { return nil }
    let hasValue = records.values.contains { record in
      if case .dictionary(let fields) = record { fields[value] != nil } else { false }
    }
    // An app may have a setting `values`, but not one of this form alone.
    return hasValue || root.count > 1 && records.isEmpty ? records : nil
  }

  /// What iCloud would not take. The bytes of a value are those of its text or data, of other values those of a binary
  /// property list: how iCloud counts is not documented.
  package var excesses: [String] {
    var found: [String] = []
    if values.count > Self.keyLimit {
      found.append("\(values.count) keys, where iCloud takes \(Self.keyLimit)")
    }
    let sizes = values.values.map(Self.size)
    let total = sizes.reduce(0, +)
    if total > Self.byteLimit {
      found.append("values of \(total) bytes together, where iCloud takes \(Self.byteLimit)")
    }
    let large = sizes.count { $0 > Self.byteLimit }
    if large > 0 { found.append("\(large.counted("value")) of more than \(Self.byteLimit) bytes") }
    let long = values.keys.count { $0.text.utf16.count > Self.keyLengthLimit }
    if long > 0 {
      found.append("\(long.counted("key")) of more than \(Self.keyLengthLimit) UTF-16 characters")
    }
    return found
  }

  /// - Throws: `DrydockError`: `unsupported` for a file with records, `limit` when iCloud would not take the new values,
  ///   unless nothing but deletions differs.
  package func requireWritable(_ new: PropertyListDictionary, _ path: String) throws {
    guard !hasRecords else {
      throw DrydockError(
        .unsupported,
        "this key-value store has the form of the system's iCloud daemon, which is read and not changed; change the "
          + "values in the app", path: path)
    }
    let writes = new.contains { key, value in values[key].map { $0 != value } ?? true }
    guard writes, let excess = KeyValueStore(new).excesses.first else { return }
    throw DrydockError(
      .limit, "the iCloud key-value store would be beyond its limits: \(excess); nothing was changed",
      path: path)
  }

  private static func size(_ value: PropertyListValue) -> Int {
    switch value {
    case .string(let text): text.utf8.count
    case .data(let bytes): bytes.count
    default: (try? PropertyListDocument(format: .binary, value: value).encoded().count) ?? 0
    }
  }

  /// The archive's settings merged into the live ones: a key that both have keeps its live value, which another device may
  /// have written since.
  ///
  /// - Returns: the result, and how many keys kept another value than the archive's.
  package static func merged(
    live: PropertyListDictionary, archived: PropertyListDictionary
  ) -> (root: PropertyListDictionary, kept: Int) {
    let (old, new) = (KeyValueStore(live), KeyValueStore(archived))
    let kept = old.values.reduce(0) { count, pair in
      count + (new.values[pair.key].map { $0.matches(pair.value) ? 0 : 1 } ?? 0)
    }
    // Of two forms neither can be made the other.
    guard old.hasRecords == new.hasRecords else { return (live, kept) }
    guard let liveRecords = records(in: live), let archivedRecords = records(in: archived) else {
      return (live.merging(archived) { live, _ in live }, kept)
    }
    var root = live.merging(archived) { live, _ in live }
    root[records] = .dictionary(liveRecords.merging(archivedRecords) { live, _ in live })
    return (root, kept)
  }
}

extension Container {
  /// Whether a path is the file of an iCloud key-value store: that of the app, or another one beside it.
  package func isKeyValueStore(_ path: ContainerPath) -> Bool {
    if path == suitePath(Self.cloudSuite) { return true }
    return layout == .ios && path.parent == "Library/SyncedPreferences" && path.nameString.hasSuffix(".plist")
  }
}
