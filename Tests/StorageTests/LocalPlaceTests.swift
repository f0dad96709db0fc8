import DrydockErrors
import FileSystem
import TestSupport
import Testing

@testable import Storage

/// What a directory does as other places do; ``ContractTests`` has the same for servers. Locks and uploads are in
/// RepositoryLockTests and PublicationTests of BackupRepository.
@Suite("A directory is a place")
struct LocalPlaceTests {
  @Test("Small files are written, found, read and removed; folders are listed")
  func files() throws {
    let directory = try TemporaryDirectory()
    let place = try Places.open(directory.path)
    #expect(try place.list().names.isEmpty && place.list("locks").names.isEmpty)
    let made = try place.putFile("x", [1, 2, 3])
    #expect(made.size == 3 && made.isFile && made.timeError == 0)
    #expect(try place.file("x") == made)
    let listing = try place.list()
    #expect(listing.names == [ContainerPath("x").bytes])
    #expect(try listing.file("x")?.isSame(as: made) == true)
    #expect(try place.contents("x", limit: 3) == [1, 2, 3])
    #expect(throws: DrydockError.self) { try place.contents("x", limit: 2) }
    #expect(try place.open(made, usesCache: true).beginning(2) == [1, 2])
    let replaced = try place.putFile("x", [4, 5, 6])
    #expect(!replaced.isSame(as: made))
    try place.remove("x")
    try place.remove("x")
    #expect(try place.file("x") == nil && listing.file("x") == nil)
  }

  @Test("With a cache and a lock around it, it does what it does alone")
  func wrapped() throws {
    let directory = try TemporaryDirectory()
    try Directory(directory.path).createDirectories("locks", mode: 0o700)
    let cached = CachedPlace(base: try Places.open(directory.path), cache: nil)
    let place = try LockedPlace(cached, exclusive: false, timeout: 0)
    let made = try place.putFile("x", [1])
    let source = try place.open(made, usesCache: true)
    #expect(try !source.isRemote && source.beginning(1) == [1])
    let scratch = try place.makeScratch()
    try scratch.directory.create("new", [2, 3])
    #expect(try place.replace("x", with: "new", in: scratch.directory))
    #expect(try place.contents("x", limit: 2) == [2, 3])
  }
}
