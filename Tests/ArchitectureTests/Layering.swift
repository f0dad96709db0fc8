/// Which module may import which: the agreement, written down a second time on purpose, so that a new arrow in
/// `Package.swift` or in a source file is a decision and never an accident.
enum Layering {
  private static let container: Set = [
    "AppContainer", "AppStores", "FileSystem", "Formats", "AgeEncryption", "Cryptography",
    "DrydockErrors",
  ]
  private static let transaction = container.union(["ContainerTransaction", "ContainerDiff"])

  /// From the top downwards.
  static let arrows: [(module: String, mayImport: Set<String>)] = [
    ("DrydockMain", ["DrydockCommand"]),
    // The example of the guide on migrations in Swift: a program as its users write it.
    ("NotesTool", ["DrydockCommand", "Drydock", "GRDB"]),
    ("DrydockCommand", ["Drydock", "DrydockTesting", "Reports", "ArgumentParser"]),
    ("Reports", ["Drydock", "DrydockTesting", "BackupRepository", "DrydockErrors"]),
    (
      "DrydockTesting",
      transaction.union([
        "Drydock", "ContainerAudit", "MigrationEngine", "AppFrameworks", "BackupRepository", "DeviceBackups",
        "ArchiveFile", "ArchiveManifest", "ArchiveSigning",
        "Storage", "GRDB",
      ])
    ),
    (
      "Drydock",
      transaction.union([
        "ContainerAudit", "MigrationEngine", "AppFrameworks", "BackupRepository", "DeviceBackups",
        "ArchiveFile", "ArchiveManifest", "ArchiveSigning",
        "Storage",
      ])
    ),
    (
      "ContainerAudit",
      container.union(["ContainerTransaction", "MigrationEngine", "AppFrameworks", "GRDB", "SystemPackage"])
    ),
    ("MigrationEngine", container.union(["ContainerTransaction", "AppFrameworks", "GRDB", "Subprocess"])),
    (
      "DeviceBackups", container.union(["ContainerTransaction", "ArchiveFile", "GRDB", "SystemPackage"])
    ),
    (
      "BackupRepository",
      transaction.union([
        "ArchiveFile", "ArchiveManifest", "ArchiveSigning", "Storage", "GRDB", "SystemPackage",
      ])
    ),
    // What tests of several modules read of transactions.
    ("TestTransactions", transaction),
    ("ContainerTransaction", container.union(["ContainerDiff", "GRDB", "SystemPackage"])),
    ("ContainerDiff", container.union(["GRDB"])),
    (
      "ArchiveManifest",
      container.subtracting(["AgeEncryption"]).union(["ArchiveFile", "GRDB", "SystemPackage"])
    ),
    ("AppFrameworks", container.subtracting(["AgeEncryption"]).union(["GRDB"])),
    (
      "AppContainer",
      ["AppStores", "FileSystem", "Formats", "Cryptography", "DrydockErrors", "SystemPackage"]
    ),
    (
      "AppStores",
      [
        "FileSystem", "Formats", "AgeEncryption", "Cryptography", "DrydockErrors", "GRDB", "GRDBSQLite",
        "SystemPackage",
      ]
    ),
    (
      "Storage",
      ["ArchiveFile", "FileSystem", "Cryptography", "DrydockErrors", "CLibCurl", "SystemPackage"]
    ),
    (
      "ArchiveFile",
      [
        "FileSystem", "AgeEncryption", "Cryptography", "DrydockErrors", "CLibArchive", "CLibZ", "CLibZstd",
        "SystemPackage",
      ]
    ),
    ("ArchiveSigning", ["FileSystem", "Cryptography", "DrydockErrors", "SystemPackage"]),
    ("FileSystem", ["Cryptography", "DrydockErrors", "CPlatform", "SystemPackage"]),
    ("Formats", ["DrydockErrors", "Yams"]),
    ("AgeEncryption", ["Cryptography", "DrydockErrors"]),
    ("Cryptography", ["DrydockErrors", "CLibCrypto"]),
    ("TestSupport", ["Testing", "DrydockErrors"]),
    ("DrydockErrors", []),
    ("CLibArchive", []), ("CLibCrypto", []), ("CLibCurl", []), ("CLibZ", []), ("CLibZstd", []),
    ("CPlatform", []),
    // Programs and helpers of the tests, which use the package as its users do.
    ("NotesApp", ["GRDB"]),
  ]

  /// What a target declares without importing it. SwiftPM rebuilds a target when a module changes that it declares, and
  /// the commands use the types of all modules through what `Drydock` re-exports: undeclared, a change of a type's
  /// layout leaves a program behind that crashes.
  static let rebuiltWith: [String: Set<String>] = [
    "DrydockCommand": mayImport("DrydockTesting")?.subtracting(["GRDB"]) ?? [],
    "Reports": mayImport("DrydockTesting")?.subtracting(["GRDB"]) ?? [],
  ]

  /// Each has exactly one importer, which alone translates its errors and frees its handles.
  static let oneImporter: Set<String> = [
    "CLibArchive", "CLibCrypto", "CLibCurl", "CLibZ", "CLibZstd", "CPlatform", "Yams", "ArgumentParser",
    "Subprocess",
    "GRDBSQLite",
  ]

  /// What comes with Swift and the system, for everybody.
  static let platform: Set<String> = [
    "Swift", "Foundation", "FoundationXML", "Synchronization", "Dispatch", "Glibc", "Musl", "Darwin",
  ]

  /// What comes with Swift, too, but is not for everybody.
  static let undeclared: Set<String> = ["Testing"]

  static func mayImport(_ module: String) -> Set<String>? {
    arrows.first { $0.module == module }?.mayImport
  }
}
