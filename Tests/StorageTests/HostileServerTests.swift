import DrydockErrors
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Storage

@Suite("Remote places: servers that misbehave")
struct HostileServerTests {
  private func with(
    _ bucket: String, attempts: Int = 3, _ body: (any ServerPlace, RunningCommand) throws -> Void
  ) throws {
    let (place, server) = try RemoteServers.hostile(bucket: bucket)
    try withExtendedLifetime(server) {
      try body(
        place.store(bucket == "old-uploads" ? "p" : "") { options in
          options.attempts = attempts
          options.noProgressLimit = 2
        }, server)
    }
  }

  private func requests(_ server: RunningCommand) -> [Substring] {
    server.output.split(separator: "\n").filter { $0.hasPrefix("request") }
  }

  static let file = PlaceFile("x", size: 100, modified: 0, version: "e")

  @Test(
    "A listing that is wrong, endless or unsafe is refused",
    arguments: [
      ("parent-name", "has an unsafe name: ../x"), ("nested-name", "has an unsafe name: a/b"),
      ("escape-name", "has an unsafe name: a?b"), ("negative-size", "has an invalid entry"),
      ("huge-size", "has an invalid entry"), ("bomb", "is not an S3 document"),
      ("not-xml", "is not an S3 document"),
      ("html", "is a html, not a ListBucketResult"), ("deep", "is not an S3 document"),
      ("loop", "listing does not end"), ("endless", "has more than 8388608 bytes"),
      ("error-body", "200 AccessDenied"), ("redirect", "the server answered 307"),
      ("denied", "403 SignatureDoesNotMatch"),
    ])
  func listing(_ bucket: String, _ message: String) throws {
    try with(bucket) { store, server throws in
      let error = expectError(nil, message) { try store.files("") }
      #expect(error?.path == "s3://\(bucket)")
      // Trying again does not help, and redirects are not followed.
      #expect(requests(server).count == (bucket == "loop" ? 2 : 1))
      #expect(!server.output.contains("stolen"))
    }
  }

  @Test(
    "A range that is not what was asked for is refused, and nothing is written beyond the buffer",
    arguments: [
      ("endless", "more bytes than it was asked for", 1), ("longer", "more bytes than it was asked for", 1),
      ("shorter", "3 attempts", 3), ("short-length", "3 attempts", 3), ("other-range", "another range", 1),
      ("whole", "ignores the range", 1), ("endless-error", "has more than 262144 bytes", 1),
    ])
  func range(_ bucket: String, _ message: String, _ count: Int) throws {
    try with(bucket) { store, server throws in
      var buffer = [UInt8](repeating: 7, count: 40)
      expectError(nil, message) {
        try buffer.withUnsafeMutableBytes {
          try store.read(Self.file, at: 10, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<1]))
        }
      }
      #expect(buffer[1...].allSatisfy { $0 == 7 })
      #expect(requests(server).count == count)
    }
  }

  @Test("A server that is overloaded is asked again, not before it wants to be")
  func busy() throws {
    try with("busy") { store, server throws in
      #expect(try store.files("") == [])
      #expect(requests(server).count == 3)
    }
    try with("always-503", attempts: 4) { store, server throws in
      let error = expectError(.io, "503 SlowDown; check the network") { try store.bytes(Self.file) }
      #expect(error?.path == "s3://always-503/x")
      #expect(error?.message.hasPrefix("cannot be read (GET, 4 attempts in ") == true, "\(error as Any)")
      #expect(requests(server).count == 4)
    }
  }

  @Test("A server that says nothing is given up")
  func silent() throws {
    try with("silent", attempts: 2) { store, _ throws in
      expectError(nil, "2 attempts in ", "the server sent nothing for 2 s") { try store.files("") }
    }
  }

  @Test("Nothing listens at the address")
  func nothingListens() throws {
    var (place, server) = try RemoteServers.hostile(bucket: "gone")
    try server.end()
    let store = try place.store { $0.attempts = 2 }
    expectError(nil, "cannot be listed (GET, 2 attempts") { try store.files("") }
    place.url = "sftp://127.0.0.1:\(place.port)/x"
    place.environment = try RemoteServers.sftp().environment
    let sftp = try place.store { $0.attempts = 2 }
    expectError(nil, "cannot be listed (list, 2 attempts") { try sftp.files("") }
  }

  @Test("An upload whose reply was lost is recognized")
  func lostReply() throws {
    try with("lost") { store, _ throws in
      #expect(try store.uploadAll("x", [1, 2, 3])?.size == 3)
      #expect(try store.uploadAll("x", [4, 5, 6]) == nil)
    }
  }

  @Test("Without conditional writes, an upload looks first")
  func noConditions() throws {
    try with("no-conditions") { store, server throws in
      #expect(try store.uploadAll("x", [1, 2, 3])?.size == 3)
      #expect(try store.uploadAll("x", [4, 5, 6]) == nil)
      #expect(try store.uploadAll("large", random(9 << 20, seed: 1))?.size == 9 << 20)
      // Refused once, then not sent again.
      #expect(requests(server).filter { $0.contains("PUT /no-conditions/x") }.count == 2)
    }
  }

  @Test("An error in the reply with status 200 that completes an upload is an error")
  func lateError() throws {
    try with("late-error", attempts: 5) { store, _ throws in
      #expect(try store.uploadAll("x", random(9 << 20, seed: 1))?.size == 9 << 20)
    }
    try with("late-denial") { store, server throws in
      let upload = try store.upload("x", from: source(random(9 << 20, seed: 1)))
      expectError(nil, "200 AccessDenied") { _ = try upload.publish(size: 9 << 20) }
      upload.cancel()
      #expect(requests(server).last?.hasPrefix("request DELETE /late-denial/x?uploadId=") == true)
    }
    // Another document is no error: the file itself shows that it is there.
    try with("other-result") { store, server throws in
      #expect(try store.uploadAll("x", random(9 << 20, seed: 1))?.size == 9 << 20)
      #expect(requests(server).filter { $0.contains("POST /other-result/x?uploadId=") }.count == 1)
    }
  }

  @Test("Of several uploads at the same moment, one gets the name", arguments: [100, 9 << 20])
  func race(_ size: Int) throws {
    try with("good") { store, _ throws in
      let winners = Mutex(0)
      DispatchQueue.concurrentPerform(iterations: 4) { number in
        do {
          let file = try store.uploadAll("x", random(size, seed: UInt64(number)))
          if file != nil { winners.withLock { $0 += 1 } }
        } catch {
          Issue.record(error)
        }
      }
      #expect(winners.withLock { $0 } == 1)
    }
  }

  @Test("A certificate of an unknown authority is refused, unless AWS_CA_BUNDLE has it")
  func certificates() throws {
    let directory = try TemporaryDirectory()
    let file = directory("certificate")
    var (place, server) = try RemoteServers.hostile(bucket: "good", certificate: file)
    let store = try place.store()
    expectError(nil, "(GET): the server's certificate is refused: ", "; set AWS_CA_BUNDLE to the file") {
      try store.files("")
    }
    #expect(requests(server) == [])
    place.environment["AWS_CA_BUNDLE"] = file
    let other = try place.store()
    #expect(try other.files("") == [])
    #expect(try other.uploadAll("x", random(9 << 20, seed: 1))?.size == 9 << 20)
    server.closeInput()
  }

  @Test("Multipart uploads of killed processes are ended after a day")
  func oldUploads() throws {
    try with("old-uploads") { store, server throws in
      try store.createIfNeeded()
      #expect(
        requests(server).filter { $0.contains("DELETE") } == [
          "request DELETE /old-uploads/p/old?uploadId=old"
        ])
    }
  }

  @Test("A place, a small file and a lock take no more requests than they need")
  func economy() throws {
    try with("good") { store, server throws in
      try store.createIfNeeded()
      try store.put("x", [1])
      do { try LockedPlace(store, exclusive: false, timeout: 0).requireLocked() }
      // Uploads that somebody left are cancelled, too.
      let own = requests(server).filter { !$0.contains("uploadId=") }
      let methods = own.map { $0.split(separator: " ")[1] }
      #expect(methods == ["GET", "PUT", "PUT", "GET", "DELETE"], "\(own)")
    }
  }

  @Test("Credentials are in no error and in no process's arguments")
  func canaries() throws {
    var texts: [String] = []
    for bucket in ["denied", "always-503", "redirect", "parent-name", "not-xml"] {
      try with(bucket, attempts: 2) { store, _ throws in
        for body in [
          { _ = try store.files("") }, { try store.put("x", [1]) }, { _ = try store.bytes(Self.file) },
          { _ = try store.uploadAll("x", random(9 << 20, seed: 1)) }, { try store.remove("x") },
        ] {
          do {
            try body()
          } catch {
            texts.append("\(error) \(String(reflecting: error))")
          }
        }
        texts.append(try String(contentsOfFile: "/proc/self/cmdline", encoding: .utf8))
      }
    }
    #expect(texts.count > 20)
    #expect(
      texts.filter { $0.contains("canary") || $0.contains("Signature=") || $0.contains("uploadId") } == [])
  }
}
