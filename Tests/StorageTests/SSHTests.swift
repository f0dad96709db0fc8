import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import Storage

@Suite("SFTP: keys, known servers, and what killed uploads leave", .serialized)
struct SSHTests {
  private func base(_ place: RemotePlace) throws -> String {
    let key = try #require(place.environment["DRYDOCK_SSH_KEY"])
    return (key as NSString).deletingLastPathComponent
  }

  private func withKnownHosts(_ text: String, _ body: (any ServerPlace) throws -> Void) throws {
    let directory = try TemporaryDirectory()
    var place = try RemoteServers.sftp()
    try text.replacing("PORT", with: "\(place.port)").write(
      toFile: directory("known_hosts"), atomically: true, encoding: .utf8)
    place.environment["DRYDOCK_SSH_KNOWN_HOSTS"] = directory("known_hosts")
    try body(place.store())
  }

  @Test("An unknown server is refused, and nothing is added to known_hosts")
  func unknownServer() throws {
    try withKnownHosts("") { store throws in
      let error = expectError(.permission) { try store.files("") }
      #expect(
        error?.message
          == "cannot be listed (list): the server's key is not in known_hosts; connect once with ssh and compare the "
          + "fingerprint, or set DRYDOCK_SSH_KNOWN_HOSTS")
    }
    var place = try RemoteServers.sftp()
    place.environment["DRYDOCK_SSH_KNOWN_HOSTS"] = "/nonexistent"
    let store = try place.store()
    #expect(throws: DrydockError.self) { try store.files("") }
    #expect(!FileManager.default.fileExists(atPath: "/nonexistent"))
  }

  @Test("A server whose key has changed, or was revoked, is refused")
  func changedServer() throws {
    let base = try base(RemoteServers.sftp())
    let other = try String(contentsOfFile: "\(base)/other_key.pub", encoding: .utf8)
    try withKnownHosts("[127.0.0.1]:PORT \(other)") { store throws in
      expectError(.permission, "the server's key differs from the one in known_hosts") { try store.files("") }
    }
    // Of a kind that the server does not have: libcurl has no code for that.
    let command = ["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", "\(base)/rsa-\(getpid())"]
    try #require(Command.run(Tools.system("ssh-keygen"), command).succeeded)
    let rsa = try String(contentsOfFile: "\(base)/rsa-\(getpid()).pub", encoding: .utf8)
    try withKnownHosts("[127.0.0.1]:PORT \(rsa)") { store throws in
      for request in [
        { _ = try store.files("") }, { try store.createIfNeeded() }, { _ = try store.file("x") },
      ] {
        expectError(.permission, "no key of the kind that known_hosts has for it") { try request() }
      }
    }
    let key = try String(contentsOfFile: "\(base)/host_key.pub", encoding: .utf8)
    try withKnownHosts("[127.0.0.1]:PORT \(key)\n@revoked * \(key)") { store throws in
      expectError(nil, "is not in known_hosts") { try store.files("") }
    }
  }

  @Test("The server's key is found beside other lines, keys of other types first, and hashed names")
  func mixedKnownHosts() throws {
    let base = try base(RemoteServers.sftp())
    let key = try String(contentsOfFile: "\(base)/host_key.pub", encoding: .utf8)
    let other = try String(contentsOfFile: "\(base)/other_key.pub", encoding: .utf8)
    let text = """
      # a comment
      @cert-authority *.example.com \(other)
      nonsense
      [127.0.0.1]:PORT ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDJ

      example.com \(other)
      [127.0.0.1]:PORT \(key)
      """
    try withKnownHosts(text) { store throws in #expect(try store.files("") == []) }
    let directory = try TemporaryDirectory()
    var place = try RemoteServers.sftp()
    try "[127.0.0.1]:\(place.port) \(key)".write(
      toFile: directory("hashed"), atomically: true, encoding: .utf8)
    try Command.succeed(Tools.system("ssh-keygen"), ["-q", "-H", "-f", directory("hashed")])
    #expect(try String(contentsOfFile: directory("hashed"), encoding: .utf8).hasPrefix("|1|"))
    place.environment["DRYDOCK_SSH_KNOWN_HOSTS"] = directory("hashed")
    #expect(try place.store().files("") == [])
  }

  @Test("A refused key is reported; with several in ~/.ssh, each is tried")
  func keys() throws {
    var place = try RemoteServers.sftp()
    let base = try base(place)
    place.environment["DRYDOCK_SSH_KEY"] = "\(base)/other_key"
    var store = try place.store()
    var error = #expect(throws: DrydockError.self) { try store.files("") }
    #expect(error?.code == .permission)
    #expect(error?.message.contains("the server refuses every key; load an Ed25519 or ECDSA key") == true)

    for other in ["\(base)/key.pub", "/dev/zero", base] {
      place.environment["DRYDOCK_SSH_KEY"] = other
      error = #expect(throws: DrydockError.self) {
        _ = try server(place.url, RemoteOptions(variables: place.environment))
      }
      #expect(error?.message.contains("is not a private key") == true, "\(error as Any)")
    }
    place.environment["DRYDOCK_SSH_KEY"] = "\(base)/missing"
    error = #expect(throws: DrydockError.self) {
      _ = try server(place.url, RemoteOptions(variables: place.environment))
    }
    #expect(error?.code == .badConfiguration)

    let home = try TemporaryDirectory()
    place.environment["DRYDOCK_SSH_KEY"] = nil
    place.environment["HOME"] = home.path
    error = #expect(throws: DrydockError.self) {
      _ = try server(place.url, RemoteOptions(variables: place.environment))
    }
    #expect(error?.message.contains("no SSH key was found") == true)
    let files = FileManager.default
    try files.createDirectory(atPath: home(".ssh"), withIntermediateDirectories: false)
    try files.copyItem(atPath: "\(base)/other_key", toPath: home(".ssh/id_ed25519"))
    try files.copyItem(atPath: "\(base)/key", toPath: home(".ssh/id_ecdsa"))
    try files.copyItem(atPath: "\(base)/known_hosts", toPath: home(".ssh/known_hosts"))
    place.environment["DRYDOCK_SSH_KNOWN_HOSTS"] = nil
    store = try place.store()
    #expect(try store.files("") == [])
    #expect(try store.putFile("x", [1]).size == 1)
  }

  @Test("A key in ssh-agent is used")
  func agent() throws {
    let place = try RemoteServers.sftp()
    let base = try base(place)
    let directory = try TemporaryDirectory()
    let agent = try Command.spawn(Tools.system("ssh-agent"), ["-D", "-a", directory("socket")])
    try agent.waitForLine("SSH_AUTH_SOCK")
    try Command.succeed(
      Tools.system("ssh-add"), ["-q", "\(base)/key"], environment: ["SSH_AUTH_SOCK": directory("socket")])
    // libssh2 reads the variable of its process, and a process with threads cannot change its environment.
    var environment: [String: String?] = place.environment.mapValues { $0 }
    environment["DRYDOCK_SSH_KEY"] = .some(nil)
    environment["HOME"] = directory.path
    for socket in [nil, directory("socket")] {
      environment["SSH_AUTH_SOCK"] = .some(socket)
      let listed = try Command.run(Tools.drydock(), ["list", "-r", place.url], environment: environment)
      #expect(listed.succeeded == (socket != nil), "\(listed)")
    }
    agent.kill()
  }

  @Test("What killed uploads have left is removed after a day; a replacement that was interrupted is read")
  func leftovers() throws {
    let place = try RemoteServers.sftp()
    let directory = try #require(place.directory)
    func write(_ name: String, _ text: String, age: Double) throws {
      let path = "\(directory)/\(name)"
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: path)
    }
    try write(".drydock-writing-old", "x", age: 90_000)
    try write(".drydock-writing-new", "x", age: 80_000)
    try write("other", "x", age: 90_000)
    try write(".drydock-replaced-state", "before", age: 0)
    let store = try place.store()
    #expect(try store.files("").map(\.name) == ["other", "state"])
    let state = try #require(try store.file("state"))
    #expect(try store.bytes(state) == Array("before".utf8))
    #expect(try store.uploadAll("y", [1]) != nil)
    let left = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    #expect(left == [".drydock-replaced-state", ".drydock-writing-new", "other", "y"])
    let replaced = try store.putFile("state", Array("after".utf8))
    #expect(try store.bytes(replaced) == Array("after".utf8))
    try store.remove("state")
    #expect(try store.files("").map(\.name) == ["other", "y"])
    #expect(
      try !FileManager.default.contentsOfDirectory(atPath: directory).contains(".drydock-replaced-state"))
  }

  @Test("A server that can never take a file is not asked for minutes, and the reason is named")
  func refusingServers() throws {
    let (readOnly, server) = try RemoteServers.refusingSFTP("read-only")
    var error = #expect(throws: DrydockError.self) { try readOnly.store().put("x", [1]) }
    #expect(
      error?.message
        == "cannot be written (write): the server denies access; check the user and the permissions")
    let (full, other) = try RemoteServers.refusingSFTP("full")
    let store = try full.store()
    for write in [
      { try store.put("x", random(100_000, seed: 1)) },
      { _ = try store.uploadAll("x", random(1_000_000, seed: 1)) },
    ] {
      error = #expect(throws: DrydockError.self) { try write() }
      #expect(error?.message.contains("as on a full disk") == true, "\(error as Any)")
      #expect(error?.message.contains("10 attempts") == false, "\(error as Any)")
    }
    withExtendedLifetime((server, other)) {}
  }

  @Test(
    "A server that never answered is not waited for long", arguments: ["sftp://127.0.0.1:1/x", "s3://bucket"])
  func unreachable(_ url: String) throws {
    var variables = try RemoteServers.sftp().environment
    variables.merge([
      "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s",
    ]) { $1 }
    var options = RemoteOptions(variables: variables)
    options.firstPause = 0.01
    expectError(nil, "5 attempts", "check the address, the network and whether the server runs") {
      try server(url, options).files("")
    }
  }
}
