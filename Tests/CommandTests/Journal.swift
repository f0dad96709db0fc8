import Foundation

/// The journal beside a container, looked at from outside.
struct Journal {
  private let sandbox: Sandbox
  private let start: Int

  init(_ sandbox: Sandbox) {
    self.sandbox = sandbox
    start = Self.lines(sandbox).count
  }

  /// The number of records written since: 1 when the transaction has begun, 2 when its commit has.
  var records: Int { Self.lines(sandbox).count - start }

  /// Whether any transaction was ever begun.
  var hasBegun: Bool { !Self.lines(sandbox).isEmpty }

  /// The transaction that has begun and neither ended nor been given up.
  var interrupted: String? {
    var open: String?
    for (step, record) in steps {
      guard let transaction = record["transaction"] as? String else { continue }
      if step == "begin" { open = transaction }
      if step == "done" || step == "discarded", open == transaction { open = nil }
    }
    return open
  }

  /// Whether a commit in place stands half way: the container is neither old nor new.
  var isHalfDone: Bool { commit?["inPlace"] as? Bool == true }

  /// While an exchange of a part of the container may just have been made: the directory above it, whose time is put back
  /// right after the exchange (Transactions, "Commit by exchange"). A kill between the two leaves it moved.
  var above: [String] {
    let place = (commit?["place"] as? String)?.split(separator: "/")
    return place.map { [$0.dropLast().joined(separator: "/")] } ?? []
  }

  /// The commit of which it is not recorded that the container is new or the old one again.
  private var commit: [String: Any]? {
    let last = steps.last { ["commit", "carried", "done", "discarded"].contains($0.step) }
    return last?.step == "commit" ? last?.record : nil
  }

  private var steps: [(step: String, record: [String: Any])] {
    Self.lines(sandbox).compactMap { line in
      let record = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
      return record.flatMap { record in (record["step"] as? String).map { ($0, record) } }
    }
  }

  /// The complete lines; what a crash cut does not count.
  private static func lines(_ sandbox: Sandbox) -> [ArraySlice<UInt8>] {
    guard let state = try? KillScene.state(in: sandbox), let bytes = try? sandbox.read(state + "/journal")
    else { return [] }
    return bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
  }
}
