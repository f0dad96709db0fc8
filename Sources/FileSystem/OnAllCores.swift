import Dispatch
import Synchronization

/// Runs a body once for each element, on all cores; the first failure is thrown when all that had begun have ended, and
/// nothing else begins.
package func onAllCores<Element: Sendable>(
  _ elements: [Element], _ body: @Sendable (Element) throws -> Void
) throws {
  let failure = Mutex<(any Error)?>(nil)
  DispatchQueue.concurrentPerform(iterations: elements.count) { index in
    guard failure.withLock({ $0 == nil }) else { return }
    do {
      try body(elements[index])
    } catch {
      failure.withLock { $0 = $0 ?? error }
    }
  }
  if let error = failure.withLock({ $0 }) { throw error }
}
