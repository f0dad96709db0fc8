// swift-tools-version: 6.2
import PackageDescription

// The house, from the ground up. Arrows point downwards only; `Tests/ArchitectureTests` reads this file and
// every import and fails on any other arrow, since SwiftPM lets a target import what it never declared.

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
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
    .target(name: "CPlatform"),
    .systemLibrary(
      name: "CLibCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(
      name: "CLibZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(
      name: "CLibArchive", pkgConfig: "libarchive",
      providers: [.apt(["libarchive-dev"]), .brew(["libarchive"])]),

    // The modules.
    .target(name: "AgeEncryption", dependencies: ["CLibCrypto", system], swiftSettings: strict),
    .target(
      name: "ArchiveFile", dependencies: ["AgeEncryption", "CLibArchive", "CLibZstd", system],
      swiftSettings: strict),
    .target(
      name: "AppContainer", dependencies: ["AgeEncryption", "CPlatform", grdb, yams, system],
      swiftSettings: strict),
    .target(
      name: "ContainerTransaction", dependencies: ["AppContainer", "AgeEncryption", grdb, system],
      swiftSettings: strict),
    .target(
      name: "BackupRepository",
      dependencies: ["ContainerTransaction", "AppContainer", "ArchiveFile", "AgeEncryption", grdb, system],
      swiftSettings: strict),
    .target(
      name: "MigrationEngine",
      dependencies: ["ContainerTransaction", "AppContainer", "AgeEncryption", grdb, subprocess],
      swiftSettings: strict),
    .target(
      name: "FixtureTesting",
      dependencies: [
        "MigrationEngine", "BackupRepository", "ArchiveFile", "ContainerTransaction", "AppContainer",
        "AgeEncryption",
        grdb,
      ],
      swiftSettings: strict),
    .target(
      name: "Drydock",
      dependencies: [
        "FixtureTesting", "MigrationEngine", "BackupRepository", "ContainerTransaction", "AppContainer",
        "ArchiveFile", "AgeEncryption",
      ],
      swiftSettings: strict),
    // It imports `Drydock` only. The modules behind are declared so that it is rebuilt with them: SwiftPM looks at
    // direct dependencies alone, and a program compiled for yesterday's layout of a type crashes.
    .target(
      name: "DrydockCommand",
      dependencies: [
        "Drydock", "FixtureTesting", "MigrationEngine", "BackupRepository", "ContainerTransaction",
        "AppContainer",
        "ArchiveFile", "AgeEncryption", arguments,
      ],
      swiftSettings: strict),
    .executableTarget(name: "DrydockMain", dependencies: ["DrydockCommand"], swiftSettings: strict),

    // Tests, and the sample app that they and the demo run as a real second process.
    .executableTarget(
      name: "NotesApp", dependencies: [grdb], path: "Tests/NotesApp", swiftSettings: strict),
    .executableTarget(
      name: "NotesTool", dependencies: ["DrydockCommand", "Drydock", grdb], path: "Tests/NotesTool",
      swiftSettings: strict),
    .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: strict),
    .testTarget(name: "ArchitectureTests", swiftSettings: strict),
    .testTarget(
      name: "AgeEncryptionTests", dependencies: ["AgeEncryption", "TestSupport"],
      exclude: ["Vectors", "make_vectors.py", "at_terminal.py"], swiftSettings: strict),
    .testTarget(
      name: "ArchiveFileTests", dependencies: ["ArchiveFile", "AgeEncryption", "TestSupport", system],
      swiftSettings: strict),
    .testTarget(
      name: "AppContainerTests", dependencies: ["AppContainer", "AgeEncryption", "TestSupport", grdb],
      swiftSettings: strict),
    .testTarget(
      name: "ContainerTransactionTests",
      dependencies: ["ContainerTransaction", "AppContainer", "AgeEncryption", "TestSupport", grdb],
      swiftSettings: strict),
    .testTarget(
      name: "BackupRepositoryTests",
      dependencies: [
        "BackupRepository", "ContainerTransaction", "AppContainer", "ArchiveFile", "AgeEncryption",
        "TestSupport",
        grdb, system,
      ],
      exclude: ["HostileArchives"], swiftSettings: strict),
    .testTarget(
      name: "MigrationEngineTests",
      dependencies: [
        "MigrationEngine", "ContainerTransaction", "AppContainer", "AgeEncryption", "TestSupport", grdb,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "FixtureTests",
      dependencies: [
        "FixtureTesting", "MigrationEngine", "BackupRepository", "ContainerTransaction", "AppContainer",
        "AgeEncryption",
        "TestSupport", grdb,
      ],
      exclude: ["Schemas"], swiftSettings: strict),
    .testTarget(
      name: "CommandTests",
      dependencies: ["DrydockMain", "DrydockCommand", "NotesApp", "NotesTool", "TestSupport", grdb],
      exclude: ["ToolFolders", "Transcripts"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
