import CLibCurl
import Foundation

/// Times as servers write them, in nanoseconds since 1970; nil for those of which 64 bits do not hold so many.
enum RemoteTime {
  /// The seconds at the start of 2262.
  private static let latest: Int64 = 9_214_646_400

  /// `2026-11-23T13:30:00.000Z`, as S3 lists it.
  static func iso(_ text: String) -> Int64? {
    guard text.hasSuffix("Z") else { return nil }
    let parts = text.dropLast().split { "-T:.".contains($0) }.map { Int($0) }
    guard (6...7).contains(parts.count), !parts.contains(nil) else { return nil }
    let numbers = parts.compactMap { $0 }
    guard
      let whole = seconds(
        year: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4],
        second: numbers[5])
    else { return nil }
    let fraction = text.dropLast().split(separator: ".").dropFirst().first ?? ""
    let digits = String((fraction + "000000000").prefix(9))
    return Int64(digits).map { whole * 1_000_000_000 + $0 }
  }

  /// `Mon, 23 Nov 2026 13:30:00 GMT`, as HTTP's header fields have it.
  static func http(_ text: String) -> Int64? {
    guard CurlHandle.isReady else { return nil }
    let seconds = drydock_curl_getdate(text)
    return (0..<latest).contains(Int64(seconds)) ? Int64(seconds) * 1_000_000_000 : nil
  }

  /// Seconds since 1970 of a time in UTC; nil for one that no calendar has.
  static func seconds(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int = 0) -> Int64? {
    guard (1970...2261).contains(year), (1...12).contains(month), (1...31).contains(day),
      (0...23).contains(hour),
      (0...59).contains(minute), (0...60).contains(second)
    else { return nil }
    var time = tm()
    (time.tm_year, time.tm_mon, time.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
    (time.tm_hour, time.tm_min, time.tm_sec) = (Int32(hour), Int32(minute), Int32(second))
    return Int64(timegm(&time))
  }
}
