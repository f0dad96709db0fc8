import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import Storage

@Suite("Remote places: URLs, names, options")
struct PlaceTests {
  private static let credentials = ["AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"]

  private func s3(_ url: String, _ variables: [String: String] = [:]) throws -> S3Address {
    try S3Address(url, RemoteOptions(variables: Self.credentials.merging(variables) { $1 }))
  }

  @Test("Where AWS's own variables put a bucket")
  func addresses() throws {
    #expect(try s3("s3://bucket/a b/c/").url(key: "x+y") == "https://bucket.s3.us-east-1.amazonaws.com/x%2By")
    #expect(try s3("s3://bucket/a b/c/").url == "s3://bucket/a b/c")
    #expect(try s3("s3://bucket/a b/c").key("n") == "a b/c/n")
    #expect(try s3("s3://bucket").key("n") == "n")
    #expect(
      try s3("s3://my.bucket", ["AWS_DEFAULT_REGION": "eu-central-1"]).url(key: nil)
        == "https://s3.eu-central-1.amazonaws.com/my.bucket/")
    #expect(
      try s3("s3://bucket", ["AWS_REGION": "cn-north-1"]).url(key: nil)
        == "https://bucket.s3.cn-north-1.amazonaws.com.cn/")
    #expect(
      try s3("s3://bucket", ["AWS_ENDPOINT_URL": "http://h:1/", "AWS_REGION": "x"])
        .url(key: "ü~(", query: [("b", "1/ü"), ("a", "")]) == "http://h:1/bucket/%C3%BC~%28?a=&b=1%2F%C3%BC")
    #expect(
      try s3("s3://bucket", ["AWS_ENDPOINT_URL": "http://h", "AWS_ENDPOINT_URL_S3": "https://g"]).url(
        key: "k")
        == "https://g/bucket/k")
  }

  @Test(
    "Invalid URLs and variables are refused, without the password of one",
    arguments: [
      ("s3://", [:]), ("s3:///x", [:]), ("s3://bu cket/x", [:]), ("s3://bucket//x", [:]),
      ("s3://bucket/../x", [:]),
      ("s3://u:secret@bucket/x", [:]), ("sftp://", [:]), ("sftp://host", [:]),
      ("sftp://u:secret@host/x", [:]),
      ("sftp://host:0/x", [:]), ("sftp://host:x/x", [:]), ("sftp://ho st/x", [:]), ("sftp://host/a//b", [:]),
      ("sftp://host/../x", [:]), ("sftp://host/a/..", [:]), ("sftp://a@b@host/x", [:]),
      ("sftp://host?x/y", [:]), ("http://host/x", [:]),
      ("s3://bucket", ["AWS_REGION": "a b"]), ("s3://bucket", ["AWS_ENDPOINT_URL": "ftp://x"]),
      ("s3://bucket", ["AWS_ENDPOINT_URL": "http://u:secret@x"]),
      ("s3://bucket", ["AWS_ACCESS_KEY_ID": "a\nb"]),
    ] as [(String, [String: String])])
  func invalid(_ url: String, _ variables: [String: String]) throws {
    let all = Self.credentials.merging(variables) { $1 }.merging(["DRYDOCK_SSH_KEY": "/dev/null"]) { $1 }
    let error = #expect(throws: DrydockError.self) {
      _ = try Places.connect(url, RemoteOptions(variables: all))
    }
    #expect([.usage, .badConfiguration].contains(error?.code))
    #expect(error?.description.contains("secret") == false)
    let reason =
      url.contains("..")
      ? "a remote path with `..` is refused, because a link may lead elsewhere"
      : variables.values.contains("http://u:secret@x") ? "has a user or a password" : ""
    #expect(reason.isEmpty || error?.message.contains(reason) == true, "\(error as Any)")
  }

  @Test("A URL of another kind is not a directory", arguments: ["S3://bucket/x", "ftp://h/x", "file:///x"])
  func otherURLs(_ url: String) {
    #expect(throws: DrydockError.self) { try Places.refuseOtherURL(url) }
    #expect(throws: Never.self) { try Places.refuseOtherURL("a/" + url) }
  }

  @Test("Missing credentials are named")
  func missingCredentials() {
    let error = #expect(throws: DrydockError.self) {
      _ = try Places.connect("s3://bucket", RemoteOptions(variables: ["AWS_ACCESS_KEY_ID": ""]))
    }
    #expect(
      error?.description
        == "credentials for S3 are missing; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
  }

  @Test("SFTP's URLs and paths, also relative to the home directory")
  func sftpPaths() throws {
    let options = RemoteOptions(variables: ["LOGNAME": "me"])
    let place = try SFTPAddress("sftp://user@host:2222/a b/c\"d/", options)
    #expect(place.url == "sftp://user@host:2222/a b/c\"d")
    #expect(place.location("x y") == "sftp://host:2222/a%20b/c%22d/x%20y")
    #expect(place.argument("x") == #""/a b/c\"d/x""#)
    let home = try SFTPAddress("sftp://[::1]/~/backups", options)
    #expect(home.url == "sftp://[::1]/~/backups")
    #expect(home.location("x") == "sftp://[::1]/~/backups/x")
    #expect(home.argument("x") == "\"backups/x\"")
    #expect(home.argument("") == "\"backups\"")
    #expect(try SFTPAddress("sftp://host/~/", options).argument("") == "\".\"")
    #expect(try SFTPAddress("sftp://host/", options).location("x") == "sftp://host/x")
    #expect(Places.isRemote("s3://x") && Places.isRemote("sftp://x"))
    #expect(!Places.isRemote("/s3://x") && !Places.isRemote("http://x"))
  }

  @Test("A path relative to the home directory works on the server")
  func home() throws {
    let place = try RemoteServers.sftp()
    let directory = try #require(place.directory)
    // However deep the home directory is: `..` is not allowed in a URL, a link is.
    let link = ".drydock-test-\(UInt64.random(in: .min ... .max))"
    let home = NSHomeDirectoryForUser(NSUserName()) ?? NSHomeDirectory()
    try FileManager.default.createSymbolicLink(atPath: "\(home)/\(link)", withDestinationPath: directory)
    defer { unlink("\(home)/\(link)") }
    var relative = place
    relative.url = "sftp://127.0.0.1:\(place.port)/~/\(link)"
    let store = try relative.store()
    try store.createIfNeeded()
    let file = try #require(try store.uploadAll("a b", [1, 2, 3]))
    #expect(try store.bytes(file) == [1, 2, 3])
    #expect(try store.putFile("a b", [4]).size == 1)
    #expect(try place.store().files("").map(\.name) == ["a b"])
    try store.remove("a b")
    #expect(try store.files("") == [])
  }

  @Test("10,000 parts are enough for 1 TiB, and the first ones are small")
  func parts() {
    let sizes = (0..<10_000).map { S3Upload.partSize($0) }
    #expect(sizes.reduce(0, +) >= 1 << 40)
    #expect(sizes[0] == 8 << 20 && sizes.max()! < 5 << 30)
    #expect(sizes == sizes.sorted())
  }

  @Test(
    "Lines of a listing",
    arguments: [
      (
        "-rw-r--r--    1 root     root         1234 Nov 23 13:30 plain", "plain", 1234, "2026-11-23T13:30:00Z"
      ),
      ("-rw-r--r--+   ? domain users my group 5 Dec 31 23:59  a  b ", " a  b ", 5, "2025-12-31T23:59:00Z"),
      (
        "-rw-------    1 1000     1000     10995116277760 Jan  1  2020 x Feb 2 2021 y", "x Feb 2 2021 y",
        10_995_116_277_760, "2020-01-01T00:00:00Z"
      ),
    ])
  func listingLines(_ line: String, _ name: String, _ size: UInt64, _ time: String) throws {
    let now = try #require(RemoteTime.iso("2026-11-23T14:00:00Z")) / 1_000_000_000
    let parsed = try #require(SFTPListingLine(line[...], now: now))
    #expect(parsed.name == name && parsed.size == size && parsed.isRegularFile)
    #expect(parsed.modified == (RemoteTime.iso(time) ?? 0) / 1_000_000_000)
  }

  @Test(
    "Other lines are not understood",
    arguments: [
      "", "total 12", "x", "-rw-r--r-- 1 a b 12 Nov 23", "-rw-r--r-- 1 a b -1 Nov 23 13:30 x",
      "-rw-r--r-- 1 a b 1 Nox 23 13:30 x", "-rw-r--r-- 1 a b 1 Nov 41 13:30 x",
      "-rw-r--r-- 1 a b 1 Nov 23 13:30",
      "-rw-r--r-- 1 a b 99999999999999999999999 Nov 23 13:30 x",
    ])
  func otherLines(_ line: String) {
    #expect(SFTPListingLine(line[...], now: 1_800_000_000) == nil)
  }

  @Test("Times of S3 and HTTP")
  func times() {
    #expect(RemoteTime.iso("1970-01-01T00:00:01.5Z") == 1_500_000_000)
    #expect(RemoteTime.iso("2026-11-23T13:30:00.123Z") == 1_795_440_600_123_000_000)
    #expect(RemoteTime.http("Mon, 23 Nov 2026 13:30:00 GMT") == 1_795_440_600_000_000_000)
    for text in [
      "", "Z", "9999-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-23T13:30:00", "2026-11-23T13:30Z",
      "x",
    ] {
      #expect(RemoteTime.iso(text) == nil)
    }
    for text in ["soon", "Fri, 01 Jan 9999 00:00:00 GMT"] { #expect(RemoteTime.http(text) == nil) }
  }

  @Test("A rate limit is kept by all transfers together", arguments: PlaceKind.allCases)
  func rateLimit(_ kind: PlaceKind) throws {
    let store = try kind.make().store { $0.rateLimit = 200_000 }
    let start = ProcessInfo.processInfo.systemUptime
    let file = try store.putFile("x", random(60_000, seed: 1))
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
      do { #expect(try store.bytes(file).count == 60_000) } catch { Issue.record(error) }
    }
    // 180,000 bytes: the limit is a lower bound, however busy the machine is.
    #expect(ProcessInfo.processInfo.systemUptime - start >= 0.85)
  }
}
