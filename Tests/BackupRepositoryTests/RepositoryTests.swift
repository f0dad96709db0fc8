import AppContainer
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Finding archives.
@Suite struct RepositoryTests {
  /// A repository with archives of two instances over three days; gives each one's path by name.
  private func repository(_ lab: Lab) throws -> [String: String] {
    var paths: [String: String] = [:]
    for (instance, time) in [
      ("red", "2026-11-12T08:00:00Z"), ("red", "2026-11-14T08:00:00Z"), ("red", "2026-11-14T23:59:59Z"),
      ("blue", "2026-11-13T12:00:00Z"), ("a@b", "2026-11-10T00:00:00Z"),
    ] {
      var archive = try HandmadeArchive(lab, name: "\(instance)-\(time).tar.zst")
      archive.addRoot()
      archive.header = try ArchiveHeader(
        archive: archive.id, app: "com.example.lab", instance: instance, layout: .generic, schemaVersion: nil,
        time: time, tool: "test"
      ).encoded()
      paths["\(instance) \(time.prefix(13))"] = try archive.write()
    }
    return paths
  }

  @Test func archivesAreFoundByWhatAPersonSays() throws {
    let lab = try Lab()
    let paths = try repository(lab)
    let repository = Repository(lab.repository)
    #expect(
      try repository.list().items.map(\.header.time) == repository.list().items.map(\.header.time).sorted())
    #expect(try repository.list().items.count == 5)
    #expect(try repository.find("red@latest") == paths["red 2026-11-14T23"])
    #expect(try repository.find("red@2026-11-14") == paths["red 2026-11-14T23"])
    #expect(try repository.find("red@2026-11-14T12:00:00Z") == paths["red 2026-11-14T08"])
    #expect(try repository.find("red@2026-11-13") == paths["red 2026-11-12T08"])
    #expect(try repository.find("red@2026-11") == paths["red 2026-11-14T23"])
    #expect(try repository.find("blue@2030-01-01") == paths["blue 2026-11-13T12"])
    #expect(try repository.find("a@b@latest") == paths["a@b 2026-11-10T00"])
    for item in try repository.list().items {
      #expect(try repository.find(item.header.archive.description) == item.path)
      #expect(try repository.find(item.header.archive.short.uppercased()) == item.path)
    }
  }

  @Test func whatDoesNotFitIsRefused() throws {
    let lab = try Lab()
    _ = try repository(lab)
    let repository = Repository(lab.repository)
    let error = failure { _ = try repository.find("latest") }
    #expect(code(error) == "ambiguous")
    #expect(["red", "blue", "a@b"].allSatisfy { "\(error as Any)".contains($0) })
    for name in ["red@2026-11-11", "green@latest", "zz", "", "@", "red@", "red@yesterday", "red@latest2"] {
      #expect(code(failure { _ = try repository.find(name) }) == "notFound", "\(name)")
    }
    #expect(code(failure { _ = try Repository(lab.directory("none")).list() }) == "notFound")
    #expect(try Repository(lab.root).list().items.isEmpty)
  }

  @Test func prefixOfSeveralIsAmbiguous() throws {
    let lab = try Lab()
    let ids = try (0..<20).map { number in
      var archive = try HandmadeArchive(lab, name: "\(number).tar.zst")
      archive.addRoot()
      _ = try archive.write()
      return archive.id.description
    }
    // Twenty ids cannot have different first digits.
    let digits = Dictionary(grouping: ids) { $0.prefix(1) }
    let shared = try #require(digits.first { $0.value.count > 1 }?.key)
    #expect(code(failure { _ = try Repository(lab.repository).find(String(shared)) }) == "ambiguous")
    #expect(code(failure { _ = try Repository(lab.repository).find("latest") }) == "none")
  }

  @Test func unreadableFilesAreListed() throws {
    let lab = try Lab()
    let good = try lab.snapshot().path
    let bytes = Array(try RawFiles.read(Array(good.utf8)))
    for (name, content) in [
      ("empty", []), ("text", Array("no archive".utf8)), ("cut", Array(bytes.dropLast(30))),
      ("half", Array(bytes.prefix(bytes.count / 2))),
    ] as [(String, [UInt8])] {
      try RawFiles.write(content, to: Array((lab.repository + "/\(name).tar.zst").utf8))
    }
    try lab.make(lab.repository + "/directory.tar.zst")
    _ = try lab.shell(
      "echo x > repository/notes.txt; mkfifo repository/pipe.tar.zst; ln -s nowhere repository/link.tar.zst; tar -c box | zstd -q > repository/foreign.tar.zst"
    )
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == [good])
    let names = listing.unreadable.map { ($0.path as NSString).lastPathComponent }
    #expect(names == ["cut.tar.zst", "empty.tar.zst", "foreign.tar.zst", "half.tar.zst", "text.tar.zst"])
    #expect(listing.unreadable.allSatisfy { !$0.reason.isEmpty })
    #expect(try Repository(lab.repository).find("box@latest") == good)
  }
}
