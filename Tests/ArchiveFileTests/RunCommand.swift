import Foundation

/// What a command came to.
struct CommandResult {
  let status: Int32
  let output: [UInt8]
  let errors: String

  var text: String { String(decoding: output, as: UTF8.self) }
}

/// Runs a command found in PATH, without a shell. Output goes to files, so that no full pipe can stop it.
func run(_ command: String, _ arguments: [String], in directory: String? = nil) throws -> CommandResult {
  try withTemporaryDirectory { scratch in
    let outputPath = scratch + "/out"
    let errorPath = scratch + "/err"
    for path in [outputPath, errorPath] { try Data().write(to: URL(fileURLWithPath: path)) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [command] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(["LC_ALL": "C.UTF-8", "TZ": "UTC"]) {
      $1
    }
    if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
    let output = try FileHandle(forWritingTo: URL(fileURLWithPath: outputPath))
    let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: errorPath))
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try output.close()
    try errors.close()
    return CommandResult(
      status: process.terminationStatus,
      output: Array(try Data(contentsOf: URL(fileURLWithPath: outputPath))),
      errors: String(decoding: try Data(contentsOf: URL(fileURLWithPath: errorPath)), as: UTF8.self))
  }
}

/// A new directory that is removed afterwards.
func withTemporaryDirectory<T>(_ body: (String) throws -> T) throws -> T {
  let path = NSTemporaryDirectory() + "drydock-test-" + UUID().uuidString
  try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: path) }
  return try body(path)
}
