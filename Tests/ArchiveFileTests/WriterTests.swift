import Cryptography
import DrydockErrors
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import ArchiveFile

/// The writer's rules, and what it does when things go wrong.
@Suite struct WriterTests {
  private func withWriter<T>(_ body: (ArchiveWriter) throws -> T) throws -> T {
    let directory = try TemporaryDirectory()
    let file = try emptyFile(directory("a"))
    return try file.closeAfter { try body(try ArchiveWriter(to: file, threads: 2)) }
  }

  private func finish(_ writer: ArchiveWriter) throws -> UInt64 {
    try writer.finish(manifest: MemberLocation(offset: 0, length: 0, sha256: try SHA256.hash([])))
  }

  @Test func wrongSizesAreRefused() throws {
    try withWriter { (writer: ArchiveWriter) throws in
      try writer.beginMember(.file("short", size: 10, modified: 0))
      try [UInt8](repeating: 1, count: 4).withUnsafeBytes { try writer.write($0) }
      expectError(.invalidUse) { try writer.endMember() }
      expectError(.invalidUse) {
        try [UInt8](repeating: 1, count: 7).withUnsafeBytes { try writer.write($0) }
      }
      #expect(try writer.endMember(padding: true) == 6)
      try writer.addMember(.file("next", size: 1, modified: 0), contents: [1])
      expectError(.invalidUse) { try writer.addMember(.file("x", size: 1, modified: 0), contents: []) }
      _ = try finish(writer)
    }
  }

  @Test func paddedContentIsZeros() throws {
    let directory = try TemporaryDirectory()
    let file = try emptyFile(directory("a"))
    try file.closeAfter {
      let writer = try ArchiveWriter(to: file)
      try writer.beginMember(.file("short", size: 9_000_000, modified: 0))
      try [1, 2].withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
        try writer.write(UnsafeRawBufferPointer(rebasing: bytes[..<1]))
      }
      #expect(try writer.endMember(padding: true) == 8_999_999)
      _ = try finish(writer)
      #expect(
        try readAll(try ArchiveReader(ArchiveSource(file)))[0].sample.content == [1]
          + [UInt8](repeating: 0, count: 8_999_999))
    }
  }

  @Test func callsOutOfOrderAreRefused() throws {
    try withWriter { (writer: ArchiveWriter) throws in
      expectError(.invalidUse) { try writer.endMember() }
      expectError(.invalidUse) { try writer.write(UnsafeRawBufferPointer(start: nil, count: 0)) }
      try writer.beginMember(.file("a", size: 0, modified: 0))
      expectError(.invalidUse) { try writer.beginMember(.file("b", size: 0, modified: 0)) }
      expectError(.invalidUse) { try finish(writer) }
      try writer.endMember()
      let outside = MemberLocation(offset: writer.tarPosition, length: 1, sha256: try SHA256.hash([]))
      expectError(.invalidUse) { try writer.finish(manifest: outside) }
      _ = try finish(writer)
      expectError(.invalidUse) { try finish(writer) }
      expectError(.invalidUse) { try writer.beginMember(.file("b", size: 0, modified: 0)) }
    }
  }

  @Test func badMembersAreRefused() throws {
    try withWriter { (writer: ArchiveWriter) throws in
      expectError(.unsafeName) { try writer.addMember(.file("../a", size: 0, modified: 0)) }
      expectError(.invalidUse) { try writer.addMember(.file("a", size: .max, modified: 0), contents: []) }
      expectError(.limit) { try writer.beginMember(.file("a", size: .max, modified: 0)) }
      var member = ArchiveMember.file("a", size: 0, modified: 0)
      member.metadata.attributes = [.init(name: "user.a", value: [UInt8](repeating: 0, count: 1_100_000))]
      expectError(.limit) { try writer.addMember(member) }
      member.metadata.attributes = [.init(name: "", value: [])]
      expectError(.unsafeName) { try writer.addMember(member) }
      member.metadata.attributes = []
      member.kind = .symbolicLink(target: [])
      expectError(.unsafeName) { try writer.addMember(member) }
      member.kind = .hardLink(target: Array("/etc/passwd".utf8))
      expectError(.unsafeName) { try writer.addMember(member) }
    }
  }

  @Test func aLargeHeaderComesBack() throws {
    let directory = try TemporaryDirectory()
    var member = ArchiveMember.file("a", size: 0, modified: 0)
    member.metadata.attributes = (0..<14).map {
      .init(name: "user.\($0 + 10)", value: [UInt8](repeating: UInt8($0), count: 65_536))
    }
    try writeArchive([Sample(member)], to: directory("a"))
    #expect(try readAll(directory("a"))[0].sample.member == member)
  }

  @Test func anAbandonedWriterLeavesNothingRunning() throws {
    var random = SeededRandom(seed: 10)
    let content = random.bytes(30 << 20)
    // In the middle of a member, between members, without any member.
    for amount in [content.count, 3 << 20, 0] {
      try withWriter { (writer: ArchiveWriter) throws in
        guard amount > 0 else { return }
        try writer.beginMember(.file("a", size: UInt64(content.count), modified: 0))
        try content.withUnsafeBytes { try writer.write(UnsafeRawBufferPointer(rebasing: $0[..<amount])) }
        if amount == content.count { try writer.endMember() }
      }
    }
  }

  @Test func aFullDiskShowsAtTheNextCall() throws {
    // Every write to this device fails with "no space left".
    let file = try FileDescriptor.open("/dev/full", .writeOnly)
    try file.closeAfter {
      var random = SeededRandom(seed: 11)
      let content = random.bytes(1 << 20)
      let writer = try ArchiveWriter(to: file, threads: 2)
      var failure: DrydockError?
      do {
        try writer.beginMember(.file("a", size: 100 << 20, modified: 0))
        for _ in 0..<100 { try content.withUnsafeBytes { try writer.write($0) } }
      } catch let error as DrydockError {
        failure = error
      }
      #expect(failure?.code == .io)
      #expect(failure?.cause as? Errno == .noSpace)
      expectError(.invalidUse) { try finish(writer) }

      let small = try ArchiveWriter(to: file)
      try small.addMember(.file("a", size: 1, modified: 0), contents: [1])
      expectError(.io) { try finish(small) }
    }
  }
}
