import FileSystem
import Foundation
import Synchronization
import Testing

@Suite("Parallel work") struct OrderedWorkTests {
  @Test("Results come in the order of the things, whichever is done first", arguments: [1, 2, 7, 5000])
  func order(jobs: Int) {
    let items = Array(0..<1000)
    var got: [Int] = []
    OrderedWork.run(items, jobs: jobs) { item in
      // The first of each ten is the slowest.
      if item % 10 == 0 { Thread.sleep(forTimeInterval: 0.001) }
      return item * 2
    } deliver: { item, result in
      #expect(result == item * 2)
      got.append(item)
    }
    #expect(got == items)
  }

  @Test("Nothing to do is done at once")
  func nothing() {
    OrderedWork.run([Int](), jobs: 3) {
      $0
    } deliver: { _, _ in
      Issue.record("there is nothing")
    }
  }

  /// Else a lock would end when a thread does, perhaps after the process.
  @Test("What the work uses is released when all is done")
  func released() {
    final class Used: Sendable {}
    for _ in 0..<1000 {
      weak var left: Used?
      do {
        let used = Used()
        left = used
        OrderedWork.run([1, 2, 3], jobs: 3) { _ in
          withExtendedLifetime(used) { 0 }
        } deliver: { _, _ in
        }
      }
      guard left == nil else {
        Issue.record("it is still used")
        return
      }
    }
  }

  @Test("With no jobs, all is done on the caller's thread")
  func noThread() {
    let caller = pthread_self()
    OrderedWork.run([1, 2], jobs: 0) { _ in
      pthread_equal(pthread_self(), caller) != 0
    } deliver: {
      #expect($1, "\($0)")
    }
  }

  @Test("As many are worked on at the same time as is said, and not more")
  func parallel() {
    let state = Mutex((now: 0, most: 0))
    OrderedWork.run(Array(0..<40), jobs: 4) { _ in
      state.withLock { state in
        state.now += 1
        state.most = max(state.most, state.now)
      }
      // Nobody goes on before four are here, but for the last ones.
      for _ in 0..<200 where state.withLock({ $0.most }) < 4 { Thread.sleep(forTimeInterval: 0.005) }
      state.withLock { $0.now -= 1 }
    } deliver: { _, _ in
    }
    #expect(state.withLock { $0.most } == 4)
  }

  @Test("A slow thing holds the others back before their results fill the memory")
  func bounded() {
    let begun = Mutex(0)
    OrderedWork.run(Array(0..<2000), jobs: 3) { item in
      begun.withLock { $0 += 1 }
      guard item == 0 else { return true }
      // The others run on until they may not.
      var last = -1
      while begun.withLock({ $0 }) != last {
        last = begun.withLock { $0 }
        Thread.sleep(forTimeInterval: 0.05)
      }
      return begun.withLock { $0 } <= OrderedWork.ahead
    } deliver: { _, isBounded in
      #expect(isBounded)
    }
    #expect(begun.withLock { $0 } == 2000)
  }
}
