import AppContainer
import DrydockErrors

/// What the name of another tool's file says.
struct ToolFile: Equatable {
  /// Which way it goes.
  enum Way: Sendable, Equatable {
    /// Sections of the file say so, or there is no way back.
    case whole
    case up
    case down
  }

  /// The version as the tool's table has it, with leading zeros.
  let version: String
  /// The same as the number of a migration: the schema version after it.
  let number: Int
  let name: String
  let way: Way

  /// Nil for a file that the tool does not look at.
  ///
  /// - Throws: ``DrydockError`` for one that it does look at, and whose number cannot be used.
  init?(_ file: String, _ format: MigrationTool.Format) throws {
    guard let parts = Self.parts(file, format) else { return nil }
    (version, name, way) = parts
    guard let number = Int(version), number > 0, number < Int.max else {
      throw DrydockError(
        .catalog, "the number \(version) cannot be a version: it has to be between 1 and \(Int.max - 1)")
    }
    // The file N of SQLDelight leads from version N to the next.
    self.number = format == .sqldelight ? number + 1 : number
  }

  private static func parts(
    _ file: String, _ format: MigrationTool.Format
  ) -> (version: String, name: String, way: Way)? {
    switch format {
    case .dbmate:
      guard file.hasSuffix(".sql"), let (digits, rest) = number(at: file.dropLast(4)) else { return nil }
      return (digits, trimmed(rest), .whole)
    case .golangMigrate:
      guard let (digits, rest) = number(at: file[...]), rest.first == "_",
        let match = rest.wholeMatch(of: #/_(.*)\.(up|down)\..*/#)
      else { return nil }
      return (digits, String(match.1), match.2 == "up" ? .up : .down)
    case .goose:
      guard file.hasSuffix(".sql") || (file.hasSuffix(".go") && !file.hasSuffix("_test.go")),
        let (digits, rest) = number(at: file[...]), rest.first == "_", let dot = rest.lastIndex(of: ".")
      else { return nil }
      return (digits, trimmed(rest[..<dot]), .whole)
    case .sqldelight:
      guard file.hasSuffix(".sqm"), let start = file.firstIndex(where: isDigit) else { return nil }
      let version = file[start...].dropLast(4).prefix { isDigit($0) || ",:.-_T ".contains($0) }
      return (version.filter(isDigit), file, .whole)
    }
  }

  private static func isDigit(_ character: Character) -> Bool { character.isASCII && character.isNumber }

  private static func number(at text: Substring) -> (digits: String, rest: Substring)? {
    let digits = text.prefix(while: isDigit)
    return digits.isEmpty ? nil : (String(digits), text[digits.endIndex...])
  }

  /// The name without what stands between it and the number.
  private static func trimmed(_ text: Substring) -> String { String(text.drop { "_-. ".contains($0) }) }
}

extension MigrationTool.Format {
  /// What the names of its migrations look like.
  private var pattern: String {
    switch self {
    case .dbmate: "20260101120000_name.sql"
    case .golangMigrate: "000001_name.up.sql with 000001_name.down.sql"
    case .goose: "00001_name.sql"
    case .sqldelight: "1.sqm"
    }
  }

  /// Whether a file that the tool does not look at was probably meant as a migration.
  ///
  /// - Parameter inFolderOfNone: whether the folder has no migration at all: then every file of SQL was.
  func seemsToBeMigration(_ file: String, inFolderOfNone: Bool) -> Bool {
    let name = file.lowercased()
    if self == .sqldelight, name.hasSuffix(".sqm") { return true }
    guard name.hasSuffix(".sql") || name.hasSuffix(".sqm") else { return false }
    return inFolderOfNone || (self != .sqldelight && name.first?.isNumber == true)
  }

  /// Says why such a file is none, with the nearest pattern.
  func refusal(of file: String) -> String {
    let fitting = Self.allCases.filter { $0 != self && (try? ToolFile(file, $0)).flatMap(\.self) != nil }
    let hint =
      fitting.isEmpty
      ? "" : "; the name is one of \(fitting.map(\.rawValue).joined(separator: " or ")), see `format`"
    return
      "\(rawValue) would not run this file: its migrations are called \(pattern)\(hint); rename it, or move it out"
  }
}

extension MigrationTool {
  /// The version of a migration as the tool's table has it.
  func version(of migration: Migration) -> String {
    let file = migration.file.split(separator: "/").last.map(String.init) ?? ""
    return (try? ToolFile(file, format))?.version ?? String(migration.number)
  }
}
