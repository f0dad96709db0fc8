import AgeEncryption
import AppStores
import ContainerTransaction
import FileSystem
import TestSupport
import Testing

@testable import BackupRepository

/// Restores of a vault with an item of every kind, from every kind of archive, to every kind of device: all must come out
/// as the model says, and as the dry run said before.
@Suite struct VaultRestoreMatrixTests {
  typealias Model = VaultRestoreModel

  enum Reach: CaseIterable { case all, onlyVault, path }

  static let items: [Model.Item] = Model.table.keys.sorted().flatMap { code in
    ([(true, .none)] + Model.Control.allCases.map { (false, $0) }).flatMap { isSynchronizable, control in
      Model.Live.allCases.map {
        Model.Item(code: code, isSynchronizable: isSynchronizable, control: control, live: $0)
      }
    }
  }

  private static func item(_ item: Model.Item, _ value: String) throws -> VaultItem {
    let controls: [Model.Control: [VaultItem.AccessControl.Flag]] = [
      .userPresence: [.userPresence], .biometryCurrentSet: [.biometryCurrentSet, .or, .devicePasscode],
    ]
    return VaultLab.item(
      "\(item.code)-\(item.control.rawValue)-\(item.live.rawValue)", value,
      try #require(VaultItem.Accessibility(item.code)), isSynchronizable: item.isSynchronizable,
      controls[item.control])
  }

  @Test(arguments: Model.Device.allCases, [false, true])
  func everyItem(_ device: Model.Device, isEncrypted: Bool) throws {
    for hadKeyAtSnapshot in isEncrypted ? [false, true] : [true] {
      let scene = try VaultScene(
        Model(device: device, isEncrypted: isEncrypted, hadKeyAtSnapshot: hadKeyAtSnapshot, hasKey: true),
        Self.items, Self.item)
      for hasVault in [true, false] {
        // Where nothing is in the way, what is restored does not depend on the reach.
        for reach in hasVault ? Reach.allCases : [.all] {
          scene.model.hasVault = hasVault
          scene.model.hasKey = false
          if reach == .all { try scene.check(reach) }
          scene.model.hasKey = true
          for bits in !hasVault ? 0..<1 : reach == .all ? 0..<3 : 1..<2 {
            (scene.model.includesSynchronizable, scene.model.keepsExtra) = (bits & 1 != 0, bits & 2 != 0)
            try scene.check(reach)
          }
          (scene.model.includesSynchronizable, scene.model.keepsExtra) = (false, false)
        }
      }
    }
  }
}

/// One device, one archive, and restores of it.
private final class VaultScene {
  var model: VaultRestoreModel
  private let lab: VaultLab
  private let items: [VaultRestoreModel.Item]
  private let archive: String
  /// The vault that was archived, the one that is restored into, and what opens that.
  private let archived, live: Vault
  private let keys: DeviceKeys

  init(
    _ model: VaultRestoreModel, _ items: [VaultRestoreModel.Item],
    _ make: (VaultRestoreModel.Item, String) throws -> VaultItem
  ) throws {
    (self.model, self.items) = (model, items)
    lab = try VaultLab()
    let old = try AgeIdentity.generate(), new = try AgeIdentity.generate()
    var archived = try Vault(new: DeviceKeys(old))
    for item in items where item.live != .extra {
      archived.put(try make(item, item.live == .same ? "both" : "archive"))
    }
    try lab.write(archived)
    let report = try lab.snapshot(
      encrypted: model.isEncrypted, model.hadKeyAtSnapshot ? DeviceKeys(old) : nil)
    #expect((report.vault?.leaving != nil) == (model.isEncrypted && model.hadKeyAtSnapshot))
    archive = report.path
    keys =
      switch model.device {
      case .same: DeviceKeys(old)
      case .rotated: DeviceKeys(new, earlier: [old])
      case .rotatedAndLost, .other: DeviceKeys(new)
      }
    var live = model.device == .other ? try Vault(new: keys) : archived
    live.removeAll()
    try live.rekey(to: [keys.present.recipient])
    for item in items where item.live != .absent {
      live.put(try make(item, item.live == .same ? "both" : "live"))
    }
    (self.archived, self.live) = (archived, live)
  }

  func check(_ reach: VaultRestoreMatrixTests.Reach) throws {
    let comment = Comment(rawValue: "\(model) \(reach)")
    try lab.lab.shell("rm -rf box .drydock-*; mkdir box")
    try lab.write(model.hasVault ? live : nil, file: "live")
    let before = try TreeListing(lab.root)
    let options = { (options: inout RestoreOptions) in
      switch reach {
      case .all: break
      case .onlyVault: options.stores = [.vault]
      case .path: options.scope = [try? ContainerPath(VaultLab.vault)].compactMap { $0 }
      }
      options.includesSynchronizable = self.model.includesSynchronizable
      options.keepExtra = self.model.keepsExtra
    }
    let present = model.hasKey ? keys : nil
    let dry = try lab.dryRun(archive, present, options)
    #expect(try TreeListing(lab.root).differences(from: before, comparing: TreeListing.unread) == [], comment)
    let outcome = try lab.restore(archive, present, options)
    let report = try #require(outcome.value.vault, comment)
    #expect(dry.vault == report && dry.restored == outcome.value.restored, comment)
    #expect(try lab.lab.read("a.txt") == (reach == .all ? "archived" : "live"), comment)

    try expectVault(report, before, comment)
    expectNames(report, comment)
    let after = try TreeListing(lab.root)
    let second = try lab.restore(archive, present, options)
    #expect(second.transaction == nil, comment)
    #expect(second.value.vault?.returned ?? [] == [] && second.value.vault?.removed ?? [] == [], comment)
    #expect(second.value.isIncomplete == outcome.value.isIncomplete, comment)
    expectSame(try TreeListing(lab.root), as: after, comparing: TreeListing.unread)
    if outcome.transaction == nil { return }
    _ = try Transaction.rollback(lab.lab.container())
    #expect(try TreeListing(lab.root).differences(from: before) == [], comment)
  }

  private func expectVault(_ report: RestoreReport.Vault, _ before: TreeListing, _ comment: Comment) throws {
    let expected = items.reduce(into: [String: String]()) { values, item in
      switch model.end(item) {
      case .archive: values[item.name] = item.live == .same ? "both" : "archive"
      case .live: values[item.name] = item.live == .same ? "both" : "live"
      case .absent: break
      }
    }
    guard lab.lab.exists(VaultLab.vault) else {
      #expect(expected.isEmpty || !model.hasVault && model.source == .nothing, comment)
      return
    }
    if model.source == .nothing {
      #expect(try TreeListing(lab.root)[VaultLab.vault]?.content == before[VaultLab.vault]?.content, comment)
      return
    }
    let vault = try lab.vault(keys)
    #expect(try lab.values(keys) == expected, comment)
    #expect(vault.recipients == [keys.present.recipient], comment)
    if model.hasVault {
      #expect(vault.device == live.device, comment)
    } else {
      #expect((vault.device == archived.device) == (model.source == .sealed), comment)
    }
    let isChanged = !report.returned.isEmpty || !report.removed.isEmpty
    #expect(isChanged != (lab.lab.exists(VaultLab.vault) && vault == live), comment)
  }

  private func expectNames(_ report: RestoreReport.Vault, _ comment: Comment) {
    #expect(Set(report.returned) == Set(items.filter(model.isReturned).map(\.name)), comment)
    #expect(Set(report.removed) == Set(items.filter(model.isRemoved).map(\.name)), comment)
    let left = Set(report.notRestored.compactMap(\.item))
    #expect(left == Set(items.filter(model.isNotRestored).map(\.name)), comment)
    #expect(report.notRestored.contains { $0.item == nil } == model.leavesUnknown, comment)
    #expect(report.notRestored.allSatisfy { !$0.reason.isEmpty }, comment)
  }
}
