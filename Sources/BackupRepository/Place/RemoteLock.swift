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
  private static let renewal = 30.0, trusted = 60.0, stale = 420.0
  /// Seconds after which an exclusive lock looks again: a store's listings may be late.
  private static let settling = 0.3

  private struct Document: Codable {
    var host: String, process: Int32, machine: String, exclusive: Bool
  }

  private struct State {
    /// When the file was written last, in seconds of a clock that runs while the machine sleeps.
    var renewed: Double
    var isLost = false, isReleased = false
  }

  private let store: any RemoteStore
  private let name: String
  private let content: [UInt8]
  private let state: Mutex<State>
  private let ended = DispatchSemaphore(value: 0)

  /// - Parameter timeout: seconds to wait for others.
  /// - Throws: `DrydockError`: `locked`, naming the holder; what the store throws.
  init(_ store: any RemoteStore, exclusive: Bool, timeout: Double) throws {
    self.store = store
    let random = try RandomBytes.make(8).map { String(format: "%02x", $0) }.joined()
    name = "\(Self.folder)/\(exclusive ? "exclusive" : "shared")-\(random).json"
    content = try Self.content(process: getpid(), exclusive: exclusive)
    state = Mutex(State(renewed: 0))
    // At least some tries: two that begin at the same moment both give way.
    let deadline = Self.now() + max(timeout, 2)
    while true {
      let own = try renew()
      var holder = try conflict(with: own, exclusive)
      if holder == nil, exclusive {
        Thread.sleep(forTimeInterval: Self.settling)
        holder = try conflict(with: own, exclusive)
      }
      guard let holder else { break }
      try store.remove(name)
      guard Self.now() < deadline else {
        throw DrydockError(
          .locked,
          "the repository is locked by \(describe(holder)); wait for it. A lock that a killed process left ends by itself "
            + "\(Int(Self.stale)) seconds after its last renewal",
          path: store.url)
      }
      Thread.sleep(forTimeInterval: .random(in: 0.2...0.8))
    }
    keepRenewing()
  }

  deinit { release() }

  /// The file of a process of this machine.
  static func content(process: Int32, exclusive: Bool) throws -> [UInt8] {
    [UInt8](
      try JSONEncoder().encode(
        Document(
          host: ProcessInfo.processInfo.hostName, process: process, machine: ProcessOwner.current,
          exclusive: exclusive)))
  }

  /// Throws `locked` when another process may have taken the lock meanwhile: this one had no connection for too long.
  func requireHeld() throws {
    let isHeld = state.withLock { !$0.isLost && Self.now() - $0.renewed < Self.trusted }
    guard isHeld else {
      throw DrydockError(
        .locked,
        "the lock of the repository could not be renewed in time, so nothing more is changed; run it again",
        path: store.url)
    }
  }

  // MARK: Taking

  /// Writes the own file, and gives it as the server has it.
  private func renew() throws -> RemoteFile {
    let started = Self.now()
    let file = try store.put(name, content)
    state.withLock { $0.renewed = started }
    return file
  }

  /// The file of another process that prevents the lock; stale ones are removed.
  private func conflict(with own: RemoteFile, _ exclusive: Bool) throws -> RemoteFile? {
    for listed in try store.list(Self.folder) where listed.name != name {
      guard exclusive || listed.name.hasPrefix("\(Self.folder)/exclusive-") else { continue }
      // The time in a listing may be rounded.
      guard let file = try store.file(listed.name) else { continue }
      let age = Double(own.modified - file.modified) / 1e9
      guard age > Self.stale || isDead(file) else { return file }
      try store.remove(file.name)
    }
    return nil
  }

  /// Whether the owner was a process of this machine, which has ended.
  private func isDead(_ file: RemoteFile) -> Bool {
    guard let owner = try? document(of: file), owner.machine == ProcessOwner.current else { return false }
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

  // MARK: Holding

  private func keepRenewing() {
    let thread = Thread { [weak self, ended] in
      while ended.wait(timeout: .now() + Self.renewal) == .timedOut {
        guard let self, self.renewHeld() else { return }
      }
    }
    thread.start()
  }

  /// Writes the file again; false when the lock is lost.
  private func renewHeld() -> Bool {
    do {
      // One that was taken for stale must not come back.
      guard try store.file(name) != nil else {
        state.withLock { $0.isLost = true }
        return false
      }
      _ = try renew()
    } catch {}
    let isLate = state.withLock { state in
      if Self.now() - state.renewed >= Self.trusted { state.isLost = true }
      return state.isLost
    }
    return !isLate
  }

  private func release() {
    ended.signal()
    // It ends by itself when the server cannot be reached.
    try? store.remove(name)
  }

  /// Seconds since the machine was started, with the time that it slept.
  private static func now() -> Double {
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

/// The machine, its boot session and the process namespace that this process is in: where its number means something.
private enum ProcessOwner {
  static let current: String = {
    #if os(Linux)
      let parts = [
        try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8),
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid"),
      ]
      guard let boot = parts[0], let namespace = parts[1] else { return UUID().uuidString }
      return (try? SHA256.hash(Array((boot + namespace).utf8)).hex) ?? UUID().uuidString
    #else
      // macOS: untested. Nobody is known to be dead.
      return UUID().uuidString
    #endif
  }()
}
