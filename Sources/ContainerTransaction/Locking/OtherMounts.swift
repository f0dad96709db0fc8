import FileSystem
import Foundation

#if os(Linux)
  /// One line of a `mountinfo` (proc(5)).
  private struct Mount {
    var id: UInt64
    /// Such as `254:0`.
    var device: String
    /// The path in the file system that is mounted, and where.
    var root, place: String

    init?(_ line: Substring) {
      let fields = line.split(separator: " ")
      guard fields.count > 4, let id = UInt64(fields[0]) else { return nil }
      (self.id, device) = (id, String(fields[2]))
      (root, place) = (Self.unescaped(fields[3]), Self.unescaped(fields[4]))
    }

    /// Blanks and other odd characters are written as `\040`.
    private static func unescaped(_ field: Substring) -> String {
      guard field.contains("\\") else { return String(field) }
      return String(
        field.replacing(/\\([0-7]{3})/) { match in
          UInt8(match.1, radix: 8).map { String(UnicodeScalar($0)) } ?? String(match.0)
        })
    }

    /// The table of a process; empty where there is none.
    static func all(of process: String) -> [Mount] {
      let bytes = ProcessTable.contents("/proc/\(process)/mountinfo") ?? []
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap(Mount.init)
    }
  }

  extension Directory {
    /// Where else this directory, or one in it, is mounted, for a message: a bind mount, or the volume of another
    /// program's container. A mount is of an inode, so that after an exchange it would go on showing the old tree,
    /// which is removed.
    ///
    /// - Returns: nil when there is none that can be seen: of this process, and of processes in other mount namespaces.
    func otherMount() throws -> String? {
      let (status, own) = (try status(), Mount.all(of: "self"))
      let link = "/proc/self/fd/\(descriptor.rawValue)"
      guard let mount = own.last(where: { $0.id == status.mount }),
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link)
      else { return nil }
      let below = mount.place == "/" ? path : String(path.dropFirst(mount.place.count))
      let root = mount.root == "/" ? below : mount.root + below
      func isThere(_ other: Mount) -> Bool {
        other.device == mount.device && other.id != mount.id
          && (other.root == root || other.root.hasPrefix(root + "/"))
      }
      if let found = own.first(where: isThere) { return found.place }
      var seen = [FollowedStatus.identity("/proc/self/ns/mnt")]
      for process in ProcessTable.identifiers() {
        guard let space = FollowedStatus.identity("/proc/\(process)/ns/mnt"), !seen.contains(space) else {
          continue
        }
        seen.append(space)
        if let found = Mount.all(of: String(process)).first(where: isThere) {
          return "\(found.place) of process \(process)"
        }
      }
      return nil
    }
  }
#else
  extension Directory {
    /// Where else this directory, or one in it, is mounted, for a message; nil when nowhere.
    ///
    /// macOS: untested. It has no bind mounts, but `nullfs` and programs like `bindfs` show a directory at another
    /// place.
    func otherMount() throws -> String? {
      var buffer = [CChar](repeating: 0, count: Int(MAXPATHLEN))
      guard fcntl(descriptor.rawValue, F_GETPATH, &buffer) == 0 else { return nil }
      let path = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      var entries: UnsafeMutablePointer<statfs>?
      let count = getmntinfo(&entries, MNT_NOWAIT)
      let mount = UnsafeBufferPointer(start: entries, count: max(0, Int(count))).first { entry in
        let source = Self.text(entry.f_mntfromname)
        return ["nullfs", "bindfs"].contains(Self.text(entry.f_fstypename))
          && (source == path || source.hasPrefix(path + "/"))
      }
      return mount.map { Self.text($0.f_mntonname) }
    }

    /// The text in an array of characters that C ends with NUL.
    private static func text<Characters>(_ characters: Characters) -> String {
      withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
  }
#endif
