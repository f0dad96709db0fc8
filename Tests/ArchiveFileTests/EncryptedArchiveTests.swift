import AgeEncryption
import Cryptography
import Dispatch
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ArchiveFile

/// An archive in an age file: what goes in comes out, by any way that there is.
@Suite struct EncryptedArchiveTests {
  private let directory: TemporaryDirectory
  private let keys: AgeKeys
  private let target: AgeTarget
  private let identity: AgeIdentity

  init() throws {
    directory = try TemporaryDirectory()
    identity = try AgeIdentity.generate()
    keys = AgeKeys(identities: [identity])
    target = .recipients([identity.recipient])
  }

  private func samples(_ size: Int, seed: UInt64 = 1) -> [Sample] {
    var random = SeededRandom(seed: seed)
    return [
      Sample("text", Array(String(repeating: "all work and no play\n", count: 3000).utf8)),
      Sample("random", random.bytes(size)), Sample("empty", []),
    ]
  }

  @Test(arguments: [1, 4]) func whatGoesInComesOut(_ threads: Int) throws {
    for (number, size) in [0, 1, 60_000, 65_536, 131_072, 5_000_000, 9_000_000].enumerated() {
      let samples = samples(size, seed: UInt64(number))
      let path = directory("a")
      let built = try writeArchive(samples, to: path, threads: threads, encryption: target)
      #expect(built.fileSize == UInt64(built.bytes.count))
      let reader = try ArchiveReader(path: path, keys: keys)
      #expect(reader.fileSize == UInt64(built.bytes.count) && reader.contentSize < reader.fileSize)
      #expect(reader.encryption?.description == "encrypted to 1 recipient (X25519)")
      #expect(try readAll(reader).dropLast().map(\.sample.content) == samples.map(\.content))
      try reader.readManifest { #expect(Array($0) == Array("the manifest".utf8)) }
    }
  }

  @Test func theAgeProgramAndTarOpenIt() throws {
    let built = try writeArchive(samples(900_000), to: directory("a"), encryption: target)
    try store(KeyFile.text(of: identity, created: "now").withBytes { Array($0) }, at: directory("key"))
    let decrypted = try run("age", ["-d", "-i", directory("key"), "-o", directory("plain"), directory("a")])
    #expect(decrypted.succeeded, "\(decrypted.errors)")
    let plain = try ArchiveReader(path: directory("plain"))
    let reader = try ArchiveReader(path: directory("a"), keys: keys)
    #expect(plain.fileSize == reader.contentSize && UInt64(built.bytes.count) == reader.fileSize)
    #expect(try tarStream(plain) == tarStream(reader))
    #expect(try run("tar", ["--zstd", "-tf", directory("plain")]).output.contains("random"))
    // And the other way round: what age encrypts is read.
    let recipient = identity.recipient.description
    let encrypted = try run("age", ["-r", recipient, "-o", directory("b"), directory("plain")])
    #expect(encrypted.succeeded, "\(encrypted.errors)")
    #expect(try tarStream(ArchiveReader(path: directory("b"), keys: keys)) == tarStream(plain))
  }

  /// All other chunks are destroyed: whoever read one of them would say so.
  @Test func onlyTheChunksOfWhatIsWantedAreRead() throws {
    let path = directory("a")
    var random = SeededRandom(seed: 7)
    let wanted = random.bytes(10_000)
    let samples = [
      Sample("before", random.bytes(12 << 20)), Sample("wanted", wanted),
      Sample("after", random.bytes(12 << 20)),
    ]
    let built = try writeArchive(samples, to: path, encryption: target)
    let start = try ArchiveReader(path: path, keys: keys)
    let frames = start.frames.filter {
      $0.tarEnd > built.offsets[1] && $0.tarOffset < built.offsets[1] + 10_000
    }
    var kept: Set<UInt64> = [0]
    let chunk = UInt64(PayloadCipher.chunkLength)
    for frame in frames {
      kept.formUnion(frame.fileOffset / chunk...(frame.fileOffset + UInt64(frame.compressedSize)) / chunk)
    }
    let last = (start.contentSize - 1) / chunk
    kept.formUnion([last, last - 1])
    let header = Int(start.fileSize) - Int(start.contentSize) - 16 * Int(last + 1)
    let file = try FileDescriptor.open(FilePath(path), .readWrite)
    try file.closeAfter {
      for number in 0...last where !kept.contains(number) {
        let place = header + Int(number) * PayloadCipher.sealedChunkLength + 100
        try file.writeAll(toAbsoluteOffset: Int64(place), [built.bytes[place] ^ 1])
      }
    }
    let reader = try ArchiveReader(path: path, keys: keys)
    var read: [UInt8] = []
    try reader.read(offset: built.offsets[1], length: 10_000) { read += $0 }
    #expect(read == wanted)
    try reader.readManifest { _ in }
    #expect(kept.count < Int(last) / 4)
    expectError(.damaged) { try tarStream(reader) }
  }

  @Test func rangesAreReadOnSeveralThreads() throws {
    let path = directory("a")
    var random = SeededRandom(seed: 8)
    let samples = (0..<30).map { Sample("file \($0)", random.bytes(700_000)) }
    let built = try writeArchive(samples, to: path, encryption: target)
    let reader = try ArchiveReader(path: path, keys: keys)
    let source = reader.rangeSource
    let (contents, offsets) = (samples.map(\.content), built.offsets)
    let right = Atomic(0)
    DispatchQueue.concurrentPerform(iterations: 60) { number in
      let (content, offset) = (contents[number % 30], offsets[number % 30])
      var read: [UInt8] = []
      try? source.reader().read(offset: offset, length: UInt64(content.count)) { read += $0 }
      if read == content { right.add(1, ordering: .relaxed) }
    }
    #expect(right.load(ordering: .relaxed) == 60)
    withExtendedLifetime(reader) {}
  }

  @Test func aFullDiskIsNoticed() throws {
    // The other one cannot be written to.
    try store([], at: directory("a"))
    for (path, mode) in [("/dev/full", .writeOnly), (directory("a"), .readOnly)]
      as [(String, FileDescriptor.AccessMode)]
    {
      let file = try FileDescriptor.open(FilePath(path), mode)
      expectError(.io) {
        try file.closeAfter {
          let writer = try ArchiveWriter(to: file, encryption: target)
          _ = try writer.finish(manifest: MemberLocation(offset: 0, length: 0, sha256: SHA256.hash([])))
        }
      }
    }
  }

  @Test func aLockThatNobodyCouldUseIsRefused() throws {
    for target in [
      AgeTarget.recipients([]), .passphrase(SecretBytes([])), .passphrase(SecretBytes([1]), workFactor: 40),
    ] {
      expectError(.invalidUse) { try writeArchive([], to: directory("a"), encryption: target) }
    }
  }

  @Test func aCopyForOthersIsTheSameArchiveUnderAnotherKey() throws {
    let other = try AgeIdentity.generate()
    for encryption in [target, nil] {
      let built = try writeArchive(samples(3_000_000), to: directory("a"), encryption: encryption)
      let reader = try ArchiveReader(path: directory("a"), keys: keys)
      let file = try emptyFile(directory("b"))
      try file.closeAfter {
        let copy = try EncryptedCopy(of: reader, into: file, encryption: .recipients([other.recipient]))
        try copy.verify()
        let copied = try ArchiveReader(path: directory("b"), keys: AgeKeys(identities: [other]))
        #expect(try tarStream(copied) == tarStream(reader))
        #expect(copied.contentSize == reader.contentSize && copied.fileSize == copy.fileSize)
        expectError(.noIdentity) { try ArchiveReader(path: directory("b"), keys: keys) }
        // Under another file key nothing of it is as it was.
        let bytes = try stored(directory("b"))
        #expect(zip(bytes.suffix(100_000), built.bytes.suffix(100_000)).count { $0 == $1 } < 1000)
        // What reads back is compared.
        for place in [10, 170, 230, bytes.count / 2, bytes.count - 1] {
          try file.writeAll(toAbsoluteOffset: Int64(place), [bytes[place] ^ 1])
          #expect(errorCode { try copy.verify() } == .damaged, "\(place)")
          try file.writeAll(toAbsoluteOffset: Int64(place), [bytes[place]])
        }
        try copy.verify()
        try file.resize(to: Int64(bytes.count - 1))
        expectError(.damaged) { try copy.verify() }
      }
    }
  }
}
