import Foundation
import TestSupport
import Testing

@testable import BackupRepository

@Suite(.everyPlace) struct RepositoryTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private func repository() throws -> [String: String] {
    var paths: [String: String] = [:]
    for (instance, time) in [
      ("red", "2026-11-12T08:00:00Z"), ("red", "2026-11-14T08:00:00Z"), ("red", "2026-11-14T23:59:59Z"),
      ("blue", "2026-11-13T12:00:00Z"), ("a@b", "2026-11-10T00:00:00Z"), ("a/b", "2026-11-10T00:00:01Z"),
    ] {
      let name = "\(instance)-\(time)".replacing("/", with: "-") + ".tar.zst"
      paths["\(instance) \(time.prefix(13))"] = try add(name, instance: instance, time: time)
    }
    return paths
  }

  @discardableResult
  private func add(
    _ name: String, id: String? = nil, app: String = "com.example.lab", instance: String = "box",
    time: String = "2026-11-20T10:15:00Z"
  ) throws -> String {
    let archive = try HandmadeArchive(
      lab, name: name, id: id.map { Archive.ID(unchecked: $0) }, app: app, instance: instance, time: time)
    return try archive.write()
  }

  @Test(.atEachPlace) func archivesAreFoundByWhatAPersonSays() throws {
    let paths = try repository()
    let listing = try Repository(lab.repository + "//").list()
    #expect(listing.items.map(\.time) == listing.items.map(\.time).sorted())
    #expect(listing.items.count == 6)
    for (name, found) in [
      ("red@latest", "red 2026-11-14T23"), ("red@2026-11-14", "red 2026-11-14T23"),
      ("red@2026-11-14T12:00:00Z", "red 2026-11-14T08"), ("red@2026-11-14T12:00", "red 2026-11-14T08"),
      ("red@2026-11-14T08:00:00Z", "red 2026-11-14T08"), ("red@20261114T080000Z", "red 2026-11-14T08"),
      ("red@2026-11-14T07:59:59Z", "red 2026-11-12T08"), ("red@2026-11-14T08Z", "red 2026-11-14T08"),
      ("red@2026-11-13", "red 2026-11-12T08"), ("red@2026-11", "red 2026-11-14T23"),
      ("red@2026", "red 2026-11-14T23"), ("blue@2030-01-01", "blue 2026-11-13T12"),
      ("com.example.lab/red@2026-11-13", "red 2026-11-12T08"), ("a@b@latest", "a@b 2026-11-10T00"),
      ("a/b@latest", "a/b 2026-11-10T00"), ("com.example.lab/a/b@latest", "a/b 2026-11-10T00"),
    ] { #expect(try listing.find(name) == paths[found], "\(name)") }
    for item in listing.items {
      #expect(try listing.find(item.id) == item.path)
      #expect(try listing.find(item.id.prefix(8).uppercased()) == item.path)
      #expect(try listing.find(item.fileName) == item.path)
    }
  }

  @Test func whatDoesNotFitIsRefused() throws {
    _ = try repository()
    let repository = Repository(lab.repository)
    for name in ["latest", "2026-11-30", "com.example.lab@latest"] {
      let when = name.split(separator: "@").last ?? ""
      expectError(.ambiguousArchive, "red@\(when)", "blue@\(when)", "a@b@\(when)") {
        try repository.find(name)
      }
    }
    for (name, words) in [
      ("red@2026-11-11", "the oldest is of 2026-11-12T08:00:00Z"), ("green@latest", "a/b@latest"),
      ("RED@latest", "red@latest"), ("zz", "no archive matches zz"), ("", "no archive"), ("ab1", "4 digits"),
      // Times: EncryptedRepositoryTests.aTimeMayEndAtAnyPlace.
      ("@", "no valid time"), ("red@", "no valid time"), ("red@yesterday", "INSTANCE@2026-11-14T12:00:00Z"),
      ("red@2026-11-14T12:00+01:00", "no valid time"), ("a\u{1B}[2J@now", "a\\u{1b}[2J@now"),
    ] { expectError(.notFound, words) { try repository.find(name) } }
    expectError(.notFound) { try Repository(lab.directory("none")).list() }
    try lab.write("file", "x")
    expectError(.notFound) { try Repository(lab.root + "/file").list() }
    #expect(try Repository(lab.root).list().items.isEmpty)
    expectError(nil, "no readable archives") { try Repository(lab.root).find("latest") }
  }

  @Test func anOlderArchiveIsNotTakenForTheNewest() throws {
    let taken = try (0..<3).map { number in
      try lab.incremental {
        let time = Date(timeIntervalSince1970: 1_790_000_000 + Double(number) * 3600)
        ($0.isFull, $0.seams.now) = (true, { time })
      }.path
    }
    try lab.store(lastName(taken[2]), Array(try lab.stored(taken[2]).dropLast(30)))
    let listing = try Repository(lab.repository).list()
    let id = try #require(listing.items.last?.header?.archive.short)
    expectError(.truncated, lastName(taken[2]), "give its id: \(id)") { try listing.find("latest") }
    #expect(try listing.find(id) == taken[1] && listing.find("box@2026-09-21T14:20") == taken[0])
  }

  @Test func oneInstanceNameInTwoApps() throws {
    let one = try add("1.tar.zst", app: "org.one", instance: "main")
    let two = try add("2.tar.zst", app: "org.two", instance: "main")
    let other = try add("3.tar.zst", app: "org.two", instance: "other")
    let listing = try Repository(lab.repository).list()
    expectError(.ambiguousArchive, ": org.one/main@2026-12, org.two/main@2026-12") {
      try listing.find("main@2026-12")
    }
    #expect(try listing.find("org.one/main@2026-12") == one)
    #expect(try listing.find("org.two/main@latest") == two)
    #expect(try listing.find("other@latest") == other && listing.find("org.one@latest") == one)
    expectError(nil, ": org.one/main@latest, org.two/main@latest, other@latest") {
      try listing.find("latest")
    }
  }

  @Test func prefixOfSeveralIsAmbiguous() throws {
    let ids = [
      "abcdef0123456789" + String(repeating: "0", count: 16),
      "abcdef0123" + String(repeating: "1", count: 22),
    ]
    let paths = try ids.enumerated().map { try add("\($0).tar.zst", id: $1, instance: "box\($0)") }
    let listing = try Repository(lab.repository).list()
    // What a list shows can be typed.
    #expect(listing.idLength() == 11)
    let time = "2026-11-20T10:15:00Z"
    expectError(.ambiguousArchive, "abcdef01234 (\(time), box0)", "abcdef01231 (\(time), box1)") {
      try listing.find("ABCDEF01")
    }
    #expect(try listing.find("abcdef01234") == paths[0] && listing.find("Abcdef01231") == paths[1])
  }

  @Test func copiesOfOneArchiveAreTheSame() throws {
    try lab.write("file", "content")
    let report = try lab.snapshot()
    // The header names it, not its file.
    try lab.changeRepository("cd repository; mv * 'renamed by hand.tar.zst'; cp -p renamed* copy.tar.zst")
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.fileName) == ["copy.tar.zst", "renamed by hand.tar.zst"])
    #expect(listing.items.allSatisfy { $0.header == report.header } && listing.idLength() == 8)
    let copy = lab.repository + "/copy.tar.zst"
    #expect(try listing.find(report.archive.short) == copy)
    #expect(["copy.tar.zst", "renamed by hand.tar.zst"].contains(try lastName(listing.find("box@latest"))))
    // Another file with the same content is not taken for it.
    let other = try HandmadeArchive(lab, name: "other.tar.zst", id: report.archive)
    _ = try other.write()
    expectError(.ambiguousArchive, "copy.tar.zst", "other.tar.zst", "renamed by hand.tar.zst") {
      try Repository(lab.repository).find(report.archive.short)
    }
  }

  @Test(.local("sets the times of the files")) func theLaterOneOfASecondIsTheLatest() throws {
    let paths = try ["z", "m", "a", "q"].map { try add($0 + ".tar.zst") }
    try lab.shell(
      "cd repository; n=1; for f in z m a q; do touch -d \"2026-11-20 10:15:00.00000000$n\" $f.tar.zst; n=$((n+1)); done"
    )
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == paths)
    #expect(try listing.find("latest") == paths[3])
  }

  @Test func unreadableFilesAreListed() throws {
    let good = try lab.snapshot().path
    let bytes = try lab.stored(good)
    try lab.store("empty.tar.zst", [])
    try lab.store("text.tar.zst", Array("no archive".utf8))
    try lab.store("cut.tar.zst", Array(bytes.dropLast(30)))
    try lab.store("half.tar.zst", Array(bytes.prefix(bytes.count / 2)))
    try lab.store("sealed.tar.zst.age", Array("age-encryption.org/v1\n-> X25519 abc\n".utf8))
    for name in ["README.txt", ".hidden.tar.zst", ".tar.zst"] { try lab.store(name, Array("x".utf8)) }
    try add("time.tar.zst", time: "zzzz")
    try lab.changeRepository("tar -c box | zstd -q > repository/foreign.tar.zst")
    // A store of objects has nothing else; for an SFTP server, see RemoteRepositoryTests.
    let isLocal = lab.place == nil
    if isLocal {
      try RawFiles.write(bytes, to: Array((lab.repository + "/").utf8) + [0xFF] + Array(".tar.zst".utf8))
      try lab.changeRepository(
        "cd repository; mkdir directory.tar.zst other; mkfifo pipe.tar.zst; ln -s nowhere link.tar.zst")
    }
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == [good])
    let expected = [
      "cut.tar.zst", "directory.tar.zst", "empty.tar.zst", "foreign.tar.zst", "half.tar.zst", "link.tar.zst",
      "pipe.tar.zst", "sealed.tar.zst.age", "text.tar.zst", "time.tar.zst", "\\xff.tar.zst",
    ]
    let local: Set = ["directory.tar.zst", "link.tar.zst", "pipe.tar.zst", "\\xff.tar.zst"]
    #expect(
      listing.unreadable.map { lastName($0.path) } == expected.filter { isLocal || !local.contains($0) })
    #expect(listing.unreadable.allSatisfy { !$0.reason.isEmpty })
    #expect(listing.unreadable.first { $0.path.hasSuffix(".age") }?.reason.contains("age header") == true)
    #expect(try listing.find("box@latest") == good)
    // By its name it is found all the same, so that whoever reads it says what is wrong.
    #expect(try lastName(listing.find("half.tar.zst")) == "half.tar.zst")
  }

  @Test func whatAnArchiveSaysOfItselfDoesNothingToATerminal() throws {
    let path = try add("1.tar.zst", instance: "a\u{1B}[2Jb")
    try add("2.tar.zst", instance: "c")
    try lab.write("file", "content")
    expectError(nil, #"a\u{1b}[2Jb"#) { try Repository(lab.repository).find("latest") }
    expectError(nil, #"a\u{1b}[2Jb"#) {
      try Restore.target(lab.root, for: Archive(path: path), configuration: lab.configuration)
    }
    let listed = try lab.drydock(["list", "-r", lab.repository])
    #expect(listed.succeeded && listed.output.contains(#"a\u{1b}[2Jb"#), "\(listed)")
  }

  @Test func onlyHeadersAreRead() throws {
    try lab.write("file", SeededRandom.noise(9 << 20))
    let path = try lab.snapshot().path
    var bytes = try lab.stored(path)
    // Whatever is between the first frame and the tables at the end could be anything.
    let middle = 1024..<(bytes.count - 4096)
    bytes.replaceSubrange(middle, with: [UInt8](repeating: 0x5A, count: middle.count))
    try lab.store(path, bytes)
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == [path] && listing.unreadable.isEmpty)
    expectError(.damaged) { try Verification.run(Archive(path: path), data: true) }
  }

  @Test(.local("it looks into the directory")) func namesThatCollide() throws {
    try lab.write("file", "content")
    let id = try Archive.ID.new()
    let mark = ArchiveLabel.mark("an app/", "..é")
    var label = ArchiveLabel(
      app: "an app/", instance: "..é", time: "2026-11-20T10:15:00Z", id: id.description)
    let names = label.fileNames(isEncrypted: false)
    #expect(names[0] == "an-app--1218fe20_20261120T101500Z_\(id.short)\(mark).tar.zst")
    (label.app, label.instance) = (String(repeating: "a", count: 300), String(repeating: "é", count: 300))
    #expect(label.fileNames(isEncrypted: false).allSatisfy { $0.utf8.count + 4 <= 255 })
    let destination = try ArchiveDestination(
      .repository(lab.repository), outside: lab.container(), lockTimeout: 0)
    func publish(_ byte: UInt8) throws -> String {
      let scratch = try destination.makeScratch()
      try scratch.directory.create("archive", [byte])
      let upload = try destination.upload("archive", in: scratch.directory, as: names)
      return try destination.publish(upload, size: 1, nil)
    }
    // A name that was free, and is taken before the archive gets it.
    let scratch = try destination.makeScratch()
    try scratch.directory.create("archive", [9])
    let late = try destination.upload("archive", in: scratch.directory, as: names)
    let published = try (0..<3).map { try publish(UInt8($0)) }
    #expect(published.map(lastName) == names)
    for (number, path) in published.enumerated() {
      #expect(Array(try RawFiles.read(Array(path.utf8))) == [UInt8(number)])
    }
    expectError(.overlap) { try publish(9) }
    expectError(.overlap) { try destination.publish(late, size: 1, nil) }
    let visible = try RawFiles.names(in: Array(lab.repository.utf8)).filter { $0.first != UInt8(ascii: ".") }
    #expect(visible.count == 3)
  }
}
