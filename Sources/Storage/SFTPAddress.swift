import DrydockErrors
import FileSystem
import Foundation

/// A directory of an SFTP server, and how to log in there.
struct SFTPAddress: Sendable {
  let url: String
  private let host: String
  private let port: Int?
  let user: String
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

  /// The URL of a file, or with a slash at its end of the directory itself, for libcurl.
  func location(_ name: ContainerPath) -> String {
    let full = path.isEmpty || path == "/" ? path + name.text : "\(path)/\(name.text)"
    return "sftp://\(host)\(port.map { ":\($0)" } ?? "")\(isInHome ? "/~/" : "")"
      + RemoteName.encode(full, keeping: true)
  }

  /// The path of a file, or of the directory itself, quoted for one of libcurl's commands.
  func argument(_ name: ContainerPath) -> String {
    var full = path
    if !name.isRoot { full += path.isEmpty || path == "/" ? name.text : "/\(name.text)" }
    if full.isEmpty { full = "." }
    return "\"\(full.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
  }
}
