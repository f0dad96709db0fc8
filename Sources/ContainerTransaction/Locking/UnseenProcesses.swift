import FileSystem

/// Processes that may have something of a container open without being seen.
package struct UnseenProcesses: Sendable, Hashable, Encodable {
  /// How many processes of `/proc` this user may not look into.
  package var unreadable = 0
  /// Whether `/proc` hides processes of other users (its mount option `hidepid`), or all.
  package var hidden = false
  /// Whether this process is in a PID namespace of its own: those outside of it are not in `/proc`.
  package var outsideNamespace = false

  var isEmpty: Bool { self == UnseenProcesses() }

  /// Such as `12 processes may not be read, /proc hides those of other users (hidepid)`.
  package var description: String {
    let parts = [
      unreadable == 0 ? nil : "\(unreadable) process\(unreadable == 1 ? "" : "es") may not be read",
      hidden ? "/proc does not show all (hidepid)" : nil,
      outsideNamespace ? "those outside this PID namespace are not shown" : nil,
    ]
    return parts.compactMap { $0 }.joined(separator: ", ")
  }

  /// One line for whoever ran the command.
  package var note: String {
    "not all processes can be seen: \(description); make sure that none of them uses the container"
  }
}

extension UnseenProcesses {
  /// What `/proc` as a whole does not show; processes that it shows and that may not be read come on top of that.
  static func ofThisMachine(_ shown: [Int32]) -> UnseenProcesses {
    var unseen = UnseenProcesses()
    guard let own = ProcessTable.own, shown.contains(own) else {
      unseen.hidden = true
      return unseen
    }
    unseen.hidden = isHiding && !(mayTrace && shown.contains(1))
    unseen.outsideNamespace = !isInFirstNamespace
    return unseen
  }

  /// The kernel's threads are in the first PID namespace only, which always has this inode.
  private static var isInFirstNamespace: Bool {
    FollowedStatus.identity("/proc/self/ns/pid")?.inode == 0xEFFF_FFFC
      || ProcessTable.kind(of: 2) == .kernel
  }

  /// Whether `/proc` is mounted so that only processes that may be traced are shown.
  private static var isHiding: Bool {
    let mounts = ProcessTable.contents("/proc/self/mountinfo").map { String(decoding: $0, as: UTF8.self) }
    let ofProc = mounts?.split(separator: "\n").last {
      let fields = $0.split(separator: " ")
      return fields.count > 4 && fields[4] == "/proc"
    }
    let options = ofProc?.split(separator: " ").last?.split(separator: ",") ?? []
    return options.contains {
      ["hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable"].contains($0)
    }
  }

  /// CAP_SYS_PTRACE.
  private static var mayTrace: Bool {
    ProcessTable.status("CapEff").flatMap { UInt64($0, radix: 16) }.map { $0 & (1 << 19) != 0 } ?? false
  }
}
