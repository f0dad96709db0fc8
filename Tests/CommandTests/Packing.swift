import TestSupport

/// The ways of packing a container into one file, each with the real program.
enum Packing: String, CaseIterable, Sendable {
  case gnuTar = "Notes.tar"
  case gnuTarOfContent = "Content.tar"
  case gzip = "Notes.tar.gz"
  case zstd = "Notes.tar.zst"
  /// No format is told by its name.
  case bsdtar = "Notes.backup"
  case bsdtarZip = "Notes.zip"
  case pythonZip = "Python.zip"

  /// Those that keep extended attributes, hard links and names of any bytes.
  static let whole: [Packing] = [.gnuTar, .gnuTarOfContent, .gzip, .zstd, .bsdtar]
  static let zips: [Packing] = [.bsdtarZip, .pythonZip]
  /// One of each format for what is read alike.
  static let tried = TestExtent.isFull ? allCases : [.gzip, .bsdtar, .bsdtarZip]

  /// Packs the container `Notes`; gives the file's name.
  @discardableResult
  func pack(_ name: String = "Notes", in sandbox: Sandbox) throws -> String {
    let xattrs = ["--xattrs", "--xattrs-include=*"]
    let (program, arguments): (String, [String]) =
      switch self {
      case .gnuTar: ("tar", xattrs + ["-cf", rawValue, name])
      case .gnuTarOfContent: ("tar", xattrs + ["-cf", rawValue, "-C", name, "."])
      case .gzip: ("tar", xattrs + ["-czf", rawValue, name])
      case .zstd: ("tar", xattrs + ["--zstd", "-cf", rawValue, name])
      case .bsdtar: ("bsdtar", ["-cf", rawValue, name])
      case .bsdtarZip: ("bsdtar", ["--format", "zip", "-cf", rawValue, name])
      case .pythonZip: ("python3", ["-m", "zipfile", "-c", rawValue, name])
      }
    let result = try Command.run(
      Tools.system(program), arguments, environment: ["LC_ALL": "C.UTF-8"], directory: sandbox.directory.path)
    guard result.succeeded else { throw SystemFailure("\(program): \(result)") }
    return rawValue
  }
}

extension Sandbox {
  /// Removes files whose names are not UTF-8, which zip programs cannot write.
  func removeOddNames(_ name: String = "Notes") throws {
    try python(
      "import os\nfor d, _, n in os.walk(b'\(name)'):\n [os.remove(d+b'/'+f) for f in n if b'\\xff' in f]")
  }
}
