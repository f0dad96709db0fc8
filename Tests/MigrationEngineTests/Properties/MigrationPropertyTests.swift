import ContainerDiff
import ContainerTransaction
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import MigrationEngine

/// What holds for any container and any migrations. Each case is told by its seed: `MIGRATION_SEED=7 MIGRATION_CASES=1`
/// runs one again.
@Suite("Properties of migrations") struct MigrationPropertyTests {
  @Test("Random migrations have each operation")
  func generators() {
    let absent: Set = [
      // It starts a program, which is slow; the tests of scripts cover it.
      "script",
      // The random containers have no keyed archive, and no Core Data store.
      "files.unarchive", "coredata.rename-attribute", "coredata.add-attribute", "coredata.rename-entity",
      "coredata.add-entity", "coredata.convert",
    ]
    let names = Set(Operations.all.map(\.name)).subtracting(absent)
    #expect(names == Set(RandomMigrations.generators.keys))
    // Operations of which the step of their example is enough.
    let byExample: Set<String> = []
    #expect(names.subtracting(RandomMigrations.own.keys) == byExample)
  }

  @Test("Most random migrations fit their container, so that the properties say something")
  func mostRun() throws {
    var fitting = 0
    for seed in RandomCase.seeds {
      try RandomCase.with(seed) { test in
        let outcome = try? Transaction.dryRun(on: test.container(), options: test.options) {
          try test.run(on: $0)
        }
        if outcome != nil { fitting += 1 }
      }
    }
    #expect(fitting * 2 > RandomCase.seeds.count || RandomCase.seeds.count < 8, "\(fitting)")
  }

  @Test(
    "A dry run touches nothing and tells exactly what the real run then changes", arguments: RandomCase.seeds)
  func dryRun(seed: UInt64) throws {
    try RandomCase.with(seed) { test in
      let (before, stores) = (try test.tree(), try test.stores())
      let told: ContainerDifference?
      do {
        told = try Transaction.dryRun(on: test.container(), options: test.options) { try test.run(on: $0) }
          .difference
      } catch is DrydockError {
        told = nil
      }
      test.expectUntouched(try test.tree(), before, "dry run")
      #expect(try test.migrateOrLeave() == (told != nil), "both fail or none \(test.comment)")
      guard let told else { return }
      ToldDifference(told).expect(stores, try test.stores(), before, try test.tree(), test.comment)
    }
  }

  @Test("Rollback gives back the exact container, and redo what was rolled back", arguments: RandomCase.seeds)
  func rollback(seed: UInt64) throws {
    try RandomCase.with(seed) { test in
      let before = try test.tree()
      guard try test.migrateOrLeave() else { return }
      let (after, stores) = (try test.tree(), try test.stores())
      try test.rollback()
      try test.expectSame(test.tree(), before)
      _ = try Transaction.rollback(test.container(), redoing: true, options: test.options)
      try test.expectSame(test.stores(), stores)
      // A vault is sealed anew.
      try test.expectSame(test.tree().without(Stores.vault), after.without(Stores.vault))
      try test.rollback()
      try test.expectSame(test.tree(), before)
    }
  }

  @Test("Up, then down by the steps, gives equal stores", arguments: RandomCase.seeds)
  func upAndDown(seed: UInt64) throws {
    try RandomCase.with(seed, isReversible: true) { test in
      let before = try test.stores()
      guard try test.migrateOrLeave() else { return }
      let after = try test.stores()
      var request = MigrationRollback.Request()
      (request.version, request.bySteps) = (0, true)
      let revert = {
        _ = try MigrationRollback.run(test.container(), request, test.catalog, options: test.options)
      }
      let lost = try test.lostPaths()
      if !lost.isEmpty {
        // Only the whole run can be undone then: down steps refuse, and change nothing.
        let error = #expect(throws: DrydockError.self, test.comment) { try revert() }
        #expect(error?.code == .stepFailed && lost.contains { $0.description == error?.path }, test.comment)
        try test.expectSame(test.stores(), after)
        try test.rollback()
        return try test.expectSame(test.stores(), before)
      }
      try revert()
      try test.expectSame(test.stores(), before)
      // And once more the same way.
      #expect(try test.migrateOrLeave(), test.comment)
      try test.expectSame(test.stores(), after)
    }
  }

  @Test("All in one transaction, or one after the other, end equal", arguments: RandomCase.seeds)
  func oneByOne(seed: UInt64) throws {
    try RandomCase.with(seed) { test in
      try test.make("each")
      let numbers = test.catalog.migrations.map(\.number)
      guard try test.migrateOrLeave() else {
        // What fails together fails alone.
        #expect(throws: DrydockError.self, test.comment) {
          for number in numbers { try test.migrate("each", to: number) }
        }
        return
      }
      for number in numbers { try test.migrate("each", to: number) }
      try test.expectSame(test.stores("each"), test.stores())
      let histories = try ["c", "each"].map { name in
        try Transaction.inspect(test.container(name)) { try MigrationHistory.read($0) }
      }
      #expect(histories[0]?.records.map(\.checksum) == histories[1]?.records.map(\.checksum))
      // And one after the other they go back.
      for _ in numbers
      where try Transaction.log(test.container("each")).contains(where: {
        $0.state == .undoable && $0.kind == .migrate
      }) {
        try test.rollback("each")
      }
      try test.rollback()
      try test.expectSame(test.stores("each"), test.stores())
    }
  }

  @Test("A failing step anywhere leaves the container as it was", arguments: RandomCase.seeds)
  func failure(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    try RandomCase.with(seed) { files in
      guard let name = files.keys.sorted().randomElement(using: &random), let text = files[name] else {
        return
      }
      var lines = text.split(separator: "\n").map(String.init)
      let step = RandomMigrations.failing.randomElement(using: &random) ?? ""
      lines.insert("  - " + step, at: Int.random(in: 1...lines.count, using: &random))
      // A check that does not hold is one, too.
      if seed % 5 == 0 { lines = [text, "verify:", "  - defaults: {key: anchor, equals: 7}"] }
      files[name] = lines.joined(separator: "\n") + "\n"
    } _: { test in
      let before = try test.tree()
      for _ in 0..<2 {
        #expect(throws: DrydockError.self, test.comment) { try test.migrate() }
        test.expectUntouched(try test.tree(), before)
      }
      #expect(try Transaction.log(test.container()).isEmpty)
    }
  }

  @Test(
    "Statements that leave something broken are refused, whatever was broken before",
    arguments: RandomCase.seeds)
  func broken(seed: UInt64) throws {
    try RandomCase.with(seed, changing: { $0 = RandomMigrations.ofSchema(seed, broken: true) }) { test in
      let before = try test.tree()
      let error = #expect(throws: DrydockError.self, test.comment) { try test.migrate() }
      // It is the last step that fails, or all of them before the commit.
      let line = test.catalog.migrations.last?.outline.last?.position.line ?? 0
      #expect(
        error?.message.contains("0001_schema.yaml:\(line):") == true || error?.code == .checkFailed,
        "\(error as Any) \(test.comment)")
      test.expectUntouched(try test.tree(), before)
    }
  }

  @Test("Old faults stop no step that does not touch them, and are never new", arguments: RandomCase.seeds)
  func oldFaults(seed: UInt64) throws {
    try RandomCase.with(seed, changing: { $0 = RandomMigrations.ofSchema(seed) }) { test in
      let before = try test.tree()
      let outcome = try Transaction.run(
        on: test.container(), .migrate, summary: "test", options: test.options
      ) {
        try test.run(on: $0)
      }
      let notes = outcome.notes + outcome.value.migrations.flatMap(\.notes)
      #expect(notes.allSatisfy { $0.contains("as before") }, "\(notes) \(test.comment)")
      let isFaulty = RandomContainer.databaseNames.contains { name in
        SchemaPart.of(name, seed: seed).contains(where: \.isFaulty)
      }
      #expect(isFaulty || notes.isEmpty, "\(notes) \(test.comment)")
      try test.rollback()
      try test.expectSame(test.tree(), before)
    }
  }

  @Test("What an app wrote since, where no migration was, survives a rollback", arguments: RandomCase.seeds)
  func appWrites(seed: UInt64) throws {
    try RandomCase.with(seed) { test in
      let (before, tree) = (try test.stores(), try test.tree())
      guard try test.migrateOrLeave() else { return }
      let after = try test.stores()
      // A file or database that was replaced by an equal one counts as changed, too: the run wrote to it.
      let replaced = try test.tree().entries.filter { path, entry in tree.entries[path]?.inode != entry.inode
      }
      .keys.map { String(decoding: $0, as: UTF8.self) }.filter {
        after.files[$0] != nil || after.databases[$0] != nil
      }
      var app = RandomApp(root: test.folder("c"), seed: seed)
      try app.write(sparing: after.touched(since: before).union(replaced))
      let written = try test.stores()
      try test.rollback()
      let wanted = written.undoing(after, to: before)
      try test.expectSame(test.stores().besidesDirectories, wanted.besidesDirectories, "\(app.done)")
    }
  }
}
