import FileSystem
import Foundation

/// Where else a directory is mounted: a bind mount, or the volume of another program's container. A mount is of an inode, so
/// that after an exchange it would go on showing the old tree, which is removed.
struct MountTable {
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

      /// Blanks and the like stand as `\040`.
      private static func unescaped(_ field: Substring) -> String {
        guard field.contains("\\") else { return String(field) }
        return String(
          field.replacing(/\\([0-7]{3})/) { match in
            UInt8(match.1, radix: 8).map { String(UnicodeScalar($0)) } ?? String(match.0)
          })
      }
    }

    /// All mounts that can be seen: of this process, and of processes in other mount namespaces.
    private let own: [Mount]
    private var others: [(process: Int32, mounts: [Mount])] = []

    /// Reads the tables of mounts; where there are none, nothing is found.
    init() {
      own = Self.mounts(of: "self")
      var seen = [FollowedStatus.identity("/proc/self/ns/mnt")]
      for process in ProcessTable.identifiers() {
        guard let space = FollowedStatus.identity("/proc/\(process)/ns/mnt"), !seen.contains(space) else {
          continue
        }
        seen.append(space)
        others.append((process, Self.mounts(of: String(process))))
      }
    }

    private static func mounts(of process: String) -> [Mount] {
      let bytes = ProcessTable.contents("/proc/\(process)/mountinfo") ?? []
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap(Mount.init)
    }

    /// A mount of the directory, or of one in it.
    ///
    /// - Returns: where, for a message; nil when there is none.
    func place(of directory: Directory) throws -> String? {
      let status = try directory.status()
      let link = "/proc/self/fd/\(directory.descriptor.rawValue)"
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
      for (process, mounts) in others {
        if let found = mounts.first(where: isThere) { return "\(found.place) of process \(process)" }
      }
      return nil
    }
  #else
    // macOS: untested. It has no bind mounts, but `nullfs` and programs like `bindfs` show a directory at another place.
    private let mounts: [(source: String, place: String)]

    init() {
      var entries: UnsafeMutablePointer<statfs>?
      let count = getmntinfo(&entries, MNT_NOWAIT)
      mounts = UnsafeBufferPointer(start: entries, count: max(0, Int(count))).compactMap { entry in
        guard ["nullfs", "bindfs"].contains(Self.text(entry.f_fstypename)) else { return nil }
        return (Self.text(entry.f_mntfromname), Self.text(entry.f_mntonname))
      }
    }

    /// The text in an array of characters that C ends with NUL.
    private static func text<Characters>(_ characters: Characters) -> String {
      withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// A mount of the directory, or of one in it.
    ///
    /// - Returns: where, for a message; nil when there is none.
    func place(of directory: Directory) throws -> String? {
      var buffer = [CChar](repeating: 0, count: Int(MAXPATHLEN))
      guard fcntl(directory.descriptor.rawValue, F_GETPATH, &buffer) == 0 else { return nil }
      let path = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      return mounts.first { $0.source == path || $0.source.hasPrefix(path + "/") }?.place
    }
  #endif
}
