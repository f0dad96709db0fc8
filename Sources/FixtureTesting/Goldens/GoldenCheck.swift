import AppContainer
import ContainerTransaction

/// Whether a container is what a golden says, and where it is not.
public enum GoldenCheck {
  /// What differs, one finding for each key, row, item or path; empty when the container is like the golden. The
  /// container is only read.
  ///
  /// What is wrong with the golden itself (a file that is missing or cannot be understood) is a finding too: it names
  /// the file and the line.
  ///
  /// - Parameters:
  ///   - golden: The golden's directory. What it was written for does not matter: a state that was written down in the
  ///     same run is one too.
  ///   - volatile: What is another value in each run: the golden has words in its place.
  ///   - deviceKeys: What opens the container's vault; without it, a vault is a finding.
  ///   - redactor: What hides secrets: the one of the run, so that the same value is shown the same in all findings.
  /// - Throws: What reading the container throws.
  public static func findings(
    _ container: Container, against golden: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil, redactor: Redactor = Redactor()
  ) throws -> [FixtureFinding] {
    var options = ComparisonOptions()
    options.rowLimit = 10
    options.redactor = redactor
    options.deviceKeys = deviceKeys
    let difference = try Transaction.inspect(container) {
      try Comparison(of: GoldenSide(Golden(golden)), with: LiveSide($0), options: options).difference
    }
    return difference.isEmpty ? [] : [FixtureFinding(.golden, "the container is not like its golden")]
  }

  /// Writes a container down as a golden, with all of it that belongs to the app: also what no backup takes.
  ///
  /// - Parameter directory: The directory to make; it must not exist, its parent must.
  /// - Throws: What reading the container throws; `FixtureError` with code `notBuilt` for what a golden cannot hold.
  public static func write(
    _ container: Container, to directory: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil
  ) throws {
    let (parent, name) = try ContainerPath.split(directory)
    try Directory(parent).createDirectory(name, mode: 0o755)
    try Transaction.inspect(container) { try GoldenWriter.write(LiveSide($0), to: directory) }
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
