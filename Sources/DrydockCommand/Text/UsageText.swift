import Drydock
import Foundation

/// What the argument parser says of a command line, in the form of all errors: the sentence, and details below.
struct UsageText {
  let text: String

  /// - Parameter text: `Error: Missing …`, with lines `Help:  …`, `Usage: …` and `  See '… --help' …`.
  init(_ text: String) {
    let lines = text.split(separator: "\n").map(String.init).map { line in
      if line.hasPrefix("Error: ") { return Self.sentence(String(line.dropFirst(7))) }
      if line.hasPrefix("Help:  ") { return "  " + line.dropFirst(7) }
      if line.hasPrefix("Usage: ") { return Self.short(usage: "  usage: " + line.dropFirst(7)) }
      if let command = line.wholeMatch(of: #/ *See '(.*)' for more information\./#)?.output.1 {
        return "  see `\(command)`"
      }
      return "  " + line
    }
    self.text = lines.joined(separator: "\n")
  }

  /// A line of usage that fits a screen: the parser lists up to twelve options.
  private static func short(usage: String) -> String {
    // The parser's own short form is the shortest.
    if usage.count <= 80 || usage.contains("[<options>]") { return usage }
    return usage.replacing(#/\s+\[-[^\]]*\]/#, with: "")
      .replacing(#/\s+(?=[<\[]|--)/#, maxReplacements: 1) { _ in " [<options>] " }
  }

  /// The parser's help text with the options of the command itself before those that it shares with others, and the exit codes
  /// and variables at the end.
  static func help(_ text: String) -> String {
    var parts = text.components(separatedBy: "\n\n")
    if let usage = parts.firstIndex(where: { $0.hasPrefix("USAGE:") }) {
      parts[usage] = short(usage: parts[usage])
      let sections = ["ARGUMENTS", "OPTIONS"] + OptionTitle.all.map { $0.uppercased() }
      func rank(_ part: String) -> Int {
        sections.firstIndex { part.hasPrefix($0 + ":\n") } ?? sections.count
      }
      parts[(usage + 1)...].sort { rank($0) < rank($1) }
    }
    for title in ["Exit codes:", "Environment:"] {
      if let part = parts.firstIndex(where: { $0.hasPrefix(title) }) { parts.append(parts.remove(at: part)) }
    }
    // The parser ends a section, and the text, with a line break.
    return parts.map { $0.trimmingCharacters(in: .newlines) }.joined(separator: "\n\n")
  }

  /// A sentence as errors are written: it begins in lower case. The parser's suggestion may be far from what was typed.
  static func sentence(_ text: String) -> String {
    let text = text.replacing(#/'(-*)([^']+)'\. Did you mean '(-*)([^']*)'\?/#) {
      let (_, dashes, word, otherDashes, other) = $0.output
      let isNear = NearestWord.to("\(word)", among: ["\(other)"]) != nil
      return "'\(dashes)\(word)'" + (isNear ? "; did you mean `\(otherDashes)\(other)`?" : "")
    }
    guard let first = text.first, first.isUppercase, text.dropFirst().first?.isLowercase == true else {
      return text
    }
    return first.lowercased() + text.dropFirst()
  }
}
