import AgeEncryption
import DrydockErrors
import FileSystem
import Foundation
import RemoteStorage
import Synchronization

/// The lock of a remote repository: each process that writes or removes has a file in the folder `locks`.
///
/// A process writes its own file first and looks for others then; so of two that begin at the same moment at least one sees
/// the other, without conditional writes. Who sees a conflict removes its file and tries again. A file is written again every
/// 30 seconds; one that is older by the server's clock was left by a killed process, or by a machine without a connection,
/// and is removed by the next that wants the lock. Its owner notices, because it changes nothing without a fresh file.
final class RemoteLock: Sendable {
  private static let folder = "locks"

  /// In seconds. A file is stale long after its owner has stopped trusting it: its last request may take minutes.
  struct Timing {
    var renewal = 30.0, trusted = 60.0, stale = 420.0
    /// After which an exclusive lock looks again: a store's listings may be late.
    var settling = 0.3
  }

  private struct Document: Codable {
    var host: String, process: Int32, machine: String, exclusive: Bool
  }

  private let store: any RemoteStore
  private let timing: Timing
  private let own: LockFile

  /// - Parameter timeout: seconds to wait for others.
  /// - Throws: `DrydockError`: `locked`, naming the holder; what the store throws.
  init(_ store: any RemoteStore, exclusive: Bool, timeout: Double, timing: Timing = Timing()) throws {
    (self.store, self.timing) = (store, timing)
    let random = try RandomBytes.make(8).map { String(format: "%02x", $0) }.joined()
    own = LockFile(
      store, "\(Self.folder)/\(exclusive ? "exclusive" : "shared")-\(random).json",
      try Self.content(process: getpid(), exclusive: exclusive), trusted: timing.trusted)
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

  /// The file of a process of this machine.
  static func content(process: Int32, exclusive: Bool) throws -> [UInt8] {
    [UInt8](
      try JSONEncoder().encode(
        Document(
          host: ProcessInfo.processInfo.hostName, process: process, machine: MachineIdentity.processes,
          exclusive: exclusive)))
  }

  /// Throws `locked` when another process may have taken the lock meanwhile: this one had no connection for too long.
  func requireHeld() throws {
    guard own.isHeld else {
      throw DrydockError(
        .locked,
        "the lock of the repository could not be renewed in time, so nothing more is changed; run it again",
        path: store.url)
    }
  }

  /// The file of another process that prevents the lock; stale ones are removed.
  private func conflict(with present: RemoteFile, _ exclusive: Bool) throws -> RemoteFile? {
    for listed in try store.list(Self.folder) where listed.isFile && listed.name != own.name {
      guard exclusive || listed.name.hasPrefix("\(Self.folder)/exclusive-") else { continue }
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
    guard let owner = try? document(of: file), owner.machine == MachineIdentity.processes else {
      return false
    }
    return kill(owner.process, 0) != 0 && errno == ESRCH
  }

  private func document(of file: RemoteFile) throws -> Document {
    guard file.size <= 4096 else { throw DrydockError(.malformed, "not a lock", path: file.name) }
    var bytes = [UInt8](repeating: 0, count: Int(file.size))
    try bytes.withUnsafeMutableBytes { try store.read(file, at: 0, into: $0) }
    return try JSONDecoder().decode(Document.self, from: Data(bytes))
  }

  private func describe(_ file: RemoteFile) -> String {
    guard let owner = try? document(of: file) else { return "another process (\(file.name))" }
    return "process \(owner.process) on \(owner.host.printable)"
  }
}

/// The file of a lock, which a thread writes again until it is removed.
private final class LockFile: Sendable {
  let name: String
  private let store: any RemoteStore
  private let content: [UInt8]
  private let trusted: Double
  private let state = Mutex(State())
  /// Held during requests: a renewal that is on its way when the file is removed would bring it back.
  private let changing = Mutex(())
  private let ended = DispatchSemaphore(value: 0)

  private struct State {
    /// When the file was written last, in seconds of a clock that runs while the machine sleeps.
    var written = 0.0
    var isLost = false, isRemoved = false
  }

  init(_ store: any RemoteStore, _ name: String, _ content: [UInt8], trusted: Double) {
    (self.store, self.name, self.content, self.trusted) = (store, name, content, trusted)
  }

  var isHeld: Bool { state.withLock { !$0.isLost && Self.now() - $0.written < trusted } }

  /// Writes the file, and gives it as the server has it.
  @discardableResult
  func write() throws -> RemoteFile {
    let started = Self.now()
    let file = try store.put(name, content)
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
    var isWritten = false
    do {
      // One that was taken for stale must not come back.
      guard try store.file(name) != nil else {
        state.withLock { $0.isLost = true }
        return nil
      }
      try write()
      isWritten = true
    } catch {}
    return state.withLock { state in
      if Self.now() - state.written >= trusted { state.isLost = true }
      return state.isLost ? nil : isWritten
    }
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
