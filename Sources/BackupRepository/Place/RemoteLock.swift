import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import RemoteStorage
import Synchronization

/// The lock of a remote repository: each process that writes or removes has a file in the folder `locks`.
///
/// A process writes its own file first and looks for others then; so of two that begin at the same moment at least one sees
/// the other, without conditional writes. Who sees a conflict removes its file and tries again. A file is empty, and its name
/// says who has it: on a disk that is full, `forget` gets it, too. It is written again every 30 seconds; one that is older by
/// the server's clock was left by a killed process, or by a machine without a connection, and is removed by the next that
/// wants the lock. Its owner notices, because it changes nothing without a fresh file.
final class RemoteLock: Sendable {
  private static let folder = "locks"

  /// In seconds. Two renewals may wait for a connection that is broken without a word (``RemoteOptions/noProgressLimit``) while a
  /// file is trusted. It is stale when the last request of an owner who trusted it has ended (``RemoteOptions/deadline``).
  struct Timing {
    var renewal = 30.0, trusted = 120.0, stale = 420.0
    /// After which an exclusive lock looks again: a store's listings may be late.
    var settling = 0.3
  }

  private let store: any RemoteStore
  private let timing: Timing
  private let own: LockFile

  /// - Parameter timeout: seconds to wait for others.
  /// - Throws: `DrydockError`: `locked`, naming the holder; what the store throws.
  init(_ store: any RemoteStore, exclusive: Bool, timeout: Double, timing: Timing = Timing()) throws {
    (self.store, self.timing) = (store, timing)
    own = LockFile(store, try Self.name(process: getpid(), exclusive: exclusive), trusted: timing.trusted)
    // At least some tries: two that begin at the same moment both give way.
    let deadline = LockFile.now() + max(timeout, 2)
    while true {
      let file = try own.write()
      var holder = try conflict(with: file, exclusive)
      if holder == nil, exclusive {
        Thread.sleep(forTimeInterval: timing.settling)
        holder = try conflict(with: file, exclusive)
      }
      guard let holder else {
        // The requests may have taken longer than the file is trusted.
        if own.isHeld || LockFile.now() > deadline { break }
        continue
      }
      try store.remove(own.name)
      guard LockFile.now() < deadline else {
        throw DrydockError(
          .locked,
          "the repository is locked by \(describe(holder)); wait for it. A lock that a killed process left ends by itself "
            + "\(Int(timing.stale)) seconds after its last renewal",
          path: store.url)
      }
      Thread.sleep(forTimeInterval: .random(in: 0.2...0.8))
    }
    own.keepRenewing(every: timing.renewal)
  }

  deinit { own.remove() }

  /// The name of a process's file: `exclusive_RANDOM_MACHINE_PROCESS_HOST`, or `shared_`….
  static func name(process: Int32, exclusive: Bool) throws -> String {
    let random = try RandomBytes.make(8).hex
    let host = MachineIdentity.hostName().filter {
      $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0))
    }
    return [
      "\(folder)/\(exclusive ? "exclusive" : "shared")", random, MachineIdentity.processes,
      String(process), String(host.prefix(64)),
    ].joined(separator: "_")
  }

  /// What such a name says: the machine, the process and the host; nil for another name.
  private static func owner(of name: String) -> (machine: Substring, process: Int32, host: Substring)? {
    let fields = name.split(separator: "_", omittingEmptySubsequences: false)
    guard fields.count == 5, let process = Int32(fields[3]) else { return nil }
    return (fields[2], process, fields[4])
  }

  /// Throws `locked` when another process may have taken the lock meanwhile: this one had no connection for too long.
  func requireHeld() throws {
    guard own.isHeld else {
      throw DrydockError(
        .locked,
        "the lock of the repository was lost \(Int(own.age)) s after it was renewed last, so nothing more is changed; run it "
          + "again",
        path: store.url)
    }
  }

  /// The file of another process that prevents the lock; stale ones are removed.
  private func conflict(with present: RemoteFile, _ exclusive: Bool) throws -> RemoteFile? {
    for listed in try store.list(Self.folder) where listed.isFile && listed.name != own.name {
      guard exclusive || listed.name.hasPrefix("\(Self.folder)/exclusive_") else { continue }
      // The time in a listing may be rounded.
      guard let file = try store.file(listed.name) else { continue }
      let age = Double(present.modified - file.modified) / 1e9
      guard age > timing.stale || isDead(file) else { return file }
      try store.remove(file.name)
    }
    return nil
  }

  /// Whether the owner was a process of this machine, which has ended.
  private func isDead(_ file: RemoteFile) -> Bool {
    guard let owner = Self.owner(of: file.name), owner.machine == MachineIdentity.processes else {
      return false
    }
    return kill(owner.process, 0) != 0 && errno == ESRCH
  }

  private func describe(_ file: RemoteFile) -> String {
    guard let owner = Self.owner(of: file.name) else { return "another process (\(file.name.printable))" }
    return "process \(owner.process) on \(owner.host)"
  }
}

/// The file of a lock, which a thread writes again until it is removed.
private final class LockFile: Sendable {
  let name: String
  private let store: any RemoteStore
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

  init(_ store: any RemoteStore, _ name: String, trusted: Double) {
    (self.store, self.name, self.trusted) = (store, name, trusted)
  }

  /// Seconds since the file was written last.
  var age: Double { Self.now() - state.withLock { $0.written } }

  var isHeld: Bool { age < trusted }

  /// Writes the file, and gives it as the server has it.
  @discardableResult
  func write() throws -> RemoteFile {
    let started = Self.now()
    let file = try store.put(name, [])
    state.withLock { $0.written = started }
    return file
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
      try? store.remove(name)
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
