import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// `vault: {service, account, exists | accessible | length | count | equals: before}`: what vault items are. A value is
/// never written in a migration: its length is, or that it is what it was before.
struct VaultAssertion: AssertionBody {
  static let keys = ["exists", "accessible", "length", "count", "equals"] + VaultSelection.keys

  private enum Wanted: Sendable {
    case exists(Bool)
    case accessible(VaultItem.Accessibility)
    case length(Int64)
    case count(Int64)
    case countBefore
    case valuesBefore
  }

  let selection: VaultSelection
  private let wanted: Wanted
  /// Where it compares with the state before the migration.
  let before: YAMLPosition?

  init(_ reader: YAMLReader) throws {
    selection = try VaultSelection(reading: reader)
    let (word, node) = try reader.only(
      ["exists", "accessible", "length", "count", "equals"],
      needs: "one of `exists`, `accessible`, `length`, `count` and `equals: before`")
    before = node.meansBefore ? node.position : nil
    switch word {
    case "exists": wanted = .exists(try node.boolean("`exists`"))
    case "accessible": wanted = .accessible(try reader.choice("accessible") ?? .whenUnlocked)
    case "length": wanted = .length(try node.integer("`length`"))
    case "count": wanted = before == nil ? .count(try node.integer("`count`")) : .countBefore
    default:
      guard before != nil else {
        throw node.position.error(
          "a migration holds no secret: write `equals: before`, or compare its `length`")
      }
      wanted = .valuesBefore
    }
  }

  var needsVault: Bool { true }
  var demandsSomething: Bool { true }

  func observe(_ stage: StagedContainer) throws -> Observation? { .items(try items(in: stage)) }

  private func items(in stage: StagedContainer) throws -> [VaultItem] {
    try stage.vault().map(selection.items) ?? []
  }

  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict {
    let items = try items(in: stage)
    var old: [VaultItem] = []
    if case .items(let items)? = before { old = items }
    switch wanted {
    case .exists(let exists):
      if exists == !items.isEmpty { return .passed }
      return .failed(exists ? "no vault item has \(selection)" : "the vault item \(items[0]) is there")
    case .count(let count): return judge(items.count, count)
    case .countBefore: return judge(items.count, Int64(old.count))
    case .accessible(let wanted):
      if let other = items.first(where: { $0.accessibility != wanted }) {
        return .failed(
          "the vault item \(other) is accessible \(other.accessibility.rawValue), not \(wanted.rawValue)")
      }
    case .length(let length):
      if let other = items.first(where: { $0.value.count != length }) {
        return .failed("the vault item \(other) has \(other.value.count) bytes, not \(length)")
      }
    case .valuesBefore:
      if items.count != old.count || zip(items, old).contains(where: { $0.value != $1.value }) {
        return .failed("the vault items with \(selection) do not have the values that they had before")
      }
    }
    return items.isEmpty ? .failed("no vault item has \(selection)") : .passed
  }

  private func judge(_ count: Int, _ wanted: Int64) -> Verdict {
    count == wanted ? .passed : .failed("\(count) vault items have \(selection), not \(wanted)")
  }
}

/// Exactly these vault items, by name, accessibility and value: `vault` in a fixture.
private struct VaultContentAssertion: AssertionBody {
  /// Each with the place where it is written; what is not said of one does not matter.
  let items: [(item: VaultItem, position: YAMLPosition)]

  var needsVault: Bool { true }
  var demandsSomething: Bool { !items.isEmpty }

  private func found(in stage: StagedContainer) throws -> [VaultItem] {
    let path = stage.container.vaultPath
    guard try stage.live.status(path) != nil else { return [] }
    guard let keys = stage.deviceKeys else {
      throw AssertionFailure(path.description, "the vault cannot be opened: no device key is given")
    }
    do {
      return try Vault(opening: stage.live.contents(path), with: keys, path: path.description).sorted
    } catch let error as DrydockError where error.code == .vaultLocked || error.code == .badVault {
      throw AssertionFailure(path.description, "the vault cannot be opened: \(error.message)")
    }
  }

  /// Values are made up, and still not shown.
  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict {
    let place = stage.container.vaultPath.description
    let items = try found(in: stage).map { ($0.id, $0) }
    var found = Dictionary(items, uniquingKeysWith: { first, _ in first })
    var failures = self.items.flatMap { expected in
      Self.failures(expected.item, found.removeValue(forKey: expected.item.id), "\(place): \(expected.item)")
        .map {
          var failure = $0
          failure.position = expected.position
          return failure
        }
    }
    failures += found.keys.sorted().map {
      AssertionFailure("\(place): \($0)", "the vault item exists, expected none")
    }
    return failures.isEmpty ? .passed : .failed(failures)
  }

  private static func failures(_ item: VaultItem, _ found: VaultItem?, _ place: String) -> [AssertionFailure]
  {
    guard let found else { return [AssertionFailure(place, "the vault item is absent")] }
    func failure(_ what: String, _ wanted: String?, _ got: String?) -> AssertionFailure {
      AssertionFailure(place, "the vault item has another \(what)", expected: wanted, found: got)
    }
    var failures: [AssertionFailure] = []
    if found.accessibility != item.accessibility {
      failures.append(failure("accessibility", item.accessibility.rawValue, found.accessibility.rawValue))
    }
    if found.accessControl != item.accessControl {
      failures.append(
        failure("access control", item.accessControl?.description, found.accessControl?.description))
    }
    if found.value != item.value {
      failures.append(failure("value", "\(item.value.count) bytes", "\(found.value.count) bytes"))
    }
    for attribute in VaultItem.Attribute.allCases
    where item[attribute] != nil && found[attribute] != item[attribute] {
      if item.itemClass.identifying.contains(attribute) { continue }
      failures.append(failure(attribute.words, item[attribute], found[attribute]))
    }
    return failures
  }
}

extension Assertion {
  /// That the vault has exactly these items, each with the place where it is written.
  package static func vault(
    _ items: [(item: VaultItem, position: YAMLPosition)], at position: YAMLPosition
  ) -> Assertion {
    Assertion(VaultContentAssertion(items: items), at: position)
  }
}
