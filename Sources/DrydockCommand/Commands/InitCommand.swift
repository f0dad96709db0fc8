import ArgumentParser
import Drydock
import Foundation

struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Write a commented drydock.yaml into the working directory.",
    discussion: """
      With a container, what can be detected is filled in. The number by which the
      app counts its own schema becomes the one before the first migration, unless
      Migrations/releases.yaml explains it. An existing file is never replaced.

      Example: drydock init Notes
      """)

  @Argument(help: "A container to take the app, the settings file and the databases from.") var container:
    String?
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var path: String
  }

  func run() throws {
    let path = FileManager.default.currentDirectoryPath + "/" + ContainerConfiguration.fileName
    let released = try Releases.read("Migrations").version
    let text =
      try container.map { path in
        try Container.reading(at: path) { try ConfigurationTemplate($0, released: released).text() }
      } ?? ConfigurationTemplate(nil, released: released).text()
    let directory = try Directory(FileManager.default.currentDirectoryPath)
    guard try directory.status(ContainerPath(ContainerConfiguration.fileName)) == nil else {
      throw DrydockError(.io, "already exists, and is not replaced; edit it, or move it away", path: path)
    }
    try directory.create(ContainerPath(ContainerConfiguration.fileName), Array(text.utf8), mode: 0o644)
    if common.json { return Output.json(Result(path: path)) }
    Output.line(path)
  }
}
