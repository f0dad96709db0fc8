import Mustache
import Drydock

/// A value as a page shows it. Values come from containers, archives and scripts, and may be hostile: a long one is cut, and
/// characters are spelled out that would act instead of being seen, such as those that change the direction of text.
///
/// All texts reach a template as this type; what the template library escapes is only markup.
struct HTMLText: MustacheCustomRenderable {
  /// So many characters of a value are shown.
  static let limit = 1000

  let renderText: String
  var isNull: Bool { false }

  init(_ text: String, limit: Int = Self.limit) {
    if text.utf8.count <= limit, text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) {
      renderText = text
      return
    }
    let scalars = text.unicodeScalars
    let end = scalars.index(scalars.startIndex, offsetBy: limit, limitedBy: scalars.endIndex)
    let shown = Self.separatingMarkup(Self.visible(scalars[..<(end ?? scalars.endIndex)]))
    let isCut = end.map { $0 < scalars.endIndex } ?? false
    renderText = isCut ? "\(shown)… (\(NumberText.grouped(scalars.count)) characters)" : shown
  }

  /// So many combining marks may follow each other: more of them would cover the lines above and below.
  private static let marks = 4

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
      case _ where isHidden(scalar) || marks > Self.marks: text += code(scalar)
      default: text.unicodeScalars.append(scalar)
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

  private static let markup: Set<Unicode.Scalar> = ["<", ">", "&", "\"", "'"]

  /// The template library escapes by characters as Swift counts them, and would leave a quote alone that has a combining
  /// accent: such an accent is spelled out.
  private static func separatingMarkup(_ text: String) -> String {
    func isHidden(_ character: Character) -> Bool {
      let scalars = character.unicodeScalars
      return scalars.count > 1 && scalars.contains(where: markup.contains)
    }
    guard text.contains(where: isHidden) else { return text }
    return text.map { character in
      guard isHidden(character) else { return String(character) }
      return character.unicodeScalars.map { $0.isASCII ? String($0) : code($0) }.joined()
    }.joined()
  }

  private static func code(_ scalar: Unicode.Scalar) -> String {
    "\\u{\(String(scalar.value, radix: 16))}"
  }
}
