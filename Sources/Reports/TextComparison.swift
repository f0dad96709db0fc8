import Drydock

/// Two texts compared word by word, or line by line, for the marks of a page.
enum TextComparison {
  /// A line of a difference between two texts.
  struct Line {
    enum Kind: Sendable {
      case same, removed, added
      /// Lines that are left out.
      case gap
    }

    var kind: Kind
    var text: HTML

    var html: HTML {
      switch kind {
      case .same: "<span class=\"line\">  \(text)</span>"
      case .removed: "<del class=\"line\">− \(text)</del>"
      case .added: "<ins class=\"line\">+ \(text)</ins>"
      case .gap: "<span class=\"line muted\">\(text)</span>"
      }
    }
  }

  /// Two values with the words marked that differ; nothing is marked where they have little in common.
  static func values(_ before: String, _ after: String) -> (before: HTML, after: HTML) {
    let plain: (HTML, HTML) = ("\(before)", "\(after)")
    // What the page cuts is not compared either.
    guard max(before.utf8.count, after.utf8.count) <= HTML.limit else { return plain }
    let (old, new) = (words(before), words(after))
    let (removed, added) = changes(old, new)
    func size(_ words: [Substring], _ left: Set<Int> = []) -> Int {
      words.enumerated().reduce(0) { sum, word in
        left.contains(word.offset) || word.element.first?.isLetterOrDigit != true
          ? sum : sum + word.element.count
      }
    }
    guard size(old, removed) * 5 >= max(size(old), size(new)) * 2 else { return plain }
    return (marked(old, removed), marked(new, added))
  }

  private static func changes<Element: Hashable>(
    _ before: [Element], _ after: [Element]
  ) -> (removed: Set<Int>, added: Set<Int>) {
    var (removed, added) = (Set<Int>(), Set<Int>())
    for change in after.difference(from: before) {
      switch change {
      case .remove(let offset, _, _): removed.insert(offset)
      case .insert(let offset, _, _): added.insert(offset)
      }
    }
    return (removed, added)
  }

  /// A column that is no longer the last one has not changed.
  private static func withoutComma(_ line: String) -> Substring {
    line.hasSuffix(",") ? line.dropLast() : line[...]
  }

  /// Two texts as lines: what both have once, changed words marked, and long parts without a change left out.
  static func lines(_ before: [String], _ after: [String]) -> [Line] {
    let (removed, added) = changes(before.map(withoutComma), after.map(withoutComma))
    var (result, old, new) = ([Line](), 0, 0)
    while old < before.count || new < after.count {
      var (gone, come) = ([String](), [String]())
      while removed.contains(old) {
        gone.append(before[old])
        old += 1
      }
      while added.contains(new) {
        come.append(after[new])
        new += 1
      }
      let pairs = zip(gone, come).map(values)
      result += gone.indices.map {
        Line(kind: .removed, text: $0 < pairs.count ? pairs[$0].before : "\(gone[$0])")
      }
      result += come.indices.map {
        Line(kind: .added, text: $0 < pairs.count ? pairs[$0].after : "\(come[$0])")
      }
      if old < before.count, new < after.count {
        result.append(Line(kind: .same, text: "\(after[new])"))
        old += 1
        new += 1
      }
    }
    return leavingOut(result)
  }

  /// So many lines around a change are shown.
  private static let context = 3
  /// So many lines are shown rather than left out.
  private static let shortest = 5

  private static func leavingOut(_ lines: [Line]) -> [Line] {
    guard lines.contains(where: { $0.kind != .same }) else { return lines }
    var near = Set<Int>()
    for index in lines.indices where lines[index].kind != .same {
      near.formUnion((index - context)...(index + context))
    }
    var (result, hidden) = ([Line](), [Line]())
    func end() {
      if hidden.count > shortest {
        result.append(Line(kind: .gap, text: "… \(hidden.count) lines without a change"))
      } else {
        result += hidden
      }
      hidden = []
    }
    for (index, line) in lines.enumerated() {
      if near.contains(index) {
        end()
        result.append(line)
      } else {
        hidden.append(line)
      }
    }
    end()
    return result
  }

  private static func words(_ text: String) -> [Substring] {
    var (words, rest) = ([Substring](), text[...])
    while let first = rest.first {
      let word = first.isLetterOrDigit ? rest.prefix(while: \.isLetterOrDigit) : rest.prefix(1)
      words.append(word)
      rest = rest.dropFirst(word.count)
    }
    return words
  }

  private static func marked(_ words: [Substring], _ marked: Set<Int>) -> HTML {
    var parts: [HTML] = []
    var rest = words.indices[...]
    while let first = rest.first {
      let isMarked = marked.contains(first)
      let run = rest.prefix { marked.contains($0) == isMarked }
      rest = rest.dropFirst(run.count)
      let text = words[run.startIndex..<run.endIndex].joined()
      parts.append(isMarked ? "<mark>\(text)</mark>" : "\(text)")
    }
    return "\(parts)"
  }
}

extension Character {
  fileprivate var isLetterOrDigit: Bool { isLetter || isNumber || self == "_" }
}

/// The SQL of a schema in lines that can be compared: a table's columns on a line each, anything else as it was written.
struct SQLLines {
  /// So many lines of one object are shown.
  static let limit = 400

  private(set) var lines: [String] = []
  private var line = ""

  init(_ sql: String) {
    if sql.prefixMatch(of: /\s*CREATE\s+(?:TEMP\s+|TEMPORARY\s+)?TABLE\b/.ignoresCase()) != nil {
      breakTable(sql)
    } else {
      for part in sql.split(whereSeparator: \.isNewline) { add(String(part)) }
    }
    lines = lines.lines(Self.limit, more: "more lines")
  }

  private mutating func add(_ text: String, indent: String = "") {
    let text = text.replacing("\t", with: "  ")
    let end = text.lastIndex { !$0.isWhitespace }
    guard let end else { return }
    lines.append(indent + text[...end])
  }

  private mutating func end(indent: String) {
    add(String(line.drop(while: \.isWhitespace)), indent: indent)
    line = ""
  }

  private mutating func dropSpace() {
    if line.hasSuffix(" ") { line.removeLast() }
  }

  private mutating func breakTable(_ sql: String) {
    var depth = 0
    for token in SQLToken.all(in: sql, withSpace: true) {
      depth = token.depth
      switch token.source {
      case _ where token.kind == .space: if line.last?.isWhitespace != true { line += " " }
      // By bytes: what combines with the second `-` would hide the end of the line.
      case let comment where comment.utf8.starts(with: "--".utf8):
        line += comment
        end(indent: depth > 0 ? "  " : "")
      case let comment where token.kind == .comment:
        line += comment.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      case "(" where depth == 0:
        line += "("
        end(indent: "")
      case ")":
        depth == 1 ? end(indent: "  ") : dropSpace()
        depth -= 1
        line += ")"
      case "," where depth == 1:
        dropSpace()
        line += ","
        end(indent: "  ")
      case let source: line += source
      }
    }
    end(indent: depth > 0 ? "  " : "")
  }
}
