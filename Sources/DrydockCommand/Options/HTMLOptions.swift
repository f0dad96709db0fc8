import ArgumentParser
import Drydock
import Foundation
import Reports

/// The option of commands whose result can also be a page.
struct HTMLOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Also write the result as a page of HTML, for people.", valueName: "file"))
  var html: String?

  /// Refuses a place where no file can be, and makes its directory: before the work, not after.
  func prepare() throws {
    guard let html else { return }
    let place = realPath(html) ?? html
    let type = try? FileManager.default.attributesOfItem(atPath: place)[.type] as? FileAttributeType
    if let type, type != .typeRegular {
      let what = type == .typeDirectory ? "a directory" : "not a regular file"
      throw UsageError(message: "--html \(html) is \(what): give a file")
    }
    try Self.writing(html) {
      try FileManager.default.createDirectory(
        atPath: Self.folder(of: place), withIntermediateDirectories: true)
    }
  }

  private static func folder(of file: String) -> String {
    let folder = (file as NSString).deletingLastPathComponent
    return folder.isEmpty ? "." : folder
  }

  /// Runs the work of a command. When it fails, the page says so: an earlier page in its place would be taken for this
  /// run's.
  ///
  /// - Parameters:
  ///   - kind: what the command does, such as `Dry run of migrations`.
  ///   - title: what it is done to.
  func reporting<T>(_ kind: String, _ title: String, _ body: () throws -> T) throws -> T {
    try prepare()
    do { return try body() } catch let error where !(error is ExitCode) {
      let lines = Failure(error).text.split(whereSeparator: \.isNewline).map(String.init)
      // The command's own failure is what counts.
      try? write(HTMLPage(failed: kind, title: title, lines: lines))
      throw error
    }
  }

  /// Writes the page, if one is asked for, in one step. It has the user's data: only the owner can read it.
  func write(_ page: @autoclosure () -> HTMLPage) throws {
    guard let html else { return }
    let bytes = Array(page().html(program: "drydock \(DrydockVersion.number)").utf8)
    let place = realPath(html) ?? html
    try Self.writing(html) {
      try Directory(Self.folder(of: place)).replace(
        ContainerPath((place as NSString).lastPathComponent), with: bytes)
    }
  }

  private static func writing(_ file: String, _ body: () throws -> Void) throws {
    do { try body() } catch {
      let reason = (error as? DrydockError)?.message ?? error.localizedDescription
      throw DrydockError(.io, "the page cannot be written: \(reason)", path: file, cause: error)
    }
  }
}
