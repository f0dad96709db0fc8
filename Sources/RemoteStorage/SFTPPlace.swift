import CLibCurl
import DrydockErrors
import Foundation
import Synchronization

/// A directory of an SFTP server, and how to log in there.
struct SFTPPlace: Sendable {
  let url: String
  private let host: String
  private let port: Int?
  private let user: String
  /// Absolute, or relative to the home directory; without a slash at its end.
  private let path: String
  private let isInHome: Bool

  init(_ url: String, _ options: RemoteOptions) throws {
    let rest = url.dropFirst("sftp://".count)
    let authority = rest.prefix { $0 != "/" }
    let names = authority.split(separator: "@", omittingEmptySubsequences: false)
    // Never in a message: it may contain a password.
    guard names.count <= 2, names.count == 1 || !names[0].contains(":") else {
      throw DrydockError(
        .usage, "a URL with a password is refused; use a key: load it into ssh-agent, or set DRYDOCK_SSH_KEY")
    }
    let server = names.last ?? ""
    let invalid = DrydockError(
      .usage, "not an SFTP place; use sftp://[USER@]HOST[:PORT]/PATH", path: RemoteName.printable(url))
    (host, port) = try Self.hostAndPort(server, invalid)
    user = names.count == 2 ? String(names[0]) : options.variable("LOGNAME") ?? NSUserName()
    guard !user.isEmpty, user.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f }) else {
      throw invalid
    }

    var components = rest.dropFirst(authority.count).split(separator: "/", omittingEmptySubsequences: false)
    guard components.count > 1 else { throw invalid }
    components.removeFirst()
    if components.last == "" { components.removeLast() }
    isInHome = components.first == "~"
    if isInHome { components.removeFirst() }
    try RemoteName.refuseDots(components, in: url)
    guard components.allSatisfy({ RemoteName.isComponent($0) }) else { throw invalid }
    path = (isInHome ? "" : "/") + components.joined(separator: "/")
    self.url =
      "sftp://" + (names.count == 2 ? "\(user)@" : "") + server + (isInHome ? "/~/" : "") + path
  }

  private static func hostAndPort(_ server: Substring, _ invalid: DrydockError) throws -> (String, Int?) {
    // [::1]:22
    let bracket = server.lastIndex(of: "]")
    let colon = server[(bracket ?? server.startIndex)...].firstIndex(of: ":")
    let host = server[..<(colon ?? server.endIndex)]
    let name = bracket == nil ? host : host.dropFirst().dropLast()
    guard !name.isEmpty, bracket == nil || host.hasPrefix("["),
      name.utf8.allSatisfy({ RemoteName.isPlain($0) || (bracket != nil && $0 == UInt8(ascii: ":")) })
    else { throw invalid }
    guard let colon else { return (String(host), nil) }
    guard let port = Int(server[server.index(after: colon)...]), (1...65535).contains(port) else {
      throw invalid
    }
    return (String(host), port)
  }

  /// The URL of a file, or with `""` or a trailing slash of a directory, for libcurl.
  func location(_ name: String) -> String {
    let full = path.isEmpty || path == "/" ? "\(path)\(name)" : "\(path)/\(name)"
    return "sftp://\(host)\(port.map { ":\($0)" } ?? "")\(isInHome ? "/~/" : "")"
      + PercentEncoding.encode(full, keeping: true)
  }

  /// The path of a file, or with `""` of the directory itself, quoted for one of libcurl's commands.
  func argument(_ name: String) -> String {
    var full = path
    if !name.isEmpty { full += path.isEmpty || path == "/" ? name : "/\(name)" }
    if full.isEmpty { full = "." }
    return "\"\(full.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
  }

  /// What libcurl needs for each request: the key that the server accepted last, and known_hosts.
  func settings(_ options: RemoteOptions, _ login: SSHLogin) -> CurlSettings {
    CurlSettings(
      protocols: "sftp", isHTTP: false, noProgressLimit: options.noProgressLimit, deadline: options.deadline,
      rate: options.rateLimit.map { RateLimit(bytesPerSecond: $0) }
    ) { [user] handle in
      handle.set(CURLOPT_USERNAME, user)
      // Without one libcurl asks for it, and a path of an empty name would make it look in the working directory.
      handle.set(CURLOPT_SSH_KNOWNHOSTS, login.knownHosts.path)
      // Other accounts of the server read nothing.
      handle.set(CURLOPT_NEW_FILE_PERMS, 0o600)
      handle.set(CURLOPT_NEW_DIRECTORY_PERMS, 0o700)
      switch login.identity {
      case .agent: handle.set(CURLOPT_SSH_AUTH_TYPES, Int(CURLSSH_AUTH_AGENT))
      case .file(let path):
        handle.set(CURLOPT_SSH_AUTH_TYPES, Int(CURLSSH_AUTH_PUBLICKEY))
        handle.set(CURLOPT_SSH_PRIVATE_KEYFILE, path)
      }
    }
  }
}

/// The keys that can be offered to a server, tried one after the other, and the servers' keys that are known.
final class SSHLogin: Sendable {
  enum Identity: Sendable {
    case agent
    case file(String)
  }

  let knownHosts: KnownHosts
  private let identities: [Identity]
  private let state = Mutex(State())

  private struct State {
    var current = 0
    /// Whether the server has accepted the current identity.
    var isAccepted = false
    /// How often all identities were refused.
    var rounds = 0
  }

  private static let roundLimit = 3

  init(_ options: RemoteOptions) throws {
    let home = (options.variable("HOME") ?? NSHomeDirectory()) + "/.ssh/"
    knownHosts = try KnownHosts(options.variable("DRYDOCK_SSH_KNOWN_HOSTS") ?? home + "known_hosts")
    if let key = options.variable("DRYDOCK_SSH_KEY") {
      guard access(key, R_OK) == 0 else {
        throw DrydockError(
          .badConfiguration, "the key of DRYDOCK_SSH_KEY cannot be read; set it to the file of a private key",
          path: key)
      }
      guard Self.isPrivateKey(key) else {
        throw DrydockError(
          .badConfiguration,
          "the file of DRYDOCK_SSH_KEY is not a private key; set it to one in PEM or OpenSSH's form, such as "
            + "~/.ssh/id_ed25519, not to the `.pub` file", path: key)
      }
      identities = [.file(key)]
      return
    }
    let files = ["id_ed25519", "id_ecdsa", "id_rsa"].map { home + $0 }.filter { access($0, R_OK) == 0 }
    identities = (options.variable("SSH_AUTH_SOCK") == nil ? [] : [.agent]) + files.map { .file($0) }
    guard !identities.isEmpty else {
      throw DrydockError(
        .usage, "no SSH key was found; load one into ssh-agent, or set DRYDOCK_SSH_KEY to its file")
    }
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

  /// The identity that is offered, by its position.
  var number: Int { state.withLock { $0.current } }

  var identity: Identity { identities[number] }

  /// What to do after a refusal.
  enum Refusal {
    /// Offer the next identity.
    case next
    /// Try again: a connection that breaks during the login looks the same as a refusal.
    case again
    case end
  }

  func isAccepted() {
    state.withLock { $0.isAccepted = true }
  }

  func isRefused(_ number: Int) -> Refusal {
    state.withLock { state in
      if state.isAccepted { return .again }
      if state.current != number { return .next }
      if number + 1 < identities.count {
        state.current += 1
        return .next
      }
      state.rounds += 1
      guard state.rounds < Self.roundLimit else { return .end }
      state.current = 0
      return .again
    }
  }
}
