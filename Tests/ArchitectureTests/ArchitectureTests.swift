import Foundation
import TestSupport
import Testing

@Suite("Layering: imports point one way only")
struct ArchitectureTests {
  /// Read once: without the optimizer it takes a second.
  private static let onDisk = Result { try Architecture() }

  @Test("No arrow but the agreed ones")
  func agreedArrowsOnly() throws {
    let architecture = try Self.onDisk.get()
    #expect(architecture.violations == [])
    #expect(architecture.files > 10, "too few source files were found for the check to mean anything")
  }

  @Test("The agreed table itself points downwards")
  func tableIsOrdered() {
    var below = Set(Layering.arrows.map(\.module))
    for (module, mayImport) in Layering.arrows {
      below.remove(module)
      let own = mayImport.intersection(Layering.arrows.map(\.module))
      #expect(own.subtracting(below) == [], "\(module) points upwards")
    }
  }

  @Test(
    "A wrong import is found",
    arguments: [
      ("AppContainer", "import ContainerTransaction", "may not import ContainerTransaction"),
      ("AppContainer", "import ContainerTransaction", "circular imports"),
      ("ArchiveFile", "@testable import AppContainer", "may not import AppContainer"),
      ("DrydockCommand", "internal import struct AppContainer.Container", "may not import AppContainer"),
      ("MigrationEngine", "import CPlatform", "CPlatform must have exactly one importer"),
      ("TestSupport", "@_exported import Drydock", "may not import Drydock"),
    ])
  func wrongImport(module: String, line: String, message: String) throws {
    var architecture = try Self.onDisk.get()
    try TemporaryDirectory.with { directory in
      try Data("// A made-up file.\n\(line)\n".utf8).write(to: URL(fileURLWithPath: directory("Wrong.swift")))
      let read = try SourceImports(
        below: URL(fileURLWithPath: directory.path), root: URL(fileURLWithPath: directory.path))
      #expect(read.files == 1 && read.imports.map(\.place) == ["Wrong.swift:2"])
      architecture.imports[module, default: []] += read.imports
    }
    let violations = architecture.violations
    #expect(violations.contains { $0.contains(message) }, "\(violations)")
  }

  @Test("A wrong, a missing and an unknown dependency in Package.swift are found")
  func wrongDependency() throws {
    func violations(replacing text: String, with other: String) throws -> [String] {
      var architecture = try Self.onDisk.get()
      architecture.targets = try Architecture.targets { manifest in
        try #require(manifest.contains(text))
        return manifest.replacingOccurrences(of: text, with: other)
      }
      return architecture.violations
    }
    let upwards = try violations(
      replacing: "name: \"ContainerTransaction\",\n      dependencies: [",
      with: "name: \"ContainerTransaction\",\n      dependencies: [\"MigrationEngine\", ")
    #expect(upwards.contains("Package.swift: ContainerTransaction may not depend on MigrationEngine"))
    #expect(upwards.contains { $0.contains("circular imports") })
    let undeclared = try violations(
      replacing: "name: \"AgeEncryption\", dependencies: [\"DrydockErrors\", \"Cryptography\"]",
      with: "name: \"AgeEncryption\", dependencies: [\"DrydockErrors\"]")
    #expect(undeclared.contains { $0.contains("imports Cryptography but does not declare it") })
    let unknown = try violations(
      replacing: "targets: [\n", with: "targets: [\n    .target(name: \"Shortcut\"),\n")
    #expect(unknown.contains { $0.contains("Shortcut is not in the layering") })
  }

  @Test("One file writes to the standard streams: elsewhere a failed write could go unnoticed")
  func standardStreams() throws {
    let words = [
      " print(", "(print(", "{ print(", " debugPrint(", " fputs(", " fwrite(", "fprintf(",
    ]
    let names = [
      "STDOUT_FILENO", "STDERR_FILENO", "FileHandle.standardOutput", "FileHandle.standardError",
      "FileDescriptor.standardOutput", "FileDescriptor.standardError",
    ]
    var found: [String] = []
    let sources = Architecture.root.appendingPathComponent("Sources")
    for case let path as String in FileManager.default.enumerator(atPath: sources.path) ?? .init() {
      guard path.hasSuffix(".swift"), !path.hasSuffix("/StandardStreams.swift") else { continue }
      let text = try String(contentsOf: sources.appendingPathComponent(path), encoding: .utf8)
      // One search in the whole file is as fast as the library's.
      guard (words + names).contains(where: { strstr(text, $0) != nil }) else { continue }
      for line in text.split(separator: "\n") where !line.drop(while: { $0 == " " }).hasPrefix("//") {
        let asks = line.contains("isatty(") || line.contains("fstat(") || line.contains("func print(")
        if !asks, (words + names).contains(where: line.contains) { found.append("\(path): \(line)") }
      }
    }
    #expect(found == [])
  }
}
