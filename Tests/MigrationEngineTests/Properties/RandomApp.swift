import Formats
import Foundation
import GRDB
import TestSupport

/// An app that writes something here and there: settings, rows, files; in place, or as a new file that takes the old one's
/// place.
struct RandomApp {
  let root: String
  /// What it did, for messages.
  private(set) var done: [String] = []
  private var random: SeededRandom

  init(root: String, seed: UInt64) {
    self.root = root
    random = SeededRandom(seed: ~seed)
  }

  /// Writes some things.
  ///
  /// - Parameter touched: what it leaves alone, as ``Stores/touched(since:)`` names it.
  mutating func write(sparing touched: Set<String>) throws {
    for _ in 0..<Int.random(in: 1...6, using: &random) {
      switch Int.random(in: 0..<3, using: &random) {
      case 0: try writeSetting(touched)
      case 1: try writeRow(touched)
      default: try writeFile(touched)
      }
    }
  }

  private mutating func writeSetting(_ touched: Set<String>) throws {
    guard let path = RandomContainer.suites.filter(exists).randomElement(using: &random),
      let key = (RandomContainer.keys + ["app"]).filter({ !touched.contains(path + "\n" + $0) })
        .randomElement(using: &random)
    else { return }
    var file = try PropertyListFile(bytes: Array(Data(contentsOf: url(path))))
    let value = RandomContainer.value(&random, format: file.format)
    file.root[key] = Bool.random(using: &random) ? value : nil
    try save(Data(file.encoded()), at: path)
    done.append("\(key) of \(path)")
  }

  private mutating func writeRow(_ touched: Set<String>) throws {
    let all = (RandomContainer.databases + RandomContainer.moved).filter {
      exists($0) && !touched.contains($0)
    }
    guard let path = all.randomElement(using: &random) else { return }
    let queue = try DatabaseQueue(path: url(path).path)
    try queue.write { try $0.execute(sql: "INSERT INTO task(title) VALUES ('of the app')") }
    try queue.close()
    done.append("a row of \(path)")
  }

  private mutating func writeFile(_ touched: Set<String>) throws {
    let names =
      ["Documents/app.txt", "Documents/Sub/app.txt", "Library/app.txt"] + RandomContainer.paths.prefix(4) + [
        "Documents/hard"
      ]
    guard let path = names.filter({ !touched.contains($0) }).randomElement(using: &random),
      exists((path as NSString).deletingLastPathComponent)
    else { return }
    if exists(path), Int.random(in: 0..<3, using: &random) == 0 {
      try FileManager.default.removeItem(at: url(path))
      done.append("no \(path)")
    } else {
      try save(Data("app \(random.next())".utf8), at: path)
      done.append(path)
    }
  }

  private mutating func save(_ data: Data, at path: String) throws {
    let isNew = Bool.random(using: &random)
    if isNew || !exists(path) { return try data.write(to: url(path), options: .atomic) }
    let file = try FileHandle(forWritingTo: url(path))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: data)
    try file.close()
    done.append("in place:")
  }

  private func url(_ path: String) -> URL { URL(fileURLWithPath: root + "/" + path) }
  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: url(path).path) }
}

extension Stores {
  /// What a run changed since: `file\nkey` of settings, and paths.
  func touched(since before: Stores) -> Set<String> {
    var touched: Set<String> = []
    for file in Set(settings.keys).union(before.settings.keys) {
      let (new, old) = (settings[file] ?? [:], before.settings[file] ?? [:])
      for key in new.differingKeys(from: old) { touched.insert(file + "\n" + key.text) }
    }
    for path in Set(databases.keys).union(before.databases.keys)
    where databases[path] != before.databases[path] {
      touched.insert(path)
    }
    for path in Set(files.keys).union(before.files.keys) where files[path] != before.files[path] {
      touched.insert(path)
    }
    return touched
  }

  /// What this becomes where a run that led from `before` to `after` is undone, and all that is newer stays.
  func undoing(_ after: Stores, to before: Stores) -> Stores {
    var result = self
    for file in Set(after.settings.keys).union(before.settings.keys) {
      let (new, old) = (after.settings[file] ?? [:], before.settings[file] ?? [:])
      var values = result.settings[file] ?? [:]
      for key in Set(new.keys).union(old.keys) where new[key] != old[key] { values[key] = old[key] }
      result.settings[file] = values.isEmpty && before.settings[file] == nil ? nil : values
      result.formats[file] = result.settings[file] == nil ? nil : before.formats[file] ?? result.formats[file]
    }
    result.items = before.items
    for path in Set(after.databases.keys).union(before.databases.keys)
    where after.databases[path] != before.databases[path] { result.databases[path] = before.databases[path] }
    for path in Set(after.files.keys).union(before.files.keys) where after.files[path] != before.files[path] {
      result.files[path] = before.files[path]
    }
    return result
  }

  /// Without directories: one that the app has put something into stays.
  var besidesDirectories: Stores {
    var result = self
    result.files = files.filter { !$0.value.hasPrefix("directory") }
    return result
  }
}
