import Drydock
import DrydockTesting
import Foundation

/// Results with their places in files, as a log in SARIF 2.1.0 (OASIS), which code hosts and editors show at the lines.
package struct SARIFLog {
  /// What is checked, such as `test/golden`, and in a sentence.
  typealias Rule = (id: String, summary: String)

  /// A file, and a line and column in it, from 1.
  struct Place {
    var file: String
    var line: Int?
    var column: Int?
    /// What is there.
    var note: String?
  }

  struct Result {
    var rule: String
    var level: AuditSeverity
    /// Plain text, of one or several lines.
    var message: String
    var place: Place?
    var related: [Place] = []
    /// What identifies the result in every run: no value, nor anything that is new in each run.
    var fingerprint: String?
    /// Why the result does not count; nil when it counts.
    var accepted: String?
  }

  private let rules: [Rule]
  private let results: [Result]
  private let directory: String
  private let root: String

  /// - Parameters:
  ///   - rules: Those that the results name; the others are written, too.
  ///   - root: The repository's directory, which files are named from; an absolute path.
  ///   - directory: The working directory, which relative names of files begin at; an absolute path.
  init(_ results: [Result], rules: [Rule], root: String, directory: String) {
    (self.results, self.rules, self.root, self.directory) = (results, rules, root, directory)
  }

  /// The log as JSON, the same for the same results.
  package var json: Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return ((try? encoder.encode(log)) ?? Data()) + Data("\n".utf8)
  }

  // MARK: The format

  private static let base = "%SRCROOT%"

  private var log: ResultObject {
    let rules = rules.map { ["id": $0.id, "shortDescription": ["text": $0.summary]] as ResultObject }
    let driver: ResultObject = ["name": "drydock", "semanticVersion": DrydockVersion.number, "rules": rules]
    let description = ["text": "The repository's directory, or else the working directory."]
    let run: ResultObject = [
      "tool": ["driver": driver], "columnKind": "unicodeCodePoints",
      "originalUriBaseIds": [Self.base: ["description": description]], "results": results.map(item),
    ]
    return [
      "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
      "version": "2.1.0", "runs": [run],
    ]
  }

  private func item(_ result: Result) -> ResultObject {
    let related = result.related.enumerated().map { location($0.element, id: $0.offset + 1) }
    let suppressions = result.accepted.map { [["kind": "inSource", "justification": $0]] }
    return [
      "ruleId": result.rule, "ruleIndex": rules.firstIndex { $0.id == result.rule },
      "level": result.level.rawValue, "message": Self.text(result.message),
      "locations": result.place.map { [location($0)] }, "relatedLocations": related.isEmpty ? nil : related,
      "partialFingerprints": result.fingerprint.map { ["drydock/v1": $0] },
      "suppressions": suppressions ?? [],
    ]
  }

  private func location(_ place: Place, id: Int? = nil) -> ResultObject {
    let line = place.line.flatMap { $0 < 1 ? nil : $0 }
    let column = place.column.flatMap { $0 < 1 ? nil : $0 }
    let physical: ResultObject = [
      "artifactLocation": artifact(place.file),
      "region": line.map { ["startLine": $0, "startColumn": column] as ResultObject },
    ]
    return ["id": id, "physicalLocation": physical, "message": place.note.map(Self.text)]
  }

  /// A file in the repository by its relative URI, any other by its absolute one.
  private func artifact(_ file: String) -> [String: String] {
    let absolute = file.hasPrefix("/") ? file : directory + "/" + file
    let inside = FindingText.path(URL(fileURLWithPath: absolute).standardized.path, from: root)
    return inside.hasPrefix("/")
      ? ["uri": "file://" + Self.encoded(inside)]
      : ["uri": Self.encoded(inside), "uriBaseId": Self.base]
  }

  /// By RFC 3986; a colon would make a scheme of what is before it.
  private static func encoded(_ path: String) -> String {
    path.utf8.map { byte in
      let isPlain = byte.isDigit || byte.isLetter || "-._~/".utf8.contains(byte)
      return isPlain ? String(UnicodeScalar(byte)) : "%\([byte].hex.uppercased())"
    }.joined()
  }

  /// A message may have links and placeholders: a value that looks like one must be none.
  private static func text(_ message: String) -> [String: String] {
    let plain = message.split(separator: "\n", omittingEmptySubsequences: false)
      .map { String($0).printable }.joined(separator: "\n")
    return ["text": plain.replacing("](", with: "] (").replacing(/\{(\d+)\}/) { "{{\($0.output.1)}}" }]
  }
}
