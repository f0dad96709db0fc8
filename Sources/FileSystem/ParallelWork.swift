import Dispatch
import DrydockErrors
import Foundation
import Synchronization

/// Runs a body for each element, on all cores. After a failure no other element is started, and the failure is thrown when
/// those that were started have ended.
///
/// - Parameter waits: whether the body often waits for a disk; then more threads keep the cores busy.
package func onAllCores<Element: Sendable>(
  _ elements: [Element], waits: Bool = false, _ body: @Sendable (Element) throws -> Void
) throws {
  let failure = Mutex<(any Error)?>(nil)
  withoutActuallyEscaping(body) { body in
    @Sendable func run(_ element: Element) {
      guard failure.withLock({ $0 == nil }) else { return }
      do { try body(element) } catch { failure.withLock { $0 = $0 ?? error } }
    }
    if waits {
      // Each takes memory: about 20 MB in a restore of large files. With many cores, enough of them do not wait.
      let cores = ProcessInfo.processInfo.activeProcessorCount
      let jobs = max(cores, min(2 * cores, 8))
      OrderedWork.run(elements, jobs: jobs, run) { _, _ in }
    } else {
      DispatchQueue.concurrentPerform(iterations: elements.count) { run(elements[$0]) }
    }
  }
  if let error = failure.withLock({ $0 }) { throw error }
}

/// Runs a body for parts of a directory's names, on all cores. The kernel changes the entries of a directory one after the
/// other, but that is half of the time; and many containers have most files in one directory.
package func onAllCores(
  partsOf names: [ContainerPath], _ body: @Sendable (ArraySlice<ContainerPath>) throws -> Void
) throws {
  try onAllCores(Array(stride(from: 0, to: names.count, by: 256))) { try body(names[$0...].prefix(256)) }
}

/// A result that another thread computes.
package final class PendingResult<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let done = DispatchGroup()

  package init() { done.enter() }

  package func finish(_ result: Result<Value, any Error>) {
    self.result.withLock { $0 = result }
    done.leave()
  }

  /// Whether ``take()`` would not wait.
  package var isDone: Bool { result.withLock { $0 != nil } }

  /// Waits for the result.
  package func take() throws -> Value {
    done.wait()
    guard let result = result.withLock({ $0 }) else {
      throw DrydockError(.io, "a result was not computed; report this")
    }
    return try result.get()
  }
}

/// Works on many items in parallel and delivers the results in the order of the items.
package enum OrderedWork {
  /// The most results in memory: how far the work may be ahead of the delivery.
  package static let ahead = 256

  /// Works on all items and returns when all results are delivered, and `work` is released: a lock that it uses ends with its
  /// owner, not when a thread ends, which may be after the process.
  ///
  /// - Parameters:
  ///   - jobs: the number of items in work at a time, each on a thread of its own; with 0, all work is done on the caller's
  ///     thread.
  ///   - work: may block.
  ///   - deliver: takes each result as soon as it and all before it are done; runs on the caller's thread.
  package static func run<Item: Sendable, Result: Sendable>(
    _ items: [Item], jobs: Int, _ work: @escaping @Sendable (Item) -> Result,
    deliver: (Item, Result) -> Void
  ) {
    guard jobs > 0 else {
      for item in items { deliver(item, work(item)) }
      return
    }
    let board = Board<Result>(count: items.count) { work(items[$0]) }
    let threads = DispatchGroup()
    for _ in 0..<min(jobs, items.count) {
      threads.enter()
      let thread = Thread {
        board.work()
        threads.leave()
      }
      // As on a main thread: property lists and documents are read recursively.
      thread.stackSize = 8 << 20
      thread.start()
    }
    for (index, item) in items.enumerated() { deliver(item, board.take(index)) }
    threads.wait()
    board.release()
  }

  /// The items still to start, and the results not yet delivered.
  private final class Board<Result: Sendable>: @unchecked Sendable {
    private let condition = NSCondition()
    private let count: Int
    private var perform: (@Sendable (Int) -> Result)?
    private var started = 0
    private var delivered = 0
    private var results: [Int: Result] = [:]

    init(count: Int, _ perform: @escaping @Sendable (Int) -> Result) {
      (self.count, self.perform) = (count, perform)
    }

    /// Works on items until all are started.
    func work() {
      while let index = next() {
        if let result = perform?(index) { put(result, at: index) }
      }
    }

    /// Called when no thread works any more.
    func release() { perform = nil }

    /// The next item to work on, after waiting while the work is too far ahead; nil when all are started.
    private func next() -> Int? {
      condition.withLock {
        while started < count && started >= delivered + OrderedWork.ahead { condition.wait() }
        guard started < count else { return nil }
        defer { started += 1 }
        return started
      }
    }

    private func put(_ result: Result, at index: Int) {
      condition.withLock {
        results[index] = result
        condition.broadcast()
      }
    }

    func take(_ index: Int) -> Result {
      condition.withLock {
        while true {
          if let result = results.removeValue(forKey: index) {
            delivered = index + 1
            condition.broadcast()
            return result
          }
          condition.wait()
        }
      }
    }
  }
}
