import DrydockErrors
import Foundation

/// The keys of servers that the user knows, in the form that libcurl needs.
///
/// libcurl asks the server for a key of the type that its first matching line has, and libssh2 stops at the first line that
/// it does not understand; old versions do not verify RSA keys of present servers. So the lines are sorted: Ed25519, ECDSA,
/// RSA, and those with a marker are left out.
final class KnownHosts: Sendable {
  private let descriptor: Int32

  /// A path that libcurl can open as long as this object lives.
  var path: String { "/dev/fd/\(descriptor)" }

  /// Reads the file; one that does not exist knows no server.
  init(_ file: String) throws {
    let text = FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let sorted = Self.sorted(text)
    var template = Array("\(NSTemporaryDirectory())/drydock-known-hosts-XXXXXX".utf8CString)
    descriptor = mkstemp(&template)
    guard descriptor >= 0 else {
      throw DrydockError(.io, "a temporary file cannot be made", path: NSTemporaryDirectory())
    }
    unlink(template)
    let bytes = Array(sorted.utf8)
    guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0, write(descriptor, bytes, bytes.count) == bytes.count
    else {
      close(descriptor)
      throw DrydockError(.io, "a temporary file cannot be written", path: NSTemporaryDirectory())
    }
  }

  deinit { close(descriptor) }

  static func sorted(_ text: String) -> String {
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
