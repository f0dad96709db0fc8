import AgeEncryption
import AppContainer
import AppStores
import ContainerTransaction
import DrydockTesting
import Foundation
import TestSupport
import TestTransactions

/// A fixture written by hand for one test, and the containers made of it.
final class FixtureSandbox {
  let directory: TemporaryDirectory
  let deviceKeys: DeviceKeys
  /// What `drydock.yaml` says.
  var configuration: ContainerConfiguration

  static let fixture = "Fixtures/one"

  init() throws {
    (directory, deviceKeys) = (try TemporaryDirectory(), DeviceKeys(try AgeIdentity.generate()))
    configuration = try Sample.configuration
    try RawFiles.createDirectories(directory(Self.fixture))
  }

  static func with(_ body: (FixtureSandbox) throws -> Void) throws {
    let sandbox = try FixtureSandbox()
    try withExtendedLifetime(sandbox) { try body(sandbox) }
  }

  /// Writes a file of the fixture, and the directories above it.
  func write(_ path: String, _ text: String) throws { try write(path, Array(text.utf8)) }

  func write(_ path: String, _ bytes: [UInt8]) throws {
    let full = directory(Self.fixture + "/" + path)
    try FileManager.default.createDirectory(
      at: URL(filePath: full).deletingLastPathComponent(), withIntermediateDirectories: true)
    try RawFiles.write(bytes, to: Array(full.utf8))
  }

  /// Writes `fixture.yaml`, of version 0 and with a directory, unless it says so itself.
  func describe(_ yaml: String) throws {
    let version = yaml.contains("version:") ? "" : "version: 0\n"
    let container = yaml.contains("container:") ? "" : "container: {directories: [Documents]}\n"
    try write("fixture.yaml", version + container + yaml)
  }

  func load() throws -> Fixture { try Fixture.load(directory(Self.fixture)) }

  /// The container, built anew.
  func build() throws -> Container {
    let work = directory("work-\(UUID().uuidString)")
    return try load().build(in: work, configuration: configuration, deviceKeys: deviceKeys)
  }

  /// What is not as expected in the container as it was built.
  func findings() throws -> [FixtureResult.Finding] {
    guard let expectation = try load().expectation else { return [] }
    return try expectation.findings(in: build(), deviceKeys: deviceKeys)
  }

  /// The message of what a body throws.
  static func message(_ body: () throws -> some Any) -> String {
    do {
      _ = try body()
      return "nothing was thrown"
    } catch {
      return "\(error)"
    }
  }
}

extension FixtureExpectation {
  func findings(in container: Container, deviceKeys: DeviceKeys? = nil) throws -> [FixtureResult.Finding] {
    var options = TransactionOptions()
    options.deviceKeys = deviceKeys
    return try Transaction.inspect(container, options: options) { try findings(in: $0) }
  }
}
