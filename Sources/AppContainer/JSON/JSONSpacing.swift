/// What stands around the parts of a JSON array or object: white space, and the commas. A part that comes later is set
/// apart as its neighbours are.
struct JSONSpacing: Sendable {
  /// Before the first part, between two, and after the last one; for n parts n + 1, for none the one that there is.
  let gaps: [String]

  /// The spacing with one part more; nil where there is no neighbour to follow.
  func inserting(at index: Int) -> JSONSpacing? {
    guard gaps.count > 1, let first = gaps.first else { return nil }
    var gaps = gaps
    let model =
      gaps.count > 2 ? gaps[max(1, min(index, gaps.count - 2))] : "," + first
    gaps.insert(model, at: max(1, min(index, gaps.count - 1)))
    return JSONSpacing(gaps: gaps)
  }

  /// The spacing with one part less.
  func removing(at index: Int) -> JSONSpacing {
    guard gaps.count > 2 else { return JSONSpacing(gaps: [""]) }
    var gaps = gaps
    gaps.remove(at: max(1, min(index, gaps.count - 2)))
    return JSONSpacing(gaps: gaps)
  }
}

/// How a document is laid out, for the parts that are new in it.
struct JSONStyle: Sendable {
  /// What ends a line; nil when all is on one line.
  var newline: String?
  /// By how much each level is indented.
  var unit = ""
  /// The colon with the white space around it.
  var colon = ":"
  /// The comma between parts on one line.
  var comma = ","

  /// The style of a value that was read.
  init(of value: JSONValue) {
    let gaps: [String]?
    switch value {
    case .array(let array): gaps = array.spacing?.gaps
    case .object(let object): gaps = object.spacing?.gaps
    default: gaps = nil
    }
    if let colon = Self.firstColon(in: value) { self.colon = colon }
    guard let gaps, gaps.count > 1, let first = gaps.first else { return }
    if let end = first.lastIndex(where: \.isNewline) {
      newline = String(first[end])
      unit = String(first[first.index(after: end)...])
    } else if gaps.count > 2 {
      comma = gaps[1]
    } else if colon.hasSuffix(" ") {
      comma = ", "
    }
  }

  private static func firstColon(in value: JSONValue) -> String? {
    switch value {
    case .object(let object): object.members.first?.colon
    case .array(let array): array.elements.first.flatMap(firstColon)
    default: nil
    }
  }
}
