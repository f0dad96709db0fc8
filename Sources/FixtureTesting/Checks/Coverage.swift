import MigrationEngine

/// Every step of every migration has an effect on some fixture: a step that none exercises is proven by none.
enum Coverage {
  static func findings(_ proofs: [FixtureProof], _ catalog: MigrationCatalog) -> [FixtureFinding] {
    let effective = proofs.reduce(into: Set<StepOutline>()) { $0.formUnion($1.effective) }
    return catalog.migrations.flatMap { migration in
      migration.outline.filter { !$0.isEmpty && !effective.contains($0) }.map { step in
        var finding = FixtureFinding(
          .coverage,
          "the step \(step.operation) changes nothing in any fixture: add one where it does, or remove the step"
        )
        finding.migration = migration.identifier
        (finding.file, finding.line) = (step.position.file, step.position.line)
        return finding
      }
    }
  }
}
