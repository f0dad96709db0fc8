import Drydock

/// The line that shows how far a command has come: `verify 3/12, 45%, 0:05 left, 1.2 GB of 2.7 GB, 310 MB/s, 812 files`.
/// What matters most comes first: the line is cut at the width of the terminal.
struct ProgressText {
  private var phase: WorkProgress.Phase?
  private var items: Int?
  /// When the phase was first seen.
  private var start: Double = 0
  /// The last bytes, and the sum of those of earlier items.
  private var last: UInt64 = 0, earlier: UInt64 = 0

  /// The line; nil while nothing has begun.
  ///
  /// - Parameters:
  ///   - time: seconds, of any clock.
  ///   - width: columns of the terminal.
  mutating func line(_ state: WorkProgress.State, at time: Double, width: Int) -> String? {
    guard let phase = state.phase else { return nil }
    if phase != self.phase || state.items != items {
      (self.phase, items, start, last, earlier) = (phase, state.items, time, 0, 0)
    }
    if state.bytes < last { earlier += last }
    last = state.bytes
    let seconds = max(0, time - start)
    var parts = [phase.rawValue]
    if let item = state.item, let items = state.items { parts[0] += " \(item)/\(items)" }
    if let share = Self.share(state) {
      parts.append("\(Int(share * 100))%")
      if share > 0, seconds >= 1 { parts.append(Self.clock(seconds * (1 - share) / share) + " left") }
    }
    if state.bytes > 0 { parts.append(Self.amount(state.bytes, state.totalBytes, NumberText.size)) }
    if seconds >= 1, earlier + last > 0 {
      parts.append(NumberText.size(UInt64(Double(earlier + last) / seconds)) + "/s")
    }
    if state.files > 0 {
      // In a repository it is archives that are counted.
      let noun = (state.totalFiles ?? state.files) == 1 ? " file" : " files"
      let amount = Self.amount(state.files, state.totalFiles) { "\($0)" }
      parts.append(phase == .list || phase == .remove ? amount : amount + noun)
    }
    if parts.count == 1 { parts.append(Self.clock(seconds)) }
    // A character in the last column would wrap the line on some terminals.
    return String(parts.joined(separator: ", ").prefix(max(0, width - 1)))
  }

  /// The share that is done, from 0 to 1; nil if no total is known.
  private static func share(_ state: WorkProgress.State) -> Double? {
    func part(_ done: Double, of total: Double) -> Double? { total > 0 ? min(done / total, 1) : nil }
    let part =
      state.totalBytes.flatMap { part(Double(state.bytes), of: Double($0)) }
      ?? state.totalFiles.flatMap { part(Double(state.files), of: Double($0)) }
    guard let item = state.item, let items = state.items, items > 0 else { return part }
    return min((Double(item - 1) + (part ?? 0)) / Double(items), 1)
  }

  private static func amount<Number: Comparable>(
    _ done: Number, _ total: Number?, _ text: (Number) -> String
  ) -> String {
    guard let total, total >= done else { return text(done) }
    return "\(text(done)) of \(text(total))"
  }

  /// `0:05`, `12:00`, `1:00:00`.
  private static func clock(_ seconds: Double) -> String {
    guard seconds < 100 * 3600 else { return "more than 100 hours" }
    let all = Int(seconds.rounded(.up))
    let (hours, minutes) = (all / 3600, all / 60 % 60)
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return hours > 0 ? "\(hours):\(two(minutes)):\(two(all % 60))" : "\(minutes):\(two(all % 60))"
  }
}
