import AgeEncryption
import ArchiveFile
import DrydockErrors
import FileSystem
import Synchronization
import TestSupport
import Testing

@testable import BackupRepository
@testable import Storage

/// What a server is asked for: each request takes as long as the way there and back.
@Suite struct RemoteRequestTests {
  /// A directory in the place of a server, which records its requests.
  private final class RecordingPlace: PlaceWrapper {
    let base: any Place
    let path: String
    let isRemote = true
    /// Of the times in a listing.
    private let timeError: Int64
    private let requests = Mutex<[String]>([])
    /// The name of a file that cannot be read.
    let broken = Mutex<String?>(nil)

    init(_ directory: String, as url: String, timeError: Int64 = 0) throws {
      (base, path, self.timeError) = (try Places.open(directory), url, timeError)
    }

    private func record(_ request: String) { requests.withLock { $0.append(request) } }

    /// The requests since the last call.
    func recorded() -> [String] {
      requests.withLock { requests in
        defer { requests = [] }
        return requests
      }
    }

    func list(_ folder: ContainerPath) throws -> PlaceListing {
      record("list")
      let listing = try base.list(folder)
      return PlaceListing(names: listing.names) { [timeError] name in
        var file = try listing.file(name)
        file?.timeError = timeError
        return file
      }
    }

    func file(_ name: ContainerPath) throws -> PlaceFile? {
      record("look at \(name)")
      return try base.file(name)
    }

    func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
      let source = try base.open(file, usesCache: usesCache)
      return ArchiveSource(size: file.size, requests: 16) { [self] target, offset in
        let end = offset + UInt64(target.count)
        record("read \(file.name) \(offset)-\(end)")
        if broken.withLock({ $0 == "\(file.name)" }) { throw DrydockError(.io, "no connection") }
        try source.readExactly(target, at: offset)
      }
    }
  }

  @Test func `A restore lists a repository once, and opens each archive with two requests`() throws {
    let lab = try Lab()
    let noise = SeededRandom.noise(2 << 20)
    try lab.write("large", noise)
    try lab.write("note", "one")
    let full = lastName(try lab.incremental { _ in }.path)
    try lab.write("note", "two")
    let next = lastName(try lab.incremental { _ in }.path)
    let url = "s3://recorded/\(lastName(lab.directory("")))"
    let place = try RecordingPlace(lab.repository, as: url)
    Places.use(CachedPlace(base: place, cache: nil), for: url)
    defer { Places.use(nil, for: url) }

    let listing = try Repository(url).list()
    #expect(listing.items.map { lastName($0.path) } == [full, next])
    _ = place.recorded()
    let archive = try Archive(
      path: listing.find("latest"), among: listing, keys: AgeKeys(), limit: .standard, trusted: nil)
    // The manifest of each is in what comes with its tables.
    let opening = place.recorded()
    #expect(opening.count == 3 && opening.first?.hasPrefix("read \(next) 0-") == true, "\(opening)")
    #expect(opening.count { $0.hasPrefix("read \(full) ") } == 2, "\(opening)")
    _ = try Restore.run(archive, lab.target(archive, lab.directory("back")))
    #expect(try lab.read("note", in: lab.directory("back")) == "two")
    #expect(try [UInt8](RawFiles.read(Array(lab.directory("back/large").utf8))) == noise)
    // The frame with the large file, and once more for what follows it.
    let reading = place.recorded()
    #expect(reading.count <= 2 && reading.allSatisfy { $0.hasPrefix("read \(full) ") }, "\(reading)")

    // Of an archive of which everything is read, what follows the last content comes with the contents.
    let whole = try Archive(
      path: "\(url)/\(full)", among: listing, keys: AgeKeys(), limit: .standard, trusted: nil)
    #expect(place.recorded().count == 2)
    _ = try Restore.run(whole, lab.target(whole, lab.directory("whole")))
    #expect(try lab.read("note", in: lab.directory("whole")) == "one")
    #expect(place.recorded().count == 2)
  }

  /// As at an SFTP server: else a file that is replaced while it is read would be taken for a damaged one.
  @Test func `A listing's time that is not exact is not relied on when an archive is read`() throws {
    let lab = try Lab()
    try lab.write("note", "one")
    let name = lastName(try lab.incremental { _ in }.path)
    let url = "s3://recorded/\(lastName(lab.directory("")))"
    let place = try RecordingPlace(lab.repository, as: url, timeError: 60)
    Places.use(CachedPlace(base: place, cache: nil), for: url)
    defer { Places.use(nil, for: url) }
    let listing = try Repository(url).list()
    _ = place.recorded()
    _ = try Archive(
      path: listing.find("latest"), among: listing, keys: AgeKeys(), limit: .standard, trusted: nil)
    #expect(place.recorded().first == "look at \(name)")
  }

  /// Between the listing and the restore.
  @Test func `An archive that took another one's place meanwhile is found`() throws {
    let lab = try Lab()
    try lab.write("note", "one")
    let full = try lab.incremental { _ in }.path
    try lab.write("note", "two")
    try lab.incremental { _ in }
    let url = "s3://recorded/\(lastName(lab.directory("")))"
    let place = try RecordingPlace(lab.repository, as: url)
    Places.use(CachedPlace(base: place, cache: nil), for: url)
    defer { Places.use(nil, for: url) }
    let listing = try Repository(url).list()
    // Without a connection, to search again would take minutes once more.
    place.broken.withLock { $0 = lastName(full) }
    _ = place.recorded()
    let error = #expect(throws: DrydockError.self) {
      try Archive(
        path: listing.find("latest"), among: listing, keys: AgeKeys(), limit: .standard, trusted: nil)
    }
    #expect(error?.code == .io && !place.recorded().contains("list"))
    place.broken.withLock { $0 = nil }

    try lab.shell("mv '\(full)' '\(lab.repository)/renamed.tar.zst'")
    _ = place.recorded()
    let archive = try Archive(
      path: listing.find("latest"), among: listing, keys: AgeKeys(), limit: .standard, trusted: nil)
    #expect(archive.parts.count == 2)
    #expect(place.recorded().count { $0 == "list" } == 1)
  }
}
