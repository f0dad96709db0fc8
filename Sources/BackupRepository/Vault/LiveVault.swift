import AppContainer
import ContainerTransaction
import DrydockErrors

/// The vault of the container that is restored into.
enum LiveVault {
  /// There is none.
  case absent
  /// It can be read and written.
  case open(Vault)
  /// It cannot, and why.
  case closed(String)

  /// Looks at a container's vault.
  init(_ staged: StagedContainer) throws {
    let path = staged.container.vaultPath
    guard try staged.status(of: path)?.type == .file else {
      self = .absent
      return
    }
    guard let keys = staged.deviceKeys else {
      self = .closed(ArchivedVault.noKey)
      return
    }
    do {
      let vault = try Vault(opening: staged.read(path), with: keys, path: path.description)
      self =
        Set(keys.recipients).isDisjoint(with: vault.recipients)
        ? .closed(
          "the container's vault says that it is sealed to other keys than the one that opens it; seal it to yours with "
            + "`drydock vault rekey`") : .open(vault)
    } catch let error as DrydockError where error.code == .vaultLocked {
      self = .closed("in the container, " + error.message)
    } catch let error as DrydockError where error.code == .badVault || error.code == .unsupported {
      self = .closed("in the container, \(error.message); when it is moved away, the archive's comes back")
    }
  }

  /// It, when it can be read.
  var vault: Vault? {
    if case .open(let vault) = self { vault } else { nil }
  }
}
