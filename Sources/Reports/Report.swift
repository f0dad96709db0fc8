import Drydock

/// What a piece of text is, which decides its colour. No meaning is in the colour alone.
package enum TextRole: String, Sendable {
  case error, warning, note
  case added, removed, changed
  case passed, failed, known, notRun
}

/// A result in blocks. Its text, its Markdown and its page of HTML are made from the same ones.
package struct Report: Sendable {
  /// What the reader must know first.
  package enum Verdict: String, Sendable {
    case good, changes, warning, bad
  }

  /// A line that may have lines below it: the following ones of a greater depth.
  package struct Line: Sendable {
    package var text: String
    package var role: TextRole?
    package var depth: Int

    package init(_ text: String, _ role: TextRole? = nil, depth: Int = 1) {
      (self.text, self.role, self.depth) = (text, role, depth)
    }
  }

  /// A cell of a table.
  package enum Cell: Sendable {
    case text(String)
    case number(Int)
    /// Words of the report itself, such as a size, which no container wrote.
    case words(String)

    static func size(_ bytes: UInt64) -> Self { .words(NumberText.size(bytes)) }
    static func seconds(_ seconds: Double) -> Self { .words(NumberText.seconds(seconds)) }
    /// Schema versions; nil where one is not known.
    static func versions(_ before: Int?, _ after: Int?) -> Self {
      .words("\(before.map(String.init) ?? "?") → \(after.map(String.init) ?? "?")")
    }

    package var text: String {
      switch self {
      case .text(let text), .words(let text): text
      case .number(let number): "\(number)"
      }
    }
  }

  package struct Row: Sendable {
    package var role: TextRole?
    package var cells: [Cell]

    init(_ cells: [Cell], _ role: TextRole? = nil) { (self.role, self.cells) = (role, cells) }
  }

  package struct Table: Sendable {
    /// What the rows are, in the plural.
    var caption: String
    var columns: [String]
    package var rows: [Row]
    /// So many rows are shown; the others are counted.
    package var limit: Int
    /// Of all rows.
    package var role: TextRole?
    package var depth: Int

    init(
      _ caption: String, _ columns: [String], _ rows: [Row], limit: Int = .max,
      role: TextRole? = nil, depth: Int = 1
    ) {
      (self.caption, self.columns, self.rows) = (caption, columns, rows)
      (self.limit, self.role, self.depth) = (limit, role, depth)
    }
  }

  package enum Block: Sendable {
    case lines([Line])
    /// Lines of which the text shows so many; `hint` says where the others are.
    case list([Line], shown: Int, hint: String)
    case table(Table)
    case difference(ContainerDifference)
    /// What a reader can unfold.
    case fold(Line, [Block])
  }

  /// A part with a heading.
  package struct Section: Sendable {
    package var heading: Line
    package var blocks: [Block]
    /// What its folds are, such as `cause`.
    var noun: String

    init(_ heading: String, _ blocks: [Block], _ role: TextRole? = nil, noun: String = "part") {
      (self.heading, self.noun, self.blocks) = (Line(heading, role, depth: 0), noun, blocks)
    }
  }

  /// What kind of result it is, such as `Dry run of migrations`; and what it is about.
  var kind: String, title: String
  var verdict: Verdict
  /// The verdict in a word or two, and a sentence.
  var word: String, sentence: String
  /// What was examined.
  package var opening: [Line] = []
  package var sections: [Section] = []
  /// Warnings and notes: the first section of a page; a terminal gets them last, and on standard error.
  package var notices: [Line] = []
  /// The heading of ``notices``.
  var noticesHeading = "warnings"

  /// The sections of a page.
  var allSections: [Section] {
    (notices.isEmpty ? [] : [Section(noticesHeading, [.lines(notices)])]) + sections
  }

  init(kind: String, title: String, verdict: Verdict, word: String, sentence: String) {
    (self.kind, self.title, self.verdict) = (kind, title, verdict)
    (self.word, self.sentence) = (word, sentence)
  }

  /// The report of a command that failed.
  package init(failed kind: String, title: String, lines: [String]) {
    self.init(
      kind: kind, title: title, verdict: .bad, word: "Failed",
      sentence: lines.first ?? "the reason is not known")
    sections = [Section("Details", [.lines(lines.dropFirst().map { Line($0) })])]
  }
}
