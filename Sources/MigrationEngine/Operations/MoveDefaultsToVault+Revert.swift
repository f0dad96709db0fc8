import AppContainer
import ContainerTransaction
import Formats

/// The way back: items become settings again, with the values that they have now.
extension MoveDefaultsToVault {
  var wayBack: WayBack { .byArguments }

  /// One way back.
  private struct Return {
    var key: String
    var type: PropertyListValue?
    /// The item that the step wrote, and what there was before.
    var written: VaultItem.ID, before: VaultItem?
    /// Whether the item had the value already.
    var wasThere: Bool
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard var vault = try stage.vault() else { return ["there is no vault: skipped"] }
    let file = try target.path(in: stage.container)
    for item in try returns(memory, stage) {
      guard let now = vault[item.written] else {
        edit.notes.append("the vault item \(item.written) is not there: skipped")
        continue
      }
      guard edit.values[item.key] == nil else {
        edit.notes.append("`\(item.key)` is there already: kept, and the vault item \(item.written) too")
        continue
      }
      let value = try now.value.withBytes {
        try SecretForm.setting(of: Array($0), as: form, type: item.type, key: item.key)
      }
      edit.values[item.key] = value
      // What is kept of this rollback is sealed as what is kept of the move.
      stage.keepSealed(MovedSecret(path: file, key: item.key, value: value), to: vault.recipients)
      if item.wasThere { continue }
      vault.remove(item.written)
      if let before = item.before { vault.put(before) }
    }
    if vault.items.isEmpty, memory?.made.contains(stage.container.vaultPath) == true {
      try stage.remove(stage.container.vaultPath)
    } else {
      try stage.setVault(vault)
    }
    var nothing = StepMemory()
    return try edit.save(to: stage, &nothing)
  }

  private func returns(_ memory: StepMemory?, _ stage: StagedContainer) throws -> [Return] {
    guard let memory else {
      return moves.map { move in
        var item = template
        item.account = move.account
        return Return(key: move.key, type: nil, written: item.id, before: nil, wasThere: false)
      }
    }
    let changes = try memory.items?.open(on: stage) ?? []
    return zip(memory.types, changes).compactMap { type, change in
      change.after.map { after in
        Return(
          key: type.key, type: type.value, written: after.id, before: change.before,
          wasThere: change.before == after)
      }
    }
  }
}
