/// What stands around the parts of a JSON array or object: white space, and the commas. A part that comes later is set
/// apart as its neighbours are.
struct JSONSpacing: Sendable {
  /// Before the first part, between two, and after the last one; for n parts n + 1, for none the one that there is. Nil
  /// where two parts are set apart as the document's style has it.
  private(set) var gaps: [String?]
  /// How parts are set apart here, also when there is but one left.
  private let comma: String?

  /// The spacing of a text.
  init(gaps: [String]) {
    self.gaps = gaps
    comma = gaps.count > 2 ? gaps[1] : nil
  }

  /// The spacing with one part more; nil where there is none to follow.
  func inserting(at index: Int) -> JSONSpacing? {
    guard gaps.count > 1, let first = gaps[0] else { return nil }
    var result = self
    let between =
      gaps.count > 2
      ? gaps[max(1, min(index, gaps.count - 2))]
      : comma ?? (first.contains(where: \.isNewline) ? "," + first : nil)
    result.gaps.insert(between, at: max(1, min(index, gaps.count - 1)))
    return result
  }

  /// The spacing with one part less.
  func removing(at index: Int) -> JSONSpacing {
    guard gaps.count > 2 else { return JSONSpacing(gaps: [""]) }
    var result = self
    result.gaps.remove(at: max(1, min(index, gaps.count - 2)))
    return result
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
    let gaps: [String?]
    switch value {
    case .array(let array): gaps = array.spacing?.gaps ?? []
    case .object(let object): gaps = object.spacing?.gaps ?? []
    default: gaps = []
    }
    if let colon = Self.firstColon(in: value) { self.colon = colon }
    if colon.last?.isWhitespace == true { comma = ", " }
    guard gaps.count > 1, let first = gaps[0] else { return }
    if let end = first.lastIndex(where: \.isNewline) {
      newline = String(first[end])
      unit = String(first[first.index(after: end)...])
    } else if gaps.count > 2, let between = gaps[1] {
      comma = between
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
