import Foundation

/// One line of a directory's listing, in the form of `ls -l`, which servers write for people.
struct SFTPListingLine: Equatable {
  var name: String
  var size: UInt64
  /// To the minute, or to the day for old files, in the server's time zone: an estimate, in seconds since 1970.
  var modified: Int64
  var isRegularFile: Bool

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// A line such as `-rw-r--r--    1 user     group        1234 Nov 23 13:30 a name`; nil for anything else.
  ///
  /// Names of users and groups may contain spaces, so the date is searched for: the size is before it, the name after it.
  init?(_ line: Substring, now: Int64) {
    guard let kind = line.first, "-dlbcps".contains(kind) else { return nil }
    let words = line.split(separator: " ")
    guard words.count >= 8, words[0].count >= 10 else { return nil }
    for index in 4..<(words.count - 3) {
      guard let size = UInt64(words[index]), let month = Self.months.firstIndex(of: String(words[index + 1])),
        let day = Int(words[index + 2]),
        let modified = Self.time(month: month + 1, day: day, words[index + 3], now: now)
      else { continue }
      let end = words[index + 3].endIndex
      guard end < line.endIndex else { return nil }
      self.size = size
      self.modified = modified
      // Exactly one space: a name may begin with more.
      let rest = line[line.index(after: end)...]
      // libcurl adds what a link leads to.
      let arrow = kind == "l" ? rest.range(of: " -> ") : nil
      name = String(rest[..<(arrow?.lowerBound ?? rest.endIndex)])
      isRegularFile = kind == "-"
      return
    }
    return nil
  }

  private static func time(month: Int, day: Int, _ last: Substring, now: Int64) -> Int64? {
    let parts = last.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
    if parts.count == 1, let year = parts[0] {
      return RemoteTime.seconds(year: year, month: month, day: day, hour: 0, minute: 0)
    }
    guard parts.count == 2, let hour = parts[0], let minute = parts[1] else { return nil }
    // Without a year it is the latest such date; a server's time zone may be ahead.
    let year = Calendar(identifier: .gregorian).component(
      .year, from: Date(timeIntervalSince1970: Double(now)))
    return (year - 1...year + 1).compactMap {
      RemoteTime.seconds(year: $0, month: month, day: day, hour: hour, minute: minute)
    }.last { $0 <= now + 86_400 }
  }
}
