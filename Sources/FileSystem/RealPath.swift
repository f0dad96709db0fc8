import DrydockErrors

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The absolute path with all links resolved, as ``realPath(_:)``; nil (and errno) when it does not exist.
///
/// Every symbolic link in the path must belong to this user or to root: another owner could choose which directory a command
/// changes with this user's rights. Linux refuses the same in sticky world-writable directories (`protected_symlinks`); to
/// root, an app's own directory is as dangerous.
///
/// - Throws: ``DrydockError`` with code `permission`.
package func ownRealPath(_ path: String) throws -> String? {
  guard let resolved = realPath(path) else { return nil }
  guard let own = try withLinksChecked(path) else { return nil }
  guard own == resolved else {
    throw DrydockError(
      .inUse, "a link in the path changed while it was followed; run the command again", path: path)
  }
  return resolved
}

/// Follows a path name by name. The path resolved so far has no links, so that `..` removes its last name.
private func withLinksChecked(_ path: String) throws -> String? {
  guard var current = path.hasPrefix("/") ? "/" : realPath(".") else { return nil }
  var names = Array(path.split(separator: "/").reversed())
  while let name = names.popLast() {
    if name == "." { continue }
    if name == ".." {
      current = current.lastIndex(of: "/").map { String(current[..<$0]) } ?? ""
      if current.isEmpty { current = "/" }
      continue
    }
    let next = current == "/" ? "/\(name)" : "\(current)/\(name)"
    var status = stat()
    guard lstat(next, &status) == 0 else { return nil }
    guard status.st_mode & S_IFMT == S_IFLNK else {
      current = next
      continue
    }
    guard let target = linkTarget(next) else { return nil }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw DrydockError(
        .permission,
        "a symbolic link of another user (uid \(status.st_uid)), who can change it; name its target instead: "
          + ContainerPath.printable(Array(target.utf8)), path: next)
    }
    if target.hasPrefix("/") { current = "/" }
    names += target.split(separator: "/").reversed()
  }
  return current
}

private func linkTarget(_ path: String) -> String? {
  var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
  let count = readlink(path, &bytes, bytes.count)
  return count < 0 ? nil : String(decoding: bytes[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// The absolute path with all links resolved; nil (and errno) when it does not exist.
package func realPath(_ path: String) -> String? {
  guard let resolved = realpath(path, nil) else { return nil }
  defer { free(resolved) }
  return String(cString: resolved)
}
