import AppContainer
import ContainerDiff
import FileSystem

/// What a golden says and what was found, compared store by store.
struct GoldenComparison {
  /// How many rows of a table are told, of each kind.
  private static let rowLimit = 20

  /// The golden as it was written by whoever wrote it, which is where differences are shown.
  let golden: Golden
  /// The golden as Drydock writes it, with volatile values replaced that are declared by now, and what was found.
  let expected, found: Golden
  /// Whether both say the same, in every byte.
  let isSame: Bool
  /// What differs.
  let difference: ContainerDifference
  let redactor: Redactor
  private let comparesColumnOrder: Bool

  /// Compares the goldens of two directories.
  ///
  /// - Throws: `DrydockError` and `DrydockError` for a golden that cannot be read.
  init(
    _ golden: String, _ found: String, _ volatile: VolatileValues, _ redactor: Redactor, in scratch: Directory
  ) throws {
    self.golden = try Golden(golden)
    self.found = try Golden(found)
    self.redactor = redactor
    comparesColumnOrder = volatile.comparesColumnOrder
    try scratch.createDirectory("expected")
    try GoldenWriter.write(GoldenSide(self.golden), to: scratch.full("expected"), volatile: volatile)
    expected = try Golden(scratch.full("expected"))
    isSame = try GoldenText.isSame(expected.directory, found)
    var options = ComparisonOptions()
    (options.rowLimit, options.redactor) = (Self.rowLimit, redactor)
    difference =
      isSame
      ? ContainerDifference()
      : try Comparison(of: GoldenSide(expected), with: GoldenSide(self.found), options: options).difference
  }

  /// A finding for each difference.
  func findings() throws -> [FixtureFinding] {
    if isSame { return [] }
    let lines = try GoldenPlaces(golden)
    let findings =
      settings(lines) + vault(lines) + difference.databases.flatMap { database($0, lines) } + files(lines)
    // What no comparison tells is still a difference.
    return findings.isEmpty ? try texts() : findings
  }

  /// Whether an object of a schema differs in nothing but the order of its columns, which the fixture does not compare.
  func isReordered(_ object: ContainerDifference.SchemaObject) -> Bool {
    !comparesColumnOrder && object.kind == "table" && object.change == .changed && object.columns.isEmpty
      && WrittenSQL.isSameButForColumnOrder(object.before, object.after)
  }

  // MARK: Settings

  private func settings(_ lines: GoldenPlaces) -> [FixtureFinding] {
    let files = Set(expected.settings.keys).union(found.settings.keys).sorted()
    return files.flatMap { file in
      let (old, new) = (expected.settings[file]?.values ?? [:], found.settings[file]?.values ?? [:])
      let shown = difference.settings.filter { $0.file == file }
      return old.differingKeys(from: new) { $0.matches($1) }.compactMap { key -> FixtureFinding? in
        let name = redactor.shown(name: key.text)
        guard let setting = shown.first(where: { $0.key.isExactly(name) }) else { return nil }
        var finding = FixtureFinding(.golden, "", place: "\(file): \(name)")
        (finding.expected, finding.found) = (setting.before, setting.after)
        switch (old[key], new[key]) {
        case (let old?, let new?) where old.typeName != new.typeName:
          finding.message = "the setting has another type"
          finding.expected = setting.before.map { "the \(old.typeName) \($0)" }
          finding.found = setting.after.map { "the \(new.typeName) \($0)" }
        case (_?, _?): finding.message = "the setting has another value"
        case (_?, nil): finding.message = "the setting is absent"
        default: finding.message = "the setting exists, expected none"
        }
        return finding.at(lines.setting(key, of: file))
      }
    }
  }

  // MARK: Vault

  private func vault(_ lines: GoldenPlaces) -> [FixtureFinding] {
    difference.vault.flatMap { vault -> [FixtureFinding] in
      let place = vault.path.description
      guard let items = vault.items else {
        let message =
          vault.problem.map { "the vault cannot be compared: \($0)" } ?? "the vault has other bytes"
        return [FixtureFinding(.golden, message, place: place).at(lines.path(vault.path))]
      }
      var findings: [FixtureFinding] = []
      if vault.change != .changed {
        let message = vault.change == .removed ? "the vault is absent" : "the vault exists, expected none"
        findings.append(FixtureFinding(.golden, message, place: place).at(lines.path(vault.path)))
      }
      return findings + items.flatMap { self.item($0, place).map { $0.at(lines.item(of: $0)) } }
    }
  }

  private func item(_ item: ContainerDifference.VaultItem, _ vault: String) -> [FixtureFinding] {
    let place = "\(vault): \(item.name)"
    switch item.change {
    case .removed: return [FixtureFinding(.golden, "the vault item is absent", place: place)]
    case .added: return [FixtureFinding(.golden, "the vault item exists, expected none", place: place)]
    case .changed: break
    }
    var findings = item.attributes.map { field in
      FixtureFinding(.golden, "the vault item has another \(field.name)", place: place)
        .with(field.before, field.after)
    }
    if item.valueBefore != nil || item.valueAfter != nil {
      findings.append(
        FixtureFinding(.golden, "the vault item has another value", place: place)
          .with(item.valueBefore, item.valueAfter))
    }
    return findings
  }
}

extension FixtureFinding {
  func with(_ expected: String?, _ found: String?) -> FixtureFinding {
    var finding = self
    (finding.expected, finding.found) = (expected, found)
    return finding
  }

  /// The finding with the golden's line that says otherwise.
  func at(_ place: GoldenPlace) -> FixtureFinding {
    var finding = self
    (finding.file, finding.line) = (place.file, place.line)
    return finding
  }
}
