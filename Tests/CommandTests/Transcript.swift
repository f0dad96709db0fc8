import Foundation
import TestSupport

/// A recorded terminal session: commands behind `$ `, what they print to standard output as it is, what they print
/// to standard error behind `! `, and `[exit N]` where the exit code is not 0. Lines before the first command are
/// a heading.
struct Transcript: Equatable {
  struct Step: Equatable {
    var command: String
    var output: [String]
  }

  var heading: [String] = []
  var steps: [Step] = []

  init(_ text: String) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    for line in lines {
      if line.hasPrefix("$ ") {
        steps.append(Step(command: String(line.dropFirst(2)), output: []))
      } else if steps.isEmpty {
        heading.append(line)
      } else {
        steps[steps.count - 1].output.append(line)
      }
    }
  }

  var text: String {
    (heading + steps.flatMap { ["$ " + $0.command] + $0.output }).map { $0 + "\n" }.joined()
  }

  /// Runs every command in the sandbox, and gives the session as it went this time.
  func replayed(in sandbox: Sandbox) throws -> Transcript {
    var replayed = self
    let programs = (sandbox.program as NSString).deletingLastPathComponent
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    // A session says itself where the device key is.
    let environment = sandbox.environment.merging([
      "PATH": "\(programs):\(path)", "DRYDOCK_DEVICE_KEY": nil, "DEVICE_BACKUPS": ImportTests.sample(""),
    ]) {
      $1
    }
    for (number, step) in steps.enumerated() {
      let result = try Command.run(
        "/bin/sh", ["-c", step.command], environment: environment, directory: sandbox.directory.path)
      var output = lines(result.output) + lines(result.errors).map { "! " + $0 }
      if let signal = result.signal { output.append("[signal \(signal)]") }
      if result.signal == nil, result.exitCode != 0 { output.append("[exit \(result.exitCode)]") }
      replayed.steps[number].output = output.map { Self.normalized($0, in: sandbox) }
    }
    return replayed
  }

  private func lines(_ text: String) -> [String] {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    return lines
  }

  /// Puts a placeholder for everything that is another each time. The patterns are slow, and most lines have nothing for them.
  static func normalized(_ line: String, in sandbox: Sandbox) -> String {
    var line = line
    func has(_ text: String) -> Bool { strstr(line, text) != nil }
    if has(sandbox.directory.path) { line = line.replacing(sandbox.directory.path, with: "{HERE}") }
    if strpbrk(line, "0123456789") != nil {
      line.replace(
        /com\.example\.notes_\d{8}T\d{6}Z_[0-9a-f]{16}(-[0-9a-f]{8})?\.tar\.zst/, with: "{ARCHIVE}")
      line.replace(/\d{8}T\d{6}Z-[0-9a-f]{8}/, with: "{ID}")
      line.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/, with: "{TIME}")
      line.replace(/\b[0-9a-f]{16,64}\b/, with: "{ID}")
      line.replace(/\bage1[0-9a-z]{58}\b/, with: "{RECIPIENT}")
      line.replace(/\b\d+(\.\d+)? ms\b/, with: "{MS} ms")
      line.replace(/\b\d+\.\d\d s\b/, with: "{S} s")
      line.replace(/"seconds":\d+(\.\d+)?/, with: #""seconds":{S}"#)
      line.replace(/\b\d+(\.\d+)? (B|kB|MB|GB)\b/, with: "{SIZE}")
      line.replace(/process \d+/, with: "process {PID}")
    }
    // These may be without a digit.
    if has("the changes since ") {
      line.replace(/the changes since [0-9a-f]{8}/, with: "the changes since {ID}")
    }
    if has("#") { line.replace(/#[0-9a-f]{8}\b/, with: "#{MARK}") }
    if has("restored ") { line.replace(#/restored [0-9a-f]{8} /#, with: "restored {ID} ") }
    line.replace(#/^[0-9a-f]{8} /#, with: "{ID} ")
    // The widths of columns follow the sizes in them.
    let indent = String(line.prefix { $0 == " " })
    let text = String(line.dropFirst(indent.count))
    return indent + (strstr(text, "  ") == nil ? text : text.replacing(#/ {2,}/#, with: "  "))
  }
}
