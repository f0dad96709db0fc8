import Foundation
import TestSupport
import Testing

/// Commands on a container with a Core Data store that has external binary data.
@Suite struct CoreDataCommandTests {
  private let sandbox: Sandbox
  init() throws {
    sandbox = try Sandbox()
    for path in ["Store/Documents", "Store/Library/Preferences", "Own"] {
      try RawFiles.createDirectories(sandbox(path))
    }
    for name in ["Notes.sqlite", ".Notes_SUPPORT"] {
      try FileManager.default.copyItem(
        atPath: Self.stores + "/" + name, toPath: sandbox("Store/Documents/" + name))
    }
    try FileManager.default.copyItem(atPath: Self.stores + "/Notes.momd", toPath: sandbox("Notes.momd"))
    try sandbox.write(
      "drydock.yaml",
      """
      app: com.example.notes
      layout: ios
      databases: {notes: [\(Self.second), \(Self.first)]}
      core-data: {notes: Notes.momd}
      migrations: Own
      """)
  }

  private static let stores = Sandbox.repository + "/Tests/MigrationEngineTests/CoreDataStores"
  private static let reference = "5D1B0F6A-6C1E-4E0B-9A57-0C1F5B1C2D3E"
  private static let first = "Documents/Notes.sqlite"
  private static let second = "Library/Application Support/Notes.sqlite"

  /// The external file of a store, by the store's path; nil when there is none.
  private func external(_ store: String, in container: String = "Store") throws -> String? {
    let name = (store as NSString).lastPathComponent
    let stem = (name as NSString).deletingPathExtension
    let path =
      "\(container)/\((store as NSString).deletingLastPathComponent)/.\(stem)_SUPPORT/_EXTERNAL_DATA/\(Self.reference)"
    return sandbox.exists(path) ? try sandbox.text(path) : nil
  }

  @Test func `Copy, move, delete and rollback take the external data with the store`() throws {
    let data = try external(Self.first)
    #expect(data != nil)
    try sandbox.write(
      "Own/0001_copy.yaml", "steps:\n  - files.copy: {from: \(Self.first), to: Documents/Copy.sqlite}\n")
    try sandbox.write(
      "Own/0002_move.yaml", "steps:\n  - files.move: {from: \(Self.first), to: \(Self.second)}\n")
    try sandbox.write(
      "Own/0003_delete.yaml", "steps:\n  - files.delete: {path: Documents/Copy.sqlite, destructive: test}\n"
    )
    try sandbox.succeed("baseline Store --to 0")
    let before = try sandbox.tree("Store")
    try sandbox.succeed("migrate Store --to 1 --no-snapshot")
    #expect(try external("Documents/Copy.sqlite") == data)
    #expect(try external(Self.first) == data)
    try sandbox.succeed("migrate Store --to 2 --no-snapshot")
    #expect(try external(Self.second) == data)
    #expect(try external(Self.first) == nil)
    try sandbox.succeed("migrate Store --no-snapshot")
    #expect(try external("Documents/Copy.sqlite") == nil)
    #expect(!sandbox.exists("Store/Documents/.Copy_SUPPORT"))
    try sandbox.succeed("rollback Store --to 0")
    #expect(try external(Self.first) == data)
    #expect(try external(Self.second) == nil)
    #expect(Set(try sandbox.tree("Store").entries.keys) == Set(before.entries.keys))
  }

  @Test func `Snapshots, restores, comparisons and captured fixtures have it`() throws {
    let data = try external(Self.first)
    try sandbox.succeed("baseline Store --to 0")
    let archive = try sandbox.succeed("snapshot Store -o a.tar.zst").split(separator: "\n").first
      .map(String.init)
    #expect(archive == "a.tar.zst" || archive?.hasSuffix("a.tar.zst") == true)
    let file = "Store/Documents/.Notes_SUPPORT/_EXTERNAL_DATA/\(Self.reference)"
    try sandbox.write(file, "changed")
    try sandbox.drydock("diff a.tar.zst Store").expect(output: Self.reference)
    try sandbox.remove(file)
    try sandbox.succeed("restore", "a.tar.zst", "Store", "--path", Self.first)
    #expect(try external(Self.first) == data)
    try sandbox.succeed("restore a.tar.zst New")
    #expect(try external(Self.first, in: "New") == data)
    try sandbox.succeed("fixture capture Store captured --fixtures .")
    #expect(try external(Self.first, in: "captured/container") == data)
  }

  @Test func `Protection classes are shown; required ones are checked, and given to new files`() throws {
    try sandbox.edit("drydock.yaml") {
      $0 + "\nprotection: [{path: \"Documents/*.txt\", require: complete}]\n"
    }
    try sandbox.write("Store/Documents/a.txt", "text")
    try sandbox.succeed("baseline Store --to 0")
    let result = try sandbox.drydock("inspect Store")
    #expect(
      result.errors.contains(
        "files of `Documents/*.txt` with no protection class, or a weaker one than complete: 1, such as Documents/a.txt"
      ),
      "\(result)")
    try sandbox.write(
      "Own/0001_write.yaml",
      """
      steps:
        - files.write: {path: Documents/new.txt, text: new}
        - files.set-protection: {path: Documents/a.txt, class: complete}
      """)
    try sandbox.succeed("migrate Store --no-snapshot")
    let after = try sandbox.drydock("inspect Store")
    #expect(after.output.contains("protection classes\n  complete  2 files\n"), "\(after)")
    #expect(!after.errors.contains("Documents/*.txt"))
  }
}
