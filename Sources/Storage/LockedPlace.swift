import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// A place on a server with its lock, held as long as this object exists; nothing is changed there without it. Each process that
/// writes or removes has a file in the folder `locks`.
///
/// A process writes its own file first and looks for others then; so of two that begin at the same moment at least one sees
/// the other, without conditional writes. Who sees a conflict removes its file and tries again. A file is empty, and its name
/// says who has it: on a disk that is full, `forget` gets it, too. It is written again every 30 seconds; one that is older by
/// the server's clock was left by a killed process, or by a machine without a connection, and is removed by the next that
/// wants the lock. Its owner notices, because it changes nothing without a fresh file.
package final class LockedPlace: PlaceWrapper {
  private static let folder: ContainerPath = "locks"

  /// In seconds. Two renewals may wait for a connection that is broken without a word (``RemoteOptions/noProgressLimit``) while a
  /// file is trusted. It is stale when the last request of an owner who trusted it has ended (``RemoteOptions/deadline``).
  package struct Timing {
    package var renewal = 30.0, trusted = 120.0, stale = 420.0
    /// After which an exclusive lock looks again: a server's listings may be late.
    package var settling = 0.3

    package init() {}
  }

  package let base: any Place
  private let timing: Timing
  private let own: LockFile

  /// - Parameter timeout: seconds to wait for others.
  /// - Throws: `DrydockError`: `locked`, naming the holder; what the place throws.
  package init(
    _ base: any Place, exclusive: Bool, timeout: Double, timing: Timing = Timing()
  ) throws {
    (self.base, self.timing) = (base, timing)
    own = LockFile(base, try Self.name(process: getpid(), exclusive: exclusive), trusted: timing.trusted)
    // At least some tries: two that begin at the same moment both give way.
    let deadline = LockFile.now() + max(timeout, 2)
    while true {
      try own.write()
      var holder = try conflict(exclusive)
      if holder == nil, exclusive {
        Thread.sleep(forTimeInterval: timing.settling)
        holder = try conflict(exclusive)
      }
      guard let holder else {
        // The requests may have taken longer than the file is trusted.
        if own.isHeld || LockFile.now() > deadline { break }
        continue
      }
      try base.remove(own.name)
      guard LockFile.now() < deadline else {
        throw DrydockError(
          .locked,
          "the repository is locked by \(describe(holder)); wait for it. A lock that a killed process left ends by itself "
            + "\(Int(timing.stale)) seconds after its last renewal",
          path: path)
      }
      Thread.sleep(forTimeInterval: .random(in: 0.2...0.8))
    }
    own.keepRenewing(every: timing.renewal)
  }

  deinit { own.remove() }

  package func put(_ name: ContainerPath, _ bytes: [UInt8]) throws {
    try requireLocked()
    try base.put(name, bytes)
  }

  package func replace(_ name: ContainerPath, with file: ContainerPath, in scratch: Directory) throws -> Bool
  {
    try requireLocked()
    return try base.replace(name, with: file, in: scratch)
  }

  package func remove(_ name: ContainerPath) throws {
    try requireLocked()
    try base.remove(name)
  }

  /// The name of a process's file: `exclusive_RANDOM_MACHINE_PROCESS_HOST`, or `shared_`….
  package static func name(process: Int32, exclusive: Bool) throws -> ContainerPath {
    let random = try RandomBytes.make(8).hex
    let host = MachineIdentity.hostName().filter {
      $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0))
    }
    return try folder.appending(
      [
        exclusive ? "exclusive" : "shared", random, MachineIdentity.processes, String(process),
        String(host.prefix(64)),
      ].joined(separator: "_"))
  }

  /// What such a name says: the machine, the process and the host; nil for another name.
  private static func owner(
    of name: ContainerPath
  ) -> (machine: Substring, process: Int32, host: Substring)? {
    let fields = name.nameString.split(separator: "_", omittingEmptySubsequences: false)
    guard fields.count == 5, let process = Int32(fields[3]) else { return nil }
    return (fields[2], process, fields[4])
  }

  /// Throws `locked` when another process may have taken the lock meanwhile: this one had no connection for too long.
  package func requireLocked() throws {
    guard own.isHeld else {
      throw DrydockError(
        .locked,
        "the lock of the repository was lost \(Int(own.age)) s after it was renewed last, so nothing more is changed; run it "
          + "again",
        path: path)
    }
  }

  /// The file of another process that prevents the lock; stale ones are removed.
  private func conflict(_ exclusive: Bool) throws -> PlaceFile? {
    let listing = try base.list(Self.folder)
    for name in listing.names where exclusive || name.starts(with: "exclusive_".utf8) {
      let path = Self.folder.appending(name: name)
      // The time in a listing may be rounded.
      guard path != own.name, try listing.file(path)?.isFile == true, let file = try base.file(path)
      else { continue }
      // The own file, which was just written, has the server's time.
      let present = try base.written(base.file(own.name), own.name)
      let age = Double(present.modified - file.modified) / 1e9
      guard age > timing.stale || isDead(file) else { return file }
      try base.remove(file.name)
    }
    return nil
  }

  /// Whether the owner was a process of this machine, which has ended.
  private func isDead(_ file: PlaceFile) -> Bool {
    guard let owner = Self.owner(of: file.name), owner.machine == MachineIdentity.processes else {
      return false
    }
    return kill(owner.process, 0) != 0 && errno == ESRCH
  }

  private func describe(_ file: PlaceFile) -> String {
    guard let owner = Self.owner(of: file.name) else { return "another process (\(file.name))" }
    return "process \(owner.process) on \(owner.host)"
  }
}

/// The file of a lock, which a thread writes again until it is removed.
private final class LockFile: Sendable {
  let name: ContainerPath
  private let place: any Place
  private let trusted: Double
  private let state = Mutex(State())
  /// Held during requests: a renewal that is on its way when the file is removed would bring it back.
  private let changing = Mutex(())
  private let ended = DispatchSemaphore(value: 0)

  private struct State {
    /// When the file was written last, in seconds of a clock that runs while the machine sleeps.
    var written = 0.0
    var isRemoved = false
  }

  init(_ place: any Place, _ name: ContainerPath, trusted: Double) {
    (self.place, self.name, self.trusted) = (place, name, trusted)
  }

  /// Seconds since the file was written last.
  var age: Double { Self.now() - state.withLock { $0.written } }

  var isHeld: Bool { age < trusted }

  func write() throws {
    let started = Self.now()
    try place.put(name, [])
    state.withLock { $0.written = started }
  }

  /// The thread holds this file, and not the lock, which ends when its owner is done with it.
  func keepRenewing(every seconds: Double) {
    let thread = Thread { [self] in
      // The last write counts from its beginning, and may have taken long.
      let due = { max(0, self.state.withLock { $0.written } + seconds - Self.now()) }
      var pause = due()
      while ended.wait(timeout: .now() + pause) == .timedOut {
        guard let isWritten = changing.withLock({ _ in renew() }) else { return }
        // A server that was away for a moment is asked again while the lock is trusted.
        pause = isWritten ? due() : seconds / 30
      }
    }
    thread.start()
  }

  /// Writes the file again. Returns whether the server has it; nil when the lock is lost, or was given up.
  private func renew() -> Bool? {
    guard state.withLock({ !$0.isRemoved }) else { return nil }
    // What others took for stale must not come back. Before, nobody removes it.
    return isHeld ? (try? write()) != nil : nil
  }

  func remove() {
    // A renewal that is on its way ends without another one.
    state.withLock { $0.isRemoved = true }
    ended.signal()
    changing.withLock { _ in
      // It ends by itself when the server cannot be reached.
      try? place.remove(name)
    }
  }

  /// Seconds since the machine was started, with the time that it slept.
  static func now() -> Double {
    #if os(Linux)
      let clock = CLOCK_BOOTTIME
    #else
      let clock = CLOCK_MONOTONIC
    #endif
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
