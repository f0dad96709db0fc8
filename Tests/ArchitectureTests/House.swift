/// Which module may import which: the agreement, written down a second time on purpose, so that a new arrow in
/// `Package.swift` or in a source file is a decision and never an accident.
enum House {
  /// From the top of the house downwards.
  static let arrows: [(module: String, mayImport: Set<String>)] = [
    ("DrydockMain", ["DrydockCommand"]),
    // The example of the guide on migrations in Swift: a program as somebody else writes it.
    ("NotesTool", ["DrydockCommand", "Drydock", "GRDB"]),
    ("DrydockCommand", ["Drydock", "ArgumentParser"]),
    (
      "Drydock",
      [
        "FixtureTesting", "MigrationEngine", "BackupRepository", "ContainerTransaction", "AppContainer",
        "ArchiveFile", "AgeEncryption",
      ]
    ),
    (
      "FixtureTesting",
      [
        "MigrationEngine", "BackupRepository", "ArchiveFile", "ContainerTransaction", "AppContainer",
        "AgeEncryption",
        "GRDB",
      ]
    ),
    ("MigrationEngine", ["ContainerTransaction", "AppContainer", "AgeEncryption", "GRDB", "Subprocess"]),
    (
      "BackupRepository",
      ["ContainerTransaction", "AppContainer", "ArchiveFile", "AgeEncryption", "GRDB", "SystemPackage"]
    ),
    ("ContainerTransaction", ["AppContainer", "AgeEncryption", "GRDB", "SystemPackage"]),
    ("AppContainer", ["AgeEncryption", "CPlatform", "GRDB", "Yams", "SystemPackage"]),
    ("ArchiveFile", ["AgeEncryption", "CLibArchive", "CLibZstd", "SystemPackage"]),
    ("AgeEncryption", ["CLibCrypto", "SystemPackage"]),
    ("CLibArchive", []), ("CLibCrypto", []), ("CLibZstd", []), ("CPlatform", []),
    // Programs and helpers of the tests stand beside the house: they must not know it from inside.
    ("NotesApp", ["GRDB"]),
    ("TestSupport", []),
  ]

  /// What a target declares without importing it. SwiftPM rebuilds a target when a module changes that it declares, and
  /// the commands use the types of all modules through what `Drydock` re-exports: undeclared, a change of a type's
  /// layout leaves a program behind that crashes.
  static let rebuiltWith: [String: Set<String>] = ["DrydockCommand": mayImport("Drydock") ?? []]

  /// Each has exactly one importer, which alone translates its errors and frees its handles.
  static let oneImporter: Set<String> = [
    "CLibArchive", "CLibCrypto", "CLibZstd", "CPlatform", "Yams", "ArgumentParser", "Subprocess",
  ]

  /// What comes with Swift and the system, for everybody.
  static let platform: Set<String> = [
    "Swift", "Foundation", "FoundationXML", "Synchronization", "Dispatch", "Glibc", "Musl", "Darwin",
  ]

  static func mayImport(_ module: String) -> Set<String>? {
    arrows.first { $0.module == module }?.mayImport
  }
}
