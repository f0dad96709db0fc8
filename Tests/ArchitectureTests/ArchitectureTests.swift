import Foundation
import Testing

@Suite("Layering: imports point one way only")
struct ArchitectureTests {
  private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test("No arrow but the agreed ones")
  func agreedArrowsOnly() throws {
    let architecture = try Architecture(root: root)
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
    "A wrong import in a copy of the sources is found",
    arguments: [
      ("AppContainer", "import ContainerTransaction", "may not import ContainerTransaction"),
      ("AppContainer", "import ContainerTransaction", "circular imports"),
      ("ArchiveFile", "@testable import AppContainer", "may not import AppContainer"),
      ("DrydockCommand", "internal import struct AppContainer.Container", "may not import AppContainer"),
      ("MigrationEngine", "import CPlatform", "CPlatform must have exactly one importer"),
      ("TestSupport", "@_exported import Drydock", "may not import Drydock"),
    ])
  func wrongImport(module: String, line: String, message: String) throws {
    try withCopy { copy in
      let folder = module == "TestSupport" ? "Tests/TestSupport" : "Sources/\(module)"
      let file = copy.appendingPathComponent("\(folder)/Wrong.swift")
      try Data("// A made-up file.\n\(line)\n".utf8).write(to: file)
      let violations = try Architecture(root: copy).violations
      #expect(violations.contains { $0.contains(message) }, "\(violations)")
    }
  }

  @Test("A wrong dependency in a copy of Package.swift is found")
  func wrongDependency() throws {
    try withCopy { copy in
      let manifest = copy.appendingPathComponent("Package.swift")
      let text = try String(contentsOf: manifest, encoding: .utf8)
      let changed = text.replacingOccurrences(
        of: "name: \"ContainerTransaction\",\n      dependencies: [",
        with: "name: \"ContainerTransaction\",\n      dependencies: [\"MigrationEngine\", ")
      try #require(changed != text)
      try Data(changed.utf8).write(to: manifest)
      let violations = try Architecture(root: copy).violations
      #expect(violations.contains("Package.swift: ContainerTransaction may not depend on MigrationEngine"))
      #expect(violations.contains { $0.contains("circular imports") })
    }
  }

  @Test("An import that Package.swift does not declare is found")
  func undeclaredImport() throws {
    try withCopy { copy in
      let manifest = copy.appendingPathComponent("Package.swift")
      let text = try String(contentsOf: manifest, encoding: .utf8)
      let declared =
        "name: \"AppContainer\",\n      dependencies: [\n        \"DrydockErrors\", \"AgeEncryption\", "
      let changed = text.replacingOccurrences(
        of: declared, with: "name: \"AppContainer\",\n      dependencies: [\"DrydockErrors\", ")
      try #require(changed != text)
      try Data(changed.utf8).write(to: manifest)
      let violations = try Architecture(root: copy).violations
      #expect(violations.contains { $0.contains("imports AgeEncryption but does not declare it") })
    }
  }

  @Test("A new module that is not in the layering is found")
  func unknownModule() throws {
    try withCopy { copy in
      let manifest = copy.appendingPathComponent("Package.swift")
      let text = try String(contentsOf: manifest, encoding: .utf8)
      let changed = text.replacingOccurrences(
        of: "targets: [\n", with: "targets: [\n    .target(name: \"Shortcut\"),\n")
      try Data(changed.utf8).write(to: manifest)
      let violations = try Architecture(root: copy).violations
      #expect(violations.contains { $0.contains("Shortcut is not in the layering") })
    }
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
    let sources = root.appendingPathComponent("Sources")
    for case let path as String in FileManager.default.enumerator(atPath: sources.path) ?? .init() {
      guard path.hasSuffix(".swift"), !path.hasSuffix("/StandardStreams.swift") else { continue }
      let text = try String(contentsOf: sources.appendingPathComponent(path), encoding: .utf8)
      for line in text.split(separator: "\n") where !line.drop(while: { $0 == " " }).hasPrefix("//") {
        let asks = line.contains("isatty(") || line.contains("fstat(") || line.contains("func print(")
        if !asks, (words + names).contains(where: line.contains) { found.append("\(path): \(line)") }
      }
    }
    #expect(found == [])
  }

  @Test("What an import looks like")
  func importLines() {
    #expect(SourceImports.module(of: "import Foundation") == "Foundation")
    #expect(SourceImports.module(of: "@preconcurrency @_spi(Testing) public import GRDB") == "GRDB")
    #expect(SourceImports.module(of: "  import struct Yams.Mark") == "Yams")
    #expect(SourceImports.module(of: "// import Yams") == nil)
    #expect(SourceImports.module(of: "let important = 1") == nil)
  }

  /// Runs a closure with a copy of the manifest and the sources.
  private func withCopy(_ body: (URL) throws -> Void) throws {
    let files = FileManager.default
    let copy = files.temporaryDirectory.appendingPathComponent("drydock-architecture-\(UUID().uuidString)")
      .resolvingSymlinksInPath()
    try files.createDirectory(
      at: copy.appendingPathComponent("Tests"), withIntermediateDirectories: true)
    defer { try? files.removeItem(at: copy) }
    for path in ["Package.swift", "Sources", "Tests/NotesApp", "Tests/TestSupport"] {
      try files.copyItem(at: root.appendingPathComponent(path), to: copy.appendingPathComponent(path))
    }
    try body(copy)
  }
}
