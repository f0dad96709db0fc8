import Foundation

/// The same work on many things, some at a time; the results are handed over in the order of the things.
package enum OrderedWork {
  /// How far the work may be ahead of the results that were handed over: so many results at most are in memory.
  package static let ahead = 256

  /// Works on all items and returns when everything is handed over.
  ///
  /// - Parameters:
  ///   - jobs: how many are worked on at the same time, 1 or more.
  ///   - work: runs on a thread of its own, which may block.
  ///   - deliver: gets each result as soon as it and all before it are there; runs on the caller's thread.
  package static func run<Item: Sendable, Result: Sendable>(
    _ items: [Item], jobs: Int, _ work: @escaping @Sendable (Item) -> Result,
    deliver: (Item, Result) -> Void
  ) {
    let board = Board<Result>(count: items.count)
    for _ in 0..<min(max(jobs, 1), items.count) {
      let thread = Thread {
        while let index = board.next() { board.put(work(items[index]), at: index) }
      }
      // What a main thread has: property lists and documents are read by recursion.
      thread.stackSize = 8 << 20
      thread.start()
    }
    for (index, item) in items.enumerated() { deliver(item, board.take(index)) }
  }

  /// What is to be done, and what is done and not handed over.
  private final class Board<Result: Sendable>: @unchecked Sendable {
    private let condition = NSCondition()
    private let count: Int
    private var started = 0
    private var delivered = 0
    private var results: [Int: Result] = [:]

    init(count: Int) { self.count = count }

    /// The next thing to work on; waits while the work is too far ahead, and gives nil when all are begun.
    func next() -> Int? {
      condition.withLock {
        while started < count && started >= delivered + OrderedWork.ahead { condition.wait() }
        guard started < count else { return nil }
        defer { started += 1 }
        return started
      }
    }

    func put(_ result: Result, at index: Int) {
      condition.withLock {
        results[index] = result
        condition.broadcast()
      }
    }

    /// Waits for a result.
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
