/// Two texts compared word by word, or line by line, for the marks of a page.
enum TextComparison {
  /// Two values with the words marked that differ; nothing is marked where they have little in common.
  static func values(_ before: String, _ after: String) -> (before: [HTMLSpan], after: [HTMLSpan]) {
    let plain = ([HTMLSpan.plain(before)], [HTMLSpan.plain(after)])
    // What the page cuts is not compared either.
    guard max(before.utf8.count, after.utf8.count) <= HTMLText.limit else { return plain }
    let (old, new) = (words(before), words(after))
    let (removed, added) = changes(old, new)
    func size(_ words: [Substring], _ left: Set<Int> = []) -> Int {
      words.enumerated().reduce(0) { sum, word in
        left.contains(word.offset) || word.element.first?.isLetterOrDigit != true
          ? sum : sum + word.element.count
      }
    }
    guard size(old, removed) * 5 >= max(size(old), size(new)) * 2 else { return plain }
    return (spans(old, marking: removed), spans(new, marking: added))
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
  static func lines(_ before: [String], _ after: [String]) -> [HTMLLine] {
    let (removed, added) = changes(before.map(withoutComma), after.map(withoutComma))
    var (result, old, new) = ([HTMLLine](), 0, 0)
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
        HTMLLine(kind: .removed, spans: $0 < pairs.count ? pairs[$0].before : [.plain(gone[$0])])
      }
      result += come.indices.map {
        HTMLLine(kind: .added, spans: $0 < pairs.count ? pairs[$0].after : [.plain(come[$0])])
      }
      if old < before.count, new < after.count {
        result.append(HTMLLine(kind: .same, spans: [.plain(after[new])]))
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

  private static func leavingOut(_ lines: [HTMLLine]) -> [HTMLLine] {
    guard lines.contains(where: { $0.kind != .same }) else { return lines }
    var near = Set<Int>()
    for index in lines.indices where lines[index].kind != .same {
      near.formUnion((index - context)...(index + context))
    }
    var (result, hidden) = ([HTMLLine](), [HTMLLine]())
    func end() {
      if hidden.count > shortest {
        result.append(HTMLLine(kind: .gap, spans: [.plain("… \(hidden.count) lines without a change")]))
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

  private static func spans(_ words: [Substring], marking marked: Set<Int>) -> [HTMLSpan] {
    var spans: [HTMLSpan] = []
    for (index, word) in words.enumerated() {
      let kind: HTMLSpan.Kind = marked.contains(index) ? .mark : .plain
      if spans.last?.kind == kind {
        spans[spans.count - 1].text += word
      } else {
        spans.append(HTMLSpan(kind: kind, text: String(word)))
      }
    }
    return spans
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
  private var depth = 0

  init(_ sql: String) {
    if sql.prefixMatch(of: /\s*CREATE\s+(?:TEMP\s+|TEMPORARY\s+)?TABLE\b/.ignoresCase()) != nil {
      breakTable(Array(sql.unicodeScalars))
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

  private mutating func breakTable(_ scalars: [Unicode.Scalar]) {
    var index = 0
    while index < scalars.count {
      let scalar = scalars[index]
      index += 1
      switch scalar {
      case "'", "\"", "`", "[":
        let close: Unicode.Scalar = scalar == "[" ? "]" : scalar
        line.unicodeScalars.append(scalar)
        while index < scalars.count {
          line.unicodeScalars.append(scalars[index])
          index += 1
          if scalars[index - 1] == close { break }
        }
      case "-" where index < scalars.count && scalars[index] == "-":
        let stop = scalars[index...].firstIndex(of: "\n") ?? scalars.count
        line += "-"
        line.unicodeScalars.append(contentsOf: scalars[index..<stop])
        index = stop
        end(indent: depth > 0 ? "  " : "")
      case "(":
        depth += 1
        line += "("
        if depth == 1 { end(indent: "") }
      case ")":
        depth == 1 ? end(indent: "  ") : dropSpace()
        depth = max(0, depth - 1)
        line += ")"
      case "," where depth == 1:
        dropSpace()
        line += ","
        end(indent: "  ")
      case _ where scalar.properties.isWhitespace:
        if line.last?.isWhitespace != true { line += " " }
      default: line.unicodeScalars.append(scalar)
      }
    }
    end(indent: depth > 0 ? "  " : "")
  }
}
