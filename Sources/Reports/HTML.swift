import Drydock

/// Markup. Its literals are written as they are, and every value in it is escaped: that a string becomes markup is an error of
/// types.
///
/// Values come from containers, archives and scripts, and may be hostile: a long one is cut, and characters are spelled out that
/// would act instead of being seen, such as those that change the direction of text.
struct HTML: ExpressibleByStringInterpolation {
  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var source = ""

    init(literalCapacity: Int, interpolationCount: Int) {}

    mutating func appendLiteral(_ literal: StaticString) { source += literal.description }
    mutating func appendInterpolation(_ text: String) { source += HTML.escaped(text) }
    mutating func appendInterpolation(_ number: Int) { source += "\(number)" }
    mutating func appendInterpolation(_ markup: HTML) { source += markup.source }
    mutating func appendInterpolation(_ markup: [HTML]) { for part in markup { source += part.source } }
  }

  private(set) var source: String

  init(stringLiteral: StaticString) { source = stringLiteral.description }
  init(stringInterpolation: StringInterpolation) { source = stringInterpolation.source }

  static func + (left: HTML, right: HTML) -> HTML { "\(left)\(right)" }

  /// A text in which words in backquotes are code.
  ///
  /// - Parameter isSentence: whether it begins with a capital letter.
  static func prose(_ text: String, isSentence: Bool = false) -> HTML {
    let parts = text.split(separator: "`", omittingEmptySubsequences: false)
    guard text.utf8.count <= limit, !parts.count.isMultiple(of: 2) else { return "\(text)" }
    let marked = parts.enumerated().map { index, part -> HTML in
      if !index.isMultiple(of: 2) { return "<code>\(String(part))</code>" }
      let isWord = part.prefix { $0 != " " }.allSatisfy(\.isLetter)
      let isFirst = isSentence && index == 0 && isWord
      return "\(isFirst ? part.prefix(1).uppercased() + part.dropFirst() : String(part))"
    }
    return "\(marked)"
  }

  /// So many characters of a value are shown.
  static let limit = 1000

  static func escaped(_ text: String) -> String {
    let scalars = text.unicodeScalars
    if text.utf8.count <= limit,
      scalars.allSatisfy({ ("\u{20}"..<"\u{7F}").contains($0) && markup[$0] == nil })
    {
      return text
    }
    let end = scalars.index(scalars.startIndex, offsetBy: limit, limitedBy: scalars.endIndex)
    let shown = visible(scalars[..<(end ?? scalars.endIndex)])
    let isCut = end.map { $0 < scalars.endIndex } ?? false
    return isCut ? "\(shown)… (\(NumberText.grouped(scalars.count)) characters)" : shown
  }

  private static let markup: [Unicode.Scalar: String] = [
    "<": "&lt;", ">": "&gt;", "&": "&amp;", "\"": "&quot;", "'": "&#39;",
  ]
  /// So many combining marks may follow each other: more of them would cover the lines above and below.
  private static let marks = 4

  /// By scalars: to Swift, a quote and a combining accent are one character.
  private static func visible(_ scalars: Substring.UnicodeScalarView) -> String {
    var (text, marks) = ("", 0)
    for scalar in scalars {
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .enclosingMark: marks += 1
      default: marks = 0
      }
      switch scalar {
      case "\n": text += "\\n"
      case "\t": text += "\\t"
      case "\r": text += "\\r"
      case _ where isHidden(scalar) || marks > Self.marks:
        text += "\\u{\(String(scalar.value, radix: 16))}"
      default: text.unicodeScalars.append(contentsOf: (markup[scalar] ?? String(scalar)).unicodeScalars)
      }
    }
    return text
  }

  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    // They join letters and emoji, and have no other effect.
    case 0x200C, 0x200D, 0xFE00...0xFE0F: return false
    default: break
    }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: return true
    case .unassigned: return scalar.properties.isNoncharacterCodePoint
    default: return scalar.properties.isDefaultIgnorableCodePoint
    }
  }
}
