// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that no ordinary build knows of it: it needs a fuzzer's and a sanitizer's run-time, and the
// modules compiled for them. `Scripts/fuzz` builds and runs it.
let package = Package(
  name: "fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "drydock", path: "../..")],
  targets: [
    .executableTarget(
      name: "Fuzz", dependencies: [.product(name: "Drydock", package: "drydock")],
      swiftSettings: [.treatAllWarnings(as: .error)])
  ],
  swiftLanguageModes: [.v6]
)
