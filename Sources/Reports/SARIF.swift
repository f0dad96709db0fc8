import Drydock
import DrydockTesting
import Foundation

/// Results with their places in files, as a log in SARIF 2.1.0 (OASIS), which code hosts and editors show at the lines.
package struct SARIFLog: Sendable {
  /// What is checked.
  package struct Rule: Sendable {
    /// Such as `test/golden`.
    package var id: String
    /// A sentence.
    package var summary: String

    package init(_ id: String, _ summary: String) { (self.id, self.summary) = (id, summary) }
  }

  /// A file, and a line and column in it, from 1.
  package struct Place: Sendable {
    package var file: String
    package var line: Int?
    package var column: Int?
    /// What is there.
    package var note: String?

    package init(_ file: String, line: Int? = nil, column: Int? = nil, note: String? = nil) {
      (self.file, self.line, self.column, self.note) = (file, line, column, note)
    }
  }

  package struct Result: Sendable {
    package var rule: String
    package var level: AuditSeverity
    /// Plain text, of one or several lines.
    package var message: String
    package var place: Place?
    package var related: [Place] = []
    /// What identifies the result in every run: no value, nor anything that is new in each run.
    package var fingerprint: String?
    /// Why the result does not count; nil when it counts.
    package var accepted: String?

    package init(_ rule: String, _ level: AuditSeverity, _ message: String, at place: Place? = nil) {
      (self.rule, self.level, self.message, self.place) = (rule, level, message, place)
    }
  }

  private let rules: [Rule]
  private let results: [Result]
  private let directory: String
  private let root: String

  /// - Parameters:
  ///   - rules: Those that the results name; the others are written, too.
  ///   - root: The repository's directory, which files are named from; an absolute path.
  ///   - directory: The working directory, which relative names of files begin at; an absolute path.
  package init(_ results: [Result], rules: [Rule], root: String, directory: String) {
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
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: return String(UnicodeScalar(byte))
      case _ where "-._~/".utf8.contains(byte): return String(UnicodeScalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        return "%" + (digits.count < 2 ? "0" : "") + digits
      }
    }.joined()
  }

  /// A message may have links and placeholders: a value that looks like one must be none.
  private static func text(_ message: String) -> [String: String] {
    let plain = message.split(separator: "\n", omittingEmptySubsequences: false)
      .map { String($0).printable }.joined(separator: "\n")
    return ["text": plain.replacing("](", with: "] (").replacing(/\{(\d+)\}/) { "{{\($0.output.1)}}" }]
  }
}
