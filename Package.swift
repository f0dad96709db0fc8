// swift-tools-version: 6.2
import Foundation
import PackageDescription

// The modules, each after those that it imports. `Tests/ArchitectureTests` reads this file and every import, and fails on an
// import that is not declared here: SwiftPM does not check that itself.

// SwiftPM refuses unsafe flags in a package that another depends on by version. As a dependency, whose files are in SwiftPM's
// directory `checkouts` or in its downloads of a registry, this one has none: it is built as any other package, in debug builds
// without the optimizer.
let folders = Context.packageDirectory.split(separator: "/").dropLast()
let isDependency =
  folders.last == "checkouts"
  && FileManager.default.fileExists(atPath: Context.packageDirectory + "/../../workspace-state.json")
  || folders.dropLast(2).suffix(2) == ["registry", "downloads"]

func flags(_ flags: [String], _ configuration: BuildConfiguration) -> [SwiftSetting] {
  isDependency ? [] : [.unsafeFlags(flags, .when(configuration: configuration))]
}

// Tests import internal declarations: `Scripts/build` asks for that. It keeps code that nothing calls, so that neither a
// packaged program nor the packages of others are compiled so.
let testing = Context.environment["DRYDOCK_ENABLE_TESTING"] == nil ? [] : flags(["-enable-testing"], .release)
let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)] + testing
// Modules that hash, parse and compare bytes: without the optimizer, the tests would spend most of their time there.
let fast = strict + flags(["-O"], .debug)
// Modules that mostly call others are optimized for size: they compile in less time, and run as fast.
let small = fast + flags(["-Osize"], .release)
// Modules that arrange, print or test: the work is done by the modules below them, and the optimizer takes minutes.
let plain = strict + flags(["-Onone"], .release)
// Nothing imports a module of tests: to emit its interface before its code would expand each macro twice.
// They must not be optimized: a variable has to keep its `TemporaryDirectory` to the end of its scope.
let tests = plain + flags(["-no-emit-module-separately-wmo"], .release)
// On Linux Swift's libraries are part of the program: to load them takes longer than the rest of its start, and a machine that
// runs it need not have them. No test target may depend on it: the test runner loads its libraries, and would get these too.
let withSwift = ["-static-stdlib"]
// Nothing is loaded that would look for a symbol of the program, and its start takes a tenth longer with 40,000 of them.
let withoutExports = ["-Xlinker", "--no-export-dynamic"]
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
// The C functions of the SQLite that GRDB uses.
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let subprocess = Target.Dependency.product(name: "Subprocess", package: "swift-subprocess")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let arguments = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
  name: "drydock",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "drydock", targets: ["DrydockMain"]),
    .library(name: "Drydock", targets: ["Drydock"]),
    .library(name: "DrydockTesting", targets: ["DrydockTesting"]),
    .library(name: "DrydockCommand", targets: ["DrydockCommand"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
  ],
  targets: [
    // System libraries: each has exactly one importer.
    .target(name: "CLibCurl"),
    .target(name: "CPlatform"),
    .systemLibrary(
      name: "CLibCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(
      name: "CLibZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(
      name: "CLibZ", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .systemLibrary(
      name: "CLibArchive", pkgConfig: "libarchive",
      providers: [.apt(["libarchive-dev"]), .brew(["libarchive"])]),

    // The modules.
    .target(name: "DrydockErrors", swiftSettings: strict),
    .target(name: "Cryptography", dependencies: ["DrydockErrors", "CLibCrypto"], swiftSettings: small),
    .target(
      name: "AgeEncryption", dependencies: ["DrydockErrors", "Cryptography"], swiftSettings: small),
    .target(name: "Formats", dependencies: ["DrydockErrors", yams], swiftSettings: fast),
    .target(
      name: "FileSystem", dependencies: ["DrydockErrors", "Cryptography", "CPlatform", system],
      swiftSettings: fast),
    .target(
      name: "ArchiveSigning", dependencies: ["DrydockErrors", "Cryptography", "FileSystem", system],
      swiftSettings: plain),
    .target(
      name: "ArchiveFile",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "FileSystem", "CLibArchive", "CLibZ", "CLibZstd",
        system,
      ],
      swiftSettings: small),
    .target(
      name: "Storage",
      dependencies: [
        "DrydockErrors", "Cryptography", "FileSystem", "ArchiveFile", "CLibCurl", system,
      ],
      swiftSettings: plain),
    .target(
      name: "AppStores",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", grdb, sqlite, system,
      ],
      swiftSettings: fast),
    .target(
      name: "AppContainer",
      dependencies: [
        "DrydockErrors", "Cryptography", "Formats", "FileSystem", "AppStores", system,
      ],
      swiftSettings: fast),
    .target(
      name: "ArchiveManifest",
      dependencies: [
        "DrydockErrors", "Cryptography", "Formats", "FileSystem", "ArchiveFile", "AppStores", "AppContainer",
        grdb,
        system,
      ],
      swiftSettings: small),
    .target(
      name: "AppFrameworks",
      dependencies: [
        "DrydockErrors", "Cryptography", "Formats", "FileSystem", "AppStores", "AppContainer", grdb,
      ],
      swiftSettings: plain),
    .target(
      name: "ContainerDiff",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer", grdb,
      ],
      swiftSettings: plain),
    .target(
      name: "ContainerTransaction",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer",
        "ContainerDiff", grdb, system,
      ],
      swiftSettings: small),
    .target(
      name: "BackupRepository",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning",
        "ArchiveFile", "ArchiveManifest", "Storage", "AppStores", "AppContainer", "ContainerDiff",
        "ContainerTransaction",
        grdb, system,
      ],
      swiftSettings: small),
    .target(
      name: "DeviceBackups",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem",
        "ArchiveFile", "AppStores", "AppContainer", "ContainerTransaction", grdb, system,
      ],
      swiftSettings: plain),
    .target(
      name: "MigrationEngine",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer", "AppFrameworks",
        "ContainerTransaction", grdb, subprocess,
      ],
      swiftSettings: plain),
    .target(
      name: "ContainerAudit",
      dependencies: [
        "DrydockErrors", "AgeEncryption", "Formats", "FileSystem", "AppStores", "AppContainer",
        "AppFrameworks", "ContainerTransaction",
        "MigrationEngine", grdb, system,
      ],
      swiftSettings: plain),
    .target(
      name: "Drydock",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning",
        "ArchiveFile", "ArchiveManifest", "Storage", "AppStores", "AppContainer", "AppFrameworks",
        "ContainerDiff",
        "ContainerTransaction",
        "BackupRepository", "DeviceBackups", "MigrationEngine", "ContainerAudit",
      ],
      swiftSettings: plain),
    .target(
      name: "DrydockTesting",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning",
        "ArchiveFile", "ArchiveManifest", "Storage", "AppStores", "AppContainer", "AppFrameworks",
        "ContainerDiff",
        "ContainerTransaction",
        "BackupRepository", "DeviceBackups", "MigrationEngine", "ContainerAudit", "Drydock", grdb,
      ],
      swiftSettings: plain),
    .target(
      name: "Reports",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning",
        "ArchiveFile", "ArchiveManifest",
        "AppStores", "AppContainer", "AppFrameworks",
        "ContainerDiff",
        "ContainerTransaction", "BackupRepository", "DeviceBackups", "Storage", "MigrationEngine",
        "ContainerAudit",
        "Drydock",
        "DrydockTesting",
      ],
      swiftSettings: plain),
    // It imports `Drydock`, `DrydockTesting` and `Reports` only. The modules below are declared so that it is rebuilt with them:
    // SwiftPM looks at direct dependencies alone, and a program compiled for another layout of a type crashes.
    .target(
      name: "DrydockCommand",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning",
        "ArchiveFile", "ArchiveManifest",
        "AppStores", "AppContainer", "AppFrameworks",
        "ContainerDiff",
        "ContainerTransaction", "BackupRepository", "DeviceBackups", "Storage", "MigrationEngine",
        "ContainerAudit",
        "DrydockTesting",
        "Drydock", "Reports",
        arguments,
      ],
      swiftSettings: plain),
    .executableTarget(
      name: "DrydockMain", dependencies: ["DrydockCommand"],
      swiftSettings: plain + (isDependency ? [] : [.unsafeFlags(withSwift, .when(platforms: [.linux]))]),
      linkerSettings: isDependency
        ? [] : [.unsafeFlags(withSwift + withoutExports, .when(platforms: [.linux]))]),

    // Tests, and the sample app that they and the demo run as a real second process.
    .executableTarget(
      name: "NotesApp", dependencies: [grdb], path: "Tests/NotesApp", swiftSettings: plain),
    .executableTarget(
      name: "NotesTool", dependencies: ["DrydockCommand", "Drydock", grdb], path: "Tests/NotesTool",
      swiftSettings: plain),
    .target(
      name: "TestSupport", dependencies: ["DrydockErrors"], path: "Tests/TestSupport", exclude: ["Servers"],
      swiftSettings: plain),
    // What tests of four modules do with a transaction and commands do not. It declares what `ContainerTransaction` does, so that
    // it is rebuilt with them.
    .target(
      name: "TestTransactions",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer", "ContainerDiff", "ContainerTransaction",
      ],
      path: "Tests/TestTransactions", swiftSettings: plain),
    .testTarget(
      name: "ArchitectureTests", dependencies: ["TestSupport"], exclude: ["PublicSurface.txt"],
      swiftSettings: tests),
    .testTarget(
      name: "CryptographyTests", dependencies: ["DrydockErrors", "Cryptography"], swiftSettings: tests),
    .testTarget(
      name: "AgeEncryptionTests",
      dependencies: ["DrydockErrors", "Cryptography", "AgeEncryption", "TestSupport"],
      exclude: ["Vectors", "make_vectors.py", "at_terminal.py"], swiftSettings: tests),
    .testTarget(
      name: "ArchiveSigningTests",
      dependencies: ["DrydockErrors", "Cryptography", "FileSystem", "ArchiveSigning", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "FormatsTests",
      dependencies: ["DrydockErrors", "Formats", "TestSupport"],
      exclude: ["AndroidSettings", "PropertyLists"],
      swiftSettings: tests),
    .testTarget(
      name: "FileSystemTests",
      dependencies: ["DrydockErrors", "Formats", "FileSystem", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "ArchiveFileTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "FileSystem", "ArchiveFile", "TestSupport", system,
      ],
      swiftSettings: tests),
    .testTarget(
      name: "StorageTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "FileSystem", "ArchiveFile", "Storage", "TestSupport",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "AppStoresTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer", "TestSupport", grdb,
      ],
      swiftSettings: tests),
    .testTarget(
      name: "AppContainerTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer",
        "TestSupport", grdb,
      ],
      swiftSettings: tests),
    .testTarget(
      name: "ContainerDiffTests",
      dependencies: [
        "DrydockErrors", "Formats", "AppStores", "AppContainer", "ContainerDiff", "TestSupport", grdb,
      ],
      swiftSettings: tests),
    .testTarget(
      name: "ContainerTransactionTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer",
        "ContainerDiff", "ContainerTransaction", "TestSupport", "TestTransactions", grdb,
      ],
      swiftSettings: tests),
    .testTarget(
      name: "BackupRepositoryTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning",
        "ArchiveFile", "ArchiveManifest", "Storage", "AppStores", "AppContainer", "ContainerDiff",
        "ContainerTransaction",
        "BackupRepository", "TestSupport", "TestTransactions", grdb, system,
      ],
      exclude: ["HostileArchives", "cheap_restic_key.py"],
      swiftSettings: tests),
    .testTarget(
      name: "DeviceBackupsTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem",
        "ArchiveFile", "AppStores", "AppContainer", "ContainerTransaction", "DeviceBackups", "TestSupport",
        grdb,
      ],
      exclude: ["Samples", "make_device_backup.py"],
      swiftSettings: tests),
    .testTarget(
      name: "MigrationEngineTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer", "AppFrameworks",
        "ContainerDiff", "ContainerTransaction", "MigrationEngine", "TestSupport", "TestTransactions", grdb,
      ],
      exclude: ["CoreDataStores", "RoomSamples", "SQLDelightSamples"], swiftSettings: tests),
    .testTarget(
      name: "ContainerAuditTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "AppStores",
        "AppContainer", "AppFrameworks",
        "ContainerTransaction", "MigrationEngine", "ContainerAudit", "TestSupport", grdb,
      ],
      swiftSettings: tests),
    .testTarget(
      name: "FixtureTests",
      dependencies: [
        "DrydockErrors", "Cryptography", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning",
        "ArchiveFile", "ArchiveManifest", "AppStores", "AppContainer", "AppFrameworks", "ContainerDiff",
        "ContainerTransaction",
        "BackupRepository",
        "MigrationEngine", "DrydockTesting", "TestSupport", "TestTransactions", grdb,
      ],
      swiftSettings: tests),
    .testTarget(
      name: "ReportsTests",
      dependencies: [
        "DrydockErrors", "AgeEncryption", "Formats", "FileSystem", "ArchiveSigning", "ArchiveFile",
        "ArchiveManifest",
        "AppStores", "AppContainer", "AppFrameworks",
        "ContainerDiff", "ContainerTransaction", "BackupRepository", "MigrationEngine",
        "ContainerAudit", "Drydock", "DrydockTesting", "Reports", "TestSupport",
      ],
      exclude: ["Browser", "Schemas"],
      swiftSettings: tests),
    .testTarget(
      name: "CommandTests",
      dependencies: ["DrydockCommand", "TestSupport", grdb],
      exclude: ["ToolFolders", "Transcripts"], swiftSettings: tests),
  ],
  swiftLanguageModes: [.v6]
)
