import Drydock

/// A piece of text in a page.
struct HTMLSpan {
  enum Kind: String {
    case plain, code, mark, muted
    /// A line break behind the text.
    case line
  }

  var kind: Kind
  var text: String

  static func plain(_ text: String) -> Self { Self(kind: .plain, text: text) }
  static func code(_ text: String) -> Self { Self(kind: .code, text: text) }
  static func muted(_ text: String) -> Self { Self(kind: .muted, text: text) }

  /// A sentence: words in backquotes are code, and it begins with a capital letter.
  static func prose(_ text: String) -> [Self] {
    let parts = text.split(separator: "`", omittingEmptySubsequences: false)
    guard parts.count.isMultiple(of: 2) == false else { return [.plain(text)] }
    return parts.enumerated().compactMap { index, part in
      if part.isEmpty { return nil }
      if !index.isMultiple(of: 2) { return .code(String(part)) }
      let isWord = part.prefix { $0 != " " }.allSatisfy(\.isLetter)
      return .plain(index == 0 && isWord ? part.prefix(1).uppercased() + part.dropFirst() : String(part))
    }
  }

  /// A name of so many characters is not broken.
  private static let shortLength = 40

  var context: [String: Any] {
    let isName = kind == .code && text.utf8.count <= Self.shortLength
    return ["span": isName ? "span-name" : "span-\(kind.rawValue)", "text": HTMLText(text)]
  }
}

/// A line of a difference between two texts.
struct HTMLLine {
  enum Kind: String {
    case same, removed, added
    /// Lines that are left out.
    case gap
  }

  var kind: Kind
  var spans: [HTMLSpan]

  fileprivate var context: [String: Any] {
    ["line": "line-\(kind.rawValue)", "spans": spans.map(\.context)]
  }
}

/// A cell of a table.
struct HTMLCell {
  enum Kind: String {
    case text, code, number
    /// The header of its row.
    case header
    /// How something differs, or how it is, in a sign and a word.
    case added, removed, changed, warned
  }

  var kind = Kind.text
  var spans: [HTMLSpan] = []
  /// The value before and after, in one cell.
  var removed: [HTMLSpan]?, added: [HTMLSpan]?
  var bar: HTMLBar?
  /// A link to a place of the page.
  var target: String?

  static func text(_ text: String) -> Self { Self(spans: [.plain(text)]) }
  static func prose(_ text: String) -> Self { Self(spans: HTMLSpan.prose(text)) }
  static func code(_ text: String) -> Self { Self(kind: .code, spans: [.plain(text)]) }
  static func number(_ number: Int) -> Self {
    Self(kind: .number, spans: [number == 0 ? .muted("0") : .plain(NumberText.grouped(number))])
  }
  static func header(_ text: String) -> Self { Self(kind: .header, spans: [.plain(text)]) }
  static func headerCode(_ text: String) -> Self { Self(kind: .header, spans: [.code(text)]) }

  fileprivate var withoutBar: Self {
    var cell = self
    cell.bar = nil
    return cell
  }

  fileprivate var context: [String: Any] {
    var context: [String: Any] = ["cell": "cell-\(kind.rawValue)", "spans": spans.map(\.context)]
    if let removed { context["removed"] = ["spans": removed.map(\.context)] as [String: Any] }
    if let added { context["added"] = ["spans": added.map(\.context)] as [String: Any] }
    if let bar { context["bar"] = bar.context }
    if let target { context["target"] = HTMLText(target) }
    return context
  }
}

/// Sizes as bars below each other, each of a largest one.
struct HTMLBar {
  var parts: [(kind: Kind, size: UInt64)]
  var largest: UInt64

  enum Kind: String {
    case removed, added, plain
  }

  fileprivate var context: [String: Any] {
    let bars = parts.enumerated().map { index, part -> [String: Any] in
      let share = largest == 0 ? 0 : Double(part.size) / Double(largest) * 100
      // What is there at all can be seen.
      let width = part.size == 0 ? 0 : max(0.5, (share * 10).rounded() / 10)
      return ["kind": HTMLText(part.kind.rawValue), "y": index * 6, "width": HTMLText(String(width))]
    }
    return ["bars": bars, "height": parts.count * 6 - 1]
  }
}

/// A table: the first rows are seen at once, more of them are folded, and what is beyond a limit is only counted.
struct HTMLTable {
  /// So many rows are seen at once, and so many are in a page at most.
  static let shown = 20, limit = 2000

  var caption: String
  var columns: [(title: String, isNumber: Bool)]
  var rows: [[HTMLCell]]
  /// How many rows there are, where not all are given.
  var total: Int
  var noun: (String, String)
  /// Whether the caption is seen, where no heading says the same; and whether the columns are as narrow as can be.
  var showsCaption = false, isNarrow = false

  /// - Parameter columns: their titles; `#` at the start marks one of numbers.
  init(
    _ caption: String, _ columns: [String], _ rows: [[HTMLCell]], of total: Int? = nil,
    noun: (String, String) = ("row", "rows")
  ) {
    self.caption = caption
    self.columns = columns.map { ($0.hasPrefix("#") ? String($0.dropFirst()) : $0, $0.hasPrefix("#")) }
    (self.rows, self.total, self.noun) = (rows, total ?? rows.count, noun)
  }

  fileprivate var context: [String: Any] {
    // A single bar compares with nothing.
    var rows = rows
    if rows.count == 1 { rows[0] = rows[0].map { $0.bar?.parts.count == 1 ? $0.withoutBar : $0 } }
    // A fold for a few rows would hide them for nothing.
    let shown = rows.count <= Self.shown + Self.shown / 2 ? rows.count : Self.shown
    var context: [String: Any] = ["table": part(caption, rows.prefix(shown))]
    let folded = rows.prefix(Self.limit).dropFirst(shown)
    if !folded.isEmpty {
      context["folded"] =
        [
          "summary": HTMLText(NumberText.count(folded.count, "more \(noun.0)", "more \(noun.1)")),
          "table": part(caption + ", continued", folded),
        ] as [String: Any]
    }
    let more = total - min(rows.count, Self.limit)
    if more > 0 {
      context["more"] = HTMLText(
        NumberText.count(more, "more \(noun.0) is", "more \(noun.1) are") + " not on this page")
    }
    return context
  }

  private func part(_ caption: String, _ rows: ArraySlice<[HTMLCell]>) -> [String: Any] {
    [
      "caption": HTMLText(caption), "hidesCaption": !showsCaption, "isNarrow": isNarrow,
      "columns": columns.map {
        ["column": $0.isNumber ? "column-number" : "column-text", "title": HTMLText($0.title)]
          as [String: Any]
      },
      "rows": rows.map { ["cells": $0.map(\.context)] as [String: Any] },
    ]
  }
}

/// What a section of a page consists of.
enum HTMLBlock {
  /// A heading below the section's, of level 3 or 4.
  case heading(Int, [HTMLSpan])
  case paragraph([HTMLSpan])
  case list([[HTMLSpan]])
  case facts([(name: String, value: [HTMLSpan])])
  case table(HTMLTable)
  /// A difference between two texts, line by line.
  case lines([HTMLLine])
  /// Two texts beside each other.
  case sides([(title: String, text: [HTMLSpan])])
  case fold(summary: [HTMLSpan], isOpen: Bool, [HTMLBlock])

  var context: [String: Any] {
    switch self {
    case .heading(let level, let spans):
      ["block": "heading-\(level)", "spans": spans.map(\.context)]
    case .paragraph(let spans): ["block": "paragraph", "spans": spans.map(\.context)]
    case .list(let items):
      ["block": "list", "items": items.map { ["spans": $0.map(\.context)] as [String: Any] }]
    case .facts(let facts): ["block": "facts", "facts": Self.context(facts)]
    case .table(let table): ["block": "listing", "listing": table.context]
    case .lines(let lines): ["block": "lines", "lines": lines.map(\.context)]
    case .sides(let sides):
      [
        "block": "sides",
        "sides": sides.map {
          ["title": HTMLText($0.title), "spans": $0.text.map(\.context)] as [String: Any]
        },
      ]
    case .fold(let summary, let isOpen, let blocks):
      [
        "block": isOpen ? "fold-open" : "fold", "spans": summary.map(\.context),
        "blocks": blocks.map(\.context),
      ]
    }
  }

  static func context(_ facts: [(name: String, value: [HTMLSpan])]) -> [[String: Any]] {
    facts.map { ["name": HTMLText($0.name), "spans": $0.value.map(\.context)] }
  }
}
