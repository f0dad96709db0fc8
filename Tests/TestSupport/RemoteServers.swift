import Foundation
import Synchronization

/// A fresh, empty place on a real server that runs on loopback, and how to reach it.
public struct RemotePlace: Sendable {
  /// `s3://BUCKET` or `sftp://HOST:PORT/PATH`.
  public var url: String
  /// The variables that Drydock needs: credentials and endpoint, or key and known_hosts.
  public var environment: [String: String]
  /// The port of the server.
  public var port: Int
  /// The directory that an SFTP server serves; nil for S3.
  public var directory: String?
  /// Whether connections break or stall on purpose.
  public var isDisturbed = false
}

/// Servers for tests: OpenStack Swift with S3's interface, moto, which imitates S3, and OpenSSH. Each is started when a test first
/// asks for it, and ends with the test process, also when that is killed: the end of its standard input ends it.
public enum RemoteServers {
  private static let scripts = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Servers").path
  private static let swift = Mutex<Server?>(nil)
  private static let ssh = Mutex<Server?>(nil)
  private static let moto = Mutex<Server?>(nil)
  private static let count = Mutex(0)

  private struct Server: Sendable {
    var command: RunningCommand
    var values: [String: String]
  }

  /// An empty bucket of an OpenStack Swift.
  public static func s3() throws -> RemotePlace {
    try swiftBucket(of: running(swift, "swift_server.py"))
  }

  private static func swiftBucket(of server: Server) throws -> RemotePlace {
    try bucket(of: server, key: "drydock:tests", secret: "testing")
  }

  /// An empty bucket of moto, which knows conditional writes.
  public static func motoS3() throws -> RemotePlace {
    try bucket(of: running(moto, "moto_server.py"), key: "drydock", secret: "testing")
  }

  /// An empty directory of an OpenSSH server, by its absolute path.
  public static func sftp() throws -> RemotePlace { try directory(of: running(ssh, "ssh_server.py")) }

  /// An empty place on a server of its own, an OpenSSH server or an OpenStack Swift. SIGUSR1 kills the process to which clients
  /// speak, with all connections, and starts it again a moment later.
  public static func restarting(sftp: Bool) throws -> (RemotePlace, RunningCommand) {
    let server = try start(sftp ? "ssh_server.py" : "swift_server.py", [])
    return (try sftp ? directory(of: server) : swiftBucket(of: server), server.command)
  }

  /// An OpenSSH server that does not take every file: `read-only`, `full` beyond 64 KiB, or with a `small-disk` of 1 MiB.
  public static func refusingSFTP(_ kind: String) throws -> (RemotePlace, RunningCommand) {
    let server = try start("ssh_server.py", [kind])
    var place = try directory(of: server)
    // A directory that was made here is not on a disk that only the server sees.
    if kind == "small-disk" {
      place.url = String(place.url[..<(place.url.lastIndex(of: "/") ?? place.url.endIndex)])
    }
    return (place, server.command)
  }

  private static func directory(of server: Server) throws -> RemotePlace {
    guard let base = server.values["directory"], let port = server.values["port"].flatMap({ Int($0) }) else {
      throw SystemFailure("the SSH server did not say where it is: \(server.values)")
    }
    let directory = "\(base)/files/\(number())"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    return RemotePlace(
      url: "sftp://127.0.0.1:\(port)\(directory)",
      environment: [
        "DRYDOCK_SSH_KEY": "\(base)/key", "DRYDOCK_SSH_KNOWN_HOSTS": "\(base)/known_hosts",
        "LOGNAME": NSUserName(),
      ],
      port: port, directory: directory)
  }

  /// Starts a proxy in front of a place's server that fails as the seed and the percentage say.
  public static func faulty(_ place: RemotePlace, seed: UInt64, percent: Int) throws -> (
    RemotePlace, RunningCommand
  ) {
    let kind = place.directory == nil ? "http" : "ssh"
    let server = try start("fault_proxy.py", ["\(place.port)", kind, "\(seed)", "\(percent)"])
    guard let port = server.values["port"].flatMap({ Int($0) }) else {
      throw SystemFailure("the proxy did not say its port")
    }
    var changed = place
    (changed.port, changed.isDisturbed) = (port, true)
    if let known = place.environment["DRYDOCK_SSH_KNOWN_HOSTS"], let directory = place.directory {
      changed.url = "sftp://127.0.0.1:\(port)\(directory)"
      let text = try String(contentsOfFile: known, encoding: .utf8)
      let file = "\(known)-\(port)"
      try text.replacing("]:\(place.port) ", with: "]:\(port) ").write(
        toFile: file, atomically: true, encoding: .utf8)
      changed.environment["DRYDOCK_SSH_KNOWN_HOSTS"] = file
    } else {
      changed.environment["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:\(port)"
    }
    return (changed, server.command)
  }

  /// Starts a proxy in front of an S3 server whose listings are late by a number of listings.
  public static func late(_ place: RemotePlace, listings: Int) throws -> (RemotePlace, RunningCommand) {
    let server = try start("late_proxy.py", ["\(place.port)", "\(listings)"])
    guard let port = server.values["port"].flatMap({ Int($0) }) else {
      throw SystemFailure("the proxy did not say its port")
    }
    var changed = place
    changed.port = port
    changed.environment["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:\(port)"
    return (changed, server.command)
  }

  /// An S3 server that misbehaves as the bucket's name says. Its output has a line for each request.
  ///
  /// - Parameter certificate: a file for the server's certificate, which makes it speak TLS.
  public static func hostile(bucket: String, certificate: String? = nil) throws -> (
    RemotePlace, RunningCommand
  ) {
    let server = try start("hostile_server.py", certificate.map { [$0] } ?? [])
    guard let endpoint = server.values["endpoint"], let port = URL(string: endpoint)?.port else {
      throw SystemFailure("the server did not say its endpoint: \(server.values)")
    }
    let environment = [
      "AWS_ACCESS_KEY_ID": "canary-key", "AWS_SECRET_ACCESS_KEY": "canary-secret",
      "AWS_SESSION_TOKEN": "canary-token", "AWS_ENDPOINT_URL_S3": endpoint,
    ]
    return (
      RemotePlace(url: "s3://\(bucket)", environment: environment, port: port, directory: nil), server.command
    )
  }

  // MARK: Starting

  private static func number() -> Int {
    count.withLock {
      $0 += 1
      return $0
    }
  }

  private static func running(_ server: borrowing Mutex<Server?>, _ script: String) throws -> Server {
    try server.withLock {
      if let running = $0, running.command.isRunning { return running }
      let started = try start(script, [])
      $0 = started
      return started
    }
  }

  /// Debian's Python has Debian's modules; another one in `PATH` may not.
  private static func start(_ script: String, _ arguments: [String]) throws -> Server {
    let command = try Command.spawn("/usr/bin/python3", ["-B", "-u", "\(scripts)/\(script)"] + arguments)
    // The first time, moto is installed.
    try command.waitForLine("ready", limit: 600)
    let lines = command.output.split(separator: "\n").map {
      $0.split(separator: " ", maxSplits: 1).map(String.init)
    }
    return Server(
      command: command, values: Dictionary(lines.filter { $0.count == 2 }.map { ($0[0], $0[1]) }) { $1 })
  }

  private static func bucket(of server: Server, key: String, secret: String) throws -> RemotePlace {
    guard let endpoint = server.values["endpoint"], let port = URL(string: endpoint)?.port else {
      throw SystemFailure("the server did not say its endpoint: \(server.values)")
    }
    let bucket = "tests-\(number())"
    let user = key.replacing(":", with: "%3A")
    let made = try Command.run(
      Tools.system("curl"),
      [
        "--silent", "--show-error", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--request", "PUT",
        "--header", "x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        endpoint.replacing("http://", with: "http://\(user):\(secret)@") + "/\(bucket)",
      ])
    guard made.succeeded else { throw SystemFailure("a bucket cannot be made: \(made)") }
    return RemotePlace(
      url: "s3://\(bucket)",
      environment: [
        "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_REGION": "us-east-1",
      ],
      port: port, directory: nil)
  }
}
