import CLibCurl
import DrydockErrors
import Foundation
import Synchronization

/// The keys that can be offered to a server, tried one after the other, and the servers' keys that are known.
final class SSHLogin: Sendable {
  /// A key's file; nil for those in ssh-agent.
  private let keys: [String?]
  /// The open file of the known servers, which is closed with this object.
  private let knownHosts: Int32
  private let state = Mutex(State())

  private struct State {
    /// The key that is offered.
    var current = 0
    /// Whether the server has accepted it.
    var isAccepted = false
    /// How often all keys were refused.
    var rounds = 0
  }

  private static let roundLimit = 3

  init(_ options: RemoteOptions) throws {
    let home = (options.variable("HOME") ?? NSHomeDirectory()) + "/.ssh/"
    keys = try Self.keys(options, home)
    knownHosts = try Self.knownHosts(options.variable("DRYDOCK_SSH_KNOWN_HOSTS") ?? home + "known_hosts")
  }

  deinit { close(knownHosts) }

  private static func keys(_ options: RemoteOptions, _ home: String) throws -> [String?] {
    if let key = options.variable("DRYDOCK_SSH_KEY") {
      guard access(key, R_OK) == 0 else {
        throw DrydockError(
          .badConfiguration, "the key of DRYDOCK_SSH_KEY cannot be read; set it to the file of a private key",
          path: key)
      }
      guard isPrivateKey(key) else {
        throw DrydockError(
          .badConfiguration,
          "the file of DRYDOCK_SSH_KEY is not a private key; set it to one in PEM or OpenSSH's form, such as "
            + "~/.ssh/id_ed25519, not to the `.pub` file", path: key)
      }
      return [key]
    }
    let files = ["id_ed25519", "id_ecdsa", "id_rsa"].map { home + $0 }.filter { access($0, R_OK) == 0 }
    let keys = (options.variable("SSH_AUTH_SOCK") == nil ? [] : [nil]) + files
    guard !keys.isEmpty else {
      throw DrydockError(
        .usage, "no SSH key was found; load one into ssh-agent, or set DRYDOCK_SSH_KEY to its file")
    }
    return keys
  }

  /// Whether a file looks like a private key; libssh2 reports a refusal for any other, as for a key that the server does not know.
  private static func isPrivateKey(_ path: String) -> Bool {
    var status = stat()
    // A pipe would wait for who writes into it.
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      let file = FileHandle(forReadingAtPath: path)
    else { return false }
    defer { try? file.close() }
    let start = (try? file.read(upToCount: 64 << 10)).flatMap { $0 } ?? Data()
    let text = String(decoding: start, as: UTF8.self)
    return text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----")
  }

  /// Sets the key that is offered, and those of servers.
  func apply(_ handle: CurlHandle) {
    // Without one libcurl asks for it, and a path of an empty name would make it look in the working directory.
    handle.set(CURLOPT_SSH_KNOWNHOSTS, "/dev/fd/\(knownHosts)")
    guard let file = keys[state.withLock { $0.current }] else {
      return handle.set(CURLOPT_SSH_AUTH_TYPES, Int(CURLSSH_AUTH_AGENT))
    }
    handle.set(CURLOPT_SSH_AUTH_TYPES, Int(CURLSSH_AUTH_PUBLICKEY))
    handle.set(CURLOPT_SSH_PRIVATE_KEYFILE, file)
  }

  /// Sends a request with each of the keys until the server accepts one.
  func offering<Reply>(_ request: () throws -> Reply) throws -> Reply {
    while true {
      let offered = state.withLock { $0.current }
      do {
        let reply = try request()
        state.withLock { $0.isAccepted = true }
        return reply
      } catch var failure as RemoteFailure where failure.refusesLogin {
        let isNext = state.withLock { state in
          if state.isAccepted { return false }
          if state.current != offered { return true }
          if offered + 1 < keys.count {
            state.current += 1
            return true
          }
          state.rounds += 1
          if state.rounds < Self.roundLimit { state.current = 0 }
          return false
        }
        if isNext { continue }
        // A connection that breaks during the login looks the same as a refusal.
        failure.isTransient = state.withLock { $0.isAccepted || $0.rounds < Self.roundLimit }
        throw failure
      }
    }
  }

  /// A copy of the keys of servers that the user knows, in the form that libcurl needs; a file that does not exist knows none.
  ///
  /// libcurl asks the server for a key of the type that its first matching line has, and libssh2 stops at the first line that
  /// it does not understand; old versions do not verify RSA keys of present servers. So the lines are sorted: Ed25519, ECDSA,
  /// RSA, and those with a marker are left out.
  private static func knownHosts(_ file: String) throws -> Int32 {
    let text = FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let bytes = Array(sorted(text).utf8)
    var template = Array("\(NSTemporaryDirectory())/drydock-known-hosts-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else {
      throw DrydockError(.io, "a temporary file cannot be made", path: NSTemporaryDirectory())
    }
    unlink(template)
    guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0, write(descriptor, bytes, bytes.count) == bytes.count
    else {
      close(descriptor)
      throw DrydockError(.io, "a temporary file cannot be written", path: NSTemporaryDirectory())
    }
    return descriptor
  }

  private static func sorted(_ text: String) -> String {
    let lines = text.split(whereSeparator: \.isNewline).map { $0.split { $0 == " " || $0 == "\t" } }
    let revoked = Set(lines.filter { $0.first == "@revoked" && $0.count >= 4 }.map { $0[3] })
    let usable = lines.filter { $0.count >= 3 && !revoked.contains($0[2]) }
    let types = [
      "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa",
    ]
    return types.flatMap { type in
      usable.filter { $0[1] == type && !$0[0].hasPrefix("@") && !$0[0].hasPrefix("#") }
        .map { $0.prefix(3).joined(separator: " ") + "\n" }
    }.joined()
  }
}
