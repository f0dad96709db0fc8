import Foundation

/// A directory for one test, removed with everything in it when the test is done.
///
/// An object of this type removes the directory in `deinit`. Modules of tests are compiled without the optimizer, so
/// that a variable keeps it to the end of its scope; optimized, it might go right after its last use. ``with(_:)``
/// keeps it for as long as its closure runs in either case.
public final class TemporaryDirectory: Sendable {
  /// The directory's absolute path, symbolic links resolved.
  public let path: String
  private let usage = TestUsage.start()

  /// Makes the directory below `TMPDIR` (else `/tmp`), readable by its owner only.
  public init() throws {
    let base = ProcessInfo.processInfo.environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    var template = Array("\(base)/drydock-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemFailure(call: "mkdtemp", path: Array(base.utf8)) }
    let made = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard let resolved = realpath(made, nil) else {
      throw SystemFailure(call: "realpath", path: Array(made.utf8))
    }
    defer { free(resolved) }
    path = String(cString: resolved)
  }

  deinit {
    try? RawFiles.remove(Array(path.utf8))
    usage?.end()
  }

  /// The path of something in the directory.
  public func callAsFunction(_ relative: String) -> String {
    path + "/" + relative
  }

  /// Runs a closure with a new directory that is removed afterwards.
  @discardableResult
  public static func with<T>(_ body: (TemporaryDirectory) throws -> T) throws -> T {
    let directory = try TemporaryDirectory()
    return try withExtendedLifetime(directory) { try body(directory) }
  }

  /// Runs a closure with a new directory that is removed afterwards.
  @discardableResult
  public static func with<T>(
    isolation: isolated (any Actor)? = #isolation, _ body: (TemporaryDirectory) async throws -> T
  ) async throws -> T {
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    return try await body(directory)
  }
}
