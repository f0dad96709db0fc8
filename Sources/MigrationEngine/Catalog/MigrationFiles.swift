import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Synchronization

/// The files of one migration.
struct MigrationFiles: Sendable {
  /// By the path inside the migration's directory; a single file by its name.
  var contents: [String: [UInt8]] = [:]
  /// The directory that holds them, for messages.
  var directory: String
  /// Whether the migration is a directory of files.
  var isDirectory: Bool
  /// The file of the down statements, which may be added after the migration was applied.
  var down: String?
  private let named = NamedFiles()

  /// The description of a migration that is a directory.
  static let main = "migration.yaml"

  init(contents: [String: [UInt8]] = [:], directory: String, isDirectory: Bool) {
    (self.contents, self.directory, self.isDirectory) = (contents, directory, isDirectory)
  }

  /// The path of a file for messages.
  func display(_ name: String) -> String { directory.isEmpty ? name : directory + "/" + name }

  /// The files that the migration consists of: in a directory, those that its steps name. What else is there, such as a README
  /// or an editor's backup, makes no difference.
  var used: [String: [UInt8]] {
    guard isDirectory else { return contents }
    let names = named.names.withLock { $0 }
    return contents.filter { $0.key == Self.main || names.contains($0.key) }
  }

  /// Notes that a program is run, which may read all files except notes on them and what editors and desktops leave.
  func useAll() {
    let others: Set = ["README.md", "Thumbs.db", "desktop.ini"]
    for name in contents.keys where !name.hasSuffix("~") && !name.hasSuffix(".orig") {
      if !others.contains(String(name.split(separator: "/").last ?? "")) { named.insert(name) }
    }
  }

  /// The content of a file that a step names.
  func bytes(of name: String, namedAt position: YAMLPosition) throws -> [UInt8] {
    guard isDirectory else {
      throw position.error(
        "`\(name)` is another file: make the migration a directory with migration.yaml and its files")
    }
    guard let bytes = contents[name] else {
      throw position.error(
        "the migration has no file `\(name)`; " + NearestWord.hint(for: name, among: Array(contents.keys)))
    }
    try refuseConflict(in: name)
    named.insert(name)
    return bytes
  }

  /// The text of a file that a step names.
  func text(of name: String, namedAt position: YAMLPosition) throws -> [UInt8] {
    guard let text = TextFile.utf8(try bytes(of: name, namedAt: position)) else {
      throw position.error("the file `\(name)` is not UTF-8")
    }
    return TextFile.committed(text)
  }

  /// - Throws: `DrydockError` for the conflict markers that git leaves in a merge.
  private func refuseConflict(in name: String) throws {
    // Seven equals signs alone underline a heading in other texts.
    let hasStatements = name.hasSuffix(".sql") || name.hasSuffix(".yaml")
    let marks = hasStatements ? "<>=" : "<>"
    guard let line = TextFile.conflictLine(in: contents[name] ?? [], marks: marks) else { return }
    throw YAMLPosition(file: display(name), line: line, column: 1).error(
      "a conflict marker of git: resolve the merge conflict, and remove the lines with `<<<<<<<`, `=======` and "
        + "`>>>>>>>`", code: .catalog)
  }

  /// Reads files of a directory of migrations, which are one migration.
  init(of names: [String], in folder: Directory, display: String) throws {
    self.init(directory: display, isDirectory: false)
    for name in names {
      contents[name] = try folder.contents(ContainerPath(name))
      try refuseConflict(in: name)
    }
  }

  /// Reads a directory's files at every depth, except names that start with a dot.
  init(directory name: String, in folder: Directory, display: String) throws {
    self.init(directory: display + "/" + name, isDirectory: true)
    try add(try folder.directory(ContainerPath(name)), prefix: "")
    try refuseConflict(in: Self.main)
  }

  private mutating func add(_ directory: Directory, prefix: String) throws {
    for bytes in try directory.names() where bytes.first != UInt8(ascii: ".") {
      guard let name = String(validating: bytes, as: UTF8.self) else {
        throw DrydockError(.catalog, "a file name is not UTF-8: rename it", path: display(prefix))
      }
      let path = try ContainerPath(name)
      switch try directory.status(path)?.type {
      case .directory: try add(try directory.directory(path), prefix: prefix + name + "/")
      case .file: contents[prefix + name] = try directory.contents(path)
      default:
        throw DrydockError(
          .catalog, "neither a file nor a directory: a migration consists of files",
          path: display(prefix + name))
      }
    }
  }

  /// The checksum of the files that the migration uses, with normalized line ends; and those that earlier versions recorded
  /// for the same files: over all files of a directory, and with the line ends as they are.
  func checksums() throws -> [SHA256.Digest] {
    var forms = [used.mapValues(TextFile.withoutCheckout)]
    for form in [contents.mapValues(TextFile.withoutCheckout), contents] where !forms.contains(form) {
      forms.append(form)
    }
    return try forms.map(Self.checksum)
  }

  /// Without the file of the down statements; nil when there is none, or nothing else.
  var withoutDown: MigrationFiles? {
    guard let down, contents.count > 1 else { return nil }
    var files = self
    (files.contents[down], files.down) = (nil, nil)
    return files
  }

  /// The files as they were named under another number and name. In a directory the names have neither.
  func renamed(from name: String, to number: Int, _ newName: String) -> MigrationFiles {
    if isDirectory { return self }
    func renamed(_ file: String) -> String {
      let digits = file.prefix(while: \.isNumber)
      guard file.dropFirst(digits.count).hasPrefix("_" + name) else { return file }
      let text = String(number)
      let zeros = String(repeating: "0", count: max(0, digits.count - text.count))
      return "\(zeros)\(text)_\(newName)\(file.dropFirst(digits.count + 1 + name.count))"
    }
    var files = self
    files.contents = [:]
    for (file, bytes) in contents { files.contents[renamed(file)] = bytes }
    files.down = down.map(renamed)
    return files
  }

  /// SHA-256 over every file in the order of the names: length and bytes of the name, length and bytes of the
  /// content, lengths as 64 bits big-endian, so that no two sets of files give the same input.
  private static func checksum(_ contents: [String: [UInt8]]) throws -> SHA256.Digest {
    let digest = try SHA256()
    for (name, bytes) in contents.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      for part in [Array(name.utf8), bytes] {
        withUnsafeBytes(of: UInt64(part.count).bigEndian) { digest.update($0) }
        part.withUnsafeBytes { digest.update($0) }
      }
    }
    return try digest.finalize()
  }
}

/// The files that steps name, noted while the steps are read.
private final class NamedFiles: Sendable {
  let names = Mutex<Set<String>>([])

  func insert(_ name: String) { names.withLock { _ = $0.insert(name) } }
}
