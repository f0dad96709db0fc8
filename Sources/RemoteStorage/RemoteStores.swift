import DrydockErrors
import Foundation

/// Opens remote places by their URL.
package enum RemoteStores {
  /// Whether a path is a URL of a remote place: `s3://` or `sftp://`.
  package static func isRemote(_ path: String) -> Bool {
    path.hasPrefix("s3://") || path.hasPrefix("sftp://")
  }

  /// Throws `usage` for a URL of another kind, which would otherwise be the path of a directory.
  package static func refuseOtherURL(_ path: String) throws {
    guard !isRemote(path), let scheme = path.wholeMatch(of: /([A-Za-z][A-Za-z0-9+.-]*):\/\/.*/)?.1 else {
      return
    }
    throw DrydockError(
      .usage,
      "repositories at \(scheme):// are not supported; use s3://BUCKET/PREFIX, sftp://HOST/PATH or a directory",
      path: RemoteName.printable(path))
  }

  /// The place that a URL names. No request is sent.
  ///
  /// - Throws: `DrydockError`: `usage` for an invalid URL or missing credentials, `badConfiguration` for an invalid variable.
  package static func open(_ url: String, _ options: RemoteOptions) throws -> any RemoteStore {
    if url.hasPrefix("s3://") { return try S3Store(url, options) }
    if url.hasPrefix("sftp://") { return try SFTPStore(url, options) }
    throw DrydockError(.usage, "not a remote place; use s3://BUCKET/PREFIX or sftp://HOST/PATH", path: url)
  }
}

/// The names of files at a remote place: one component, or two for a file in a folder.
enum RemoteName {
  /// - Throws: `DrydockError` with `badPath`, if a name would leave the place or cannot be sent.
  static func check(_ name: String) throws {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, name.utf8.count <= 1000, parts.allSatisfy({ isComponent($0) }) else {
      throw DrydockError(.badPath, "not a name of a remote file: \(printable(name))")
    }
  }

  /// Whether a byte needs no encoding, in the name of a host or a bucket either.
  static func isPlain(_ byte: UInt8) -> Bool { byte.isLetter || byte.isDigit || "-._".utf8.contains(byte) }

  static func isComponent(_ part: some StringProtocol) -> Bool {
    !part.isEmpty && part != "." && part != ".." && !part.contains("/")
      && !part.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7f || $0 == "\u{fffd}" }
  }

  /// Names the reason why a path with `..` is refused: what it leads to is known only to the server.
  static func refuseDots(_ components: [Substring], in url: String) throws {
    guard let dots = components.first(where: { $0 == "." || $0 == ".." }) else { return }
    throw DrydockError(
      .usage,
      "a remote path with `\(dots)` is refused, because a link may lead elsewhere; write the path without it",
      path: printable(url))
  }

  /// A name for a message: control characters could change what a terminal shows.
  static func printable(_ text: some StringProtocol) -> String {
    let short = text.unicodeScalars.prefix(200).map { $0.properties.generalCategory == .control ? "?" : $0 }
    return String(String.UnicodeScalarView(short))
  }
}

/// Percent encoding as Signature 4 wants it: only unreserved characters are sent as they are.
enum PercentEncoding {
  static func encode(_ text: String, keeping slash: Bool = false) -> String {
    var encoded: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case _ where RemoteName.isPlain(byte), UInt8(ascii: "~"): encoded.append(byte)
      case UInt8(ascii: "/") where slash: encoded.append(byte)
      default:
        encoded.append(UInt8(ascii: "%"))
        encoded.append(contentsOf: [byte >> 4, byte & 15].map { Array("0123456789ABCDEF".utf8)[Int($0)] })
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// The text, with `+` for a space as S3 lists names; nil for an invalid escape or invalid UTF-8.
  static func decode(_ text: String) -> String? {
    text.replacing("+", with: " ").removingPercentEncoding
  }
}
