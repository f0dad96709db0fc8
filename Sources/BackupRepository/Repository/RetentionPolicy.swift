import DrydockErrors
import Formats
import Foundation

/// The rules for keeping archives, with restic's meaning. They apply to each app and instance by itself, and an archive that
/// one rule keeps is kept.
public struct RetentionPolicy: Sendable, Equatable {
  /// How many of the newest archives are kept.
  public var last = 0
  /// The newest archive of an hour is kept, for this many of the latest hours that have archives.
  public var hourly = 0
  /// The same by days, weeks from Monday, months and years, in UTC.
  public var daily = 0, weekly = 0, monthly = 0, yearly = 0
  /// All archives are kept that are not older than this, counted from the newest one.
  public var within: Period?
  /// All archives are kept that have every tag of one of these lists; an empty list means archives without tags.
  public var tags: [[String]] = []

  /// A policy without rules, which `forget` refuses.
  public init() {}

  /// Whether no rule keeps anything.
  public var isEmpty: Bool {
    [last, hourly, daily, weekly, monthly, yearly].allSatisfy { $0 <= 0 } && within == nil && tags.isEmpty
  }

  /// The tags in a text such as `release,audited`; none in an empty one.
  package static func tagList(_ text: String) -> [String] {
    text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.filter {
      !$0.isEmpty
    }
  }
}

extension RetentionPolicy {
  /// A period such as `2y5m7d3h`: years, months, days and hours.
  public struct Period: Sendable, Equatable, CustomStringConvertible {
    package var years = 0, months = 0, days = 0, hours = 0
    /// The text that it was made of.
    public let description: String

    /// - Throws: ``DrydockError`` with code `malformed` for any other text, and for an empty period.
    public init(_ text: String) throws {
      description = text
      let parts = text.matches(of: #/([0-9]{1,6})([ymdh])/#)
      guard !text.isEmpty, parts.map({ $0.output.0.count }).reduce(0, +) == text.count else {
        throw Self.error(text)
      }
      for part in parts {
        let number = Int(part.output.1) ?? 0
        switch part.output.2 {
        case "y": years += number
        case "m": months += number
        case "d": days += number
        default: hours += number
        }
      }
      guard years + months + days + hours > 0, years < 10_000 else { throw Self.error(text) }
    }

    private static func error(_ text: String) -> DrydockError {
      DrydockError(
        .malformed, "`\(text)` is not a period; write years, months, days and hours, such as 90d or 1y6m")
    }
  }
}

extension RetentionPolicy {
  /// Reads `retention:` of `drydock.yaml`.
  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(
      node, what: "`retention`", keys: Self.counts.map(\.key) + ["within", "tags"])
    for (key, path, _) in Self.counts {
      guard let value = reader[key] else { continue }
      guard let number = Int(exactly: try value.integer("`\(key)`")), number >= 0 else {
        throw value.position.error("`\(key)` is the number of archives to keep, such as 7")
      }
      self[keyPath: path] = number
    }
    if let value = reader["within"] {
      do { within = try Period(value.text("`within`")) } catch let error as DrydockError
        where error.code == .malformed
      {
        // An error of the node has its place.
        throw error.message.hasPrefix("`") ? value.position.error(error.message) : error
      }
    }
    tags = try reader.texts("tags")?.map(Self.tagList) ?? []
  }
}
