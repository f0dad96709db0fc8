import Foundation
import TestSupport
import Testing

/// One mistake in one migration of the sample app, such as a person makes.
struct Mutation: Sendable, CustomTestStringConvertible {
  /// The kind of mistake.
  let what: String
  /// The migration, which must be named.
  let migration: String
  /// The fixture that is there for it.
  let fixture: String
  /// A part of the place that must be named; for a migration that stops, of the message.
  let place: String
  /// The migration's file, below `Migrations`.
  private let file: String
  /// Texts of the file, and what stands in their places.
  private let changes: [(old: String, new: String)]

  var testDescription: String { "\(migration): \(what)" }

  init(
    _ migration: String, _ what: String, _ changes: [(String, String)], in file: String? = nil,
    finds place: String, by fixture: String
  ) {
    (self.migration, self.what, self.place, self.fixture) = (migration, what, place, fixture)
    self.changes = changes.map { (old: $0.0, new: $0.1) }
    self.file = file.map { "\(migration)/\($0)" } ?? "\(migration).yaml"
  }

  /// Makes the mistake in a copy of the migrations.
  func apply(to directory: String) throws {
    let path = "\(directory)/\(file)"
    var text = try String(contentsOfFile: path, encoding: .utf8)
    for (old, new) in changes {
      guard text.contains(old) else { throw SystemFailure("\(testDescription): “\(old)” is not in \(file)") }
      text.replace(old, with: new)
    }
    try text.write(toFile: path, atomically: true, encoding: .utf8)
  }
}
