import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Whether a container is what a golden says, and where it is not.
package enum GoldenCheck {
  /// What differs, one finding for each key, row, item or path; empty when the container is like the golden. The
  /// container is only read.
  ///
  /// What is wrong with the golden itself (a file that is missing or cannot be understood) is a finding too: it names
  /// the file and the line.
  ///
  /// - Parameters:
  ///   - golden: The golden's directory. What it was written for does not matter: a state that was written down in the
  ///     same run is one too.
  ///   - volatile: What is another value in each run: it is not compared.
  ///   - deviceKeys: What opens the container's vault; without it, the sealed files are compared.
  ///   - redactor: What hides secrets: the one of the run, so that the same value is shown the same in all findings.
  /// - Throws: What reading the container throws.
  package static func findings(
    _ container: Container, against golden: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil, redactor: Redactor = Redactor()
  ) throws -> [FixtureFinding] {
    try ScratchDirectory.withTemporary { scratch in
      let found = scratch.full("found")
      try write(container, to: found, volatile: volatile, deviceKeys: deviceKeys)
      if try GoldenText.isSame(golden, found) { return [] }
      do {
        return try GoldenComparison(golden, found, volatile, redactor, in: scratch).findings()
      } catch let error as DrydockError {
        return [malformed(error.message, error.path ?? golden, error.line)]
      }
    }
  }

  /// Writes a container down as a golden, with all of it that belongs to the app: also what no backup takes.
  ///
  /// - Parameter directory: The directory to make; it must not exist, its parent must.
  /// - Throws: What reading the container throws; `DrydockError` with code `malformed` for volatile patterns that are none.
  package static func write(
    _ container: Container, to directory: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil
  ) throws {
    let (parent, name) = try ContainerPath.split(directory)
    try Directory(parent).createDirectory(name, mode: 0o755)
    try Transaction.inspect(container) { stage in
      try GoldenWriter.write(
        LiveSide(stage, .whole), to: directory, volatile: volatile, deviceKeys: deviceKeys)
    }
  }

  private static func malformed(_ message: String, _ file: String, _ line: Int?) -> FixtureFinding {
    var finding = FixtureFinding(.golden, "the golden cannot be read: \(message)")
    (finding.file, finding.line) = (file, line)
    return finding
  }
}

extension ContainerPath {
  /// The directory and the name of a path of the file system.
  static func split(_ path: String) throws -> (String, ContainerPath) {
    guard let slash = path.lastIndex(of: "/") else { return (".", try ContainerPath(path)) }
    let parent = path[..<slash]
    return (
      parent.isEmpty ? "/" : String(parent), try ContainerPath(String(path[path.index(after: slash)...]))
    )
  }
}
