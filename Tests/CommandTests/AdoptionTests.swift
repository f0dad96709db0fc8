import Foundation
import TestSupport
import Testing

/// An app that was there before Drydock: its containers have version numbers of its own, or none.
@Suite("Adopting an app")
struct AdoptionTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox() }

  private static let configuration =
    "layout: ios\nmigrations: Own\nversion-markers: [{defaults: schemaVersion}]\n"

  /// A container of the app's version, and two migrations that are new.
  private func prepare(_ sandbox: Sandbox, _ name: String = "Notes", number: Int? = 7) throws {
    let key = number.map { "<key>schemaVersion</key><integer>\($0)</integer>" } ?? ""
    try sandbox.write("drydock.yaml", Self.configuration)
    for number in 1...2 {
      try sandbox.write("Own/000\(number)_m.yaml", "steps: [defaults.set: {values: {m\(number): true}}]\n")
    }
    try sandbox.shell("mkdir -p \(name)/Documents \(name)/Library/Preferences")
    try sandbox.write(
      "\(name)/Library/Preferences/com.example.own.plist",
      "<plist version=\"1.0\"><dict><key>theme</key><string>sepia</string>\(key)</dict></plist>\n")
  }

  @Test(
    "drydock's own working directory is no use of the container, and what is named from it is found afterwards"
  )
  func ownDirectory() throws {
    try prepare(sandbox, number: 0)
    func drydock(_ arguments: String..., in directory: String) throws -> CommandResult {
      try Command.run(
        sandbox.program, arguments, environment: sandbox.environment, directory: sandbox(directory))
    }
    try drydock("migrate", ".", "--each", "-m", "../Own", in: "Notes").expect()
    #expect(try sandbox.succeed("status Notes").hasPrefix("version 2 of 2"))
    try drydock("rollback", "..", "--to", "0", "-m", "../../Own", in: "Notes/Documents").expect()
    // A shell would be left in a directory that is gone.
    let shell = try Command.spawn("/bin/sh", ["-c", "echo ready; read x"], directory: sandbox("Notes"))
    try shell.waitForLine("ready")
    try sandbox.expectRefusal(
      "migrate Notes", exit: 5, ["process \(shell.process)", "leave that directory and run it again"])
    try shell.finish()
  }
}
