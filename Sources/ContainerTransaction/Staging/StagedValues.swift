import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Formats

extension StagedContainer {
  /// A settings file as it will be; nil when there is none. The previous version of a SharedPreferences file counts where
  /// it exists.
  ///
  /// - Throws: `DrydockError`: `malformed` when it is not a settings file, `unsupported` when it is encrypted.
  package func defaults(_ path: ContainerPath) throws -> SettingsFile? {
    let source = try settingsSource(of: path)
    guard try status(of: source) != nil else { return nil }
    do {
      return try settingsFile(read(source), at: path)
    } catch var error as DrydockError where [.malformed, .unsupported].contains(error.code) {
      error.path = path.description
      throw error
    }
  }

  package func defaultsExist(at path: ContainerPath) throws -> Bool {
    try status(of: settingsSource(of: path)) != nil
  }

  /// What is at a path: nothing, the file, and the previous version of a SharedPreferences file, which Android puts in its place.
  package func present(at path: ContainerPath) throws -> [ContainerPath] {
    try [path, path.preferencesBackup].compactMap { $0 }.filter { try status(of: $0) != nil }
  }

  /// The file that has the settings of a path.
  func settingsSource(of path: ContainerPath) throws -> ContainerPath {
    try Container.settingsSource(path) { try status(of: $0)?.type == .file }
  }

  /// The settings in a file's bytes; nil when there are none, or when they are encrypted.
  func settingsIfAny(in bytes: [UInt8], at path: ContainerPath) throws -> PropertyListDictionary? {
    do {
      return try settingsFile(bytes, at: path).root
    } catch let error as DrydockError where [.malformed, .unsupported].contains(error.code) {
      return nil
    }
  }

  /// Writes a settings file, in its own format. The previous version of a SharedPreferences file is removed, as Android
  /// does after writing.
  package func setDefaults(_ file: SettingsFile, at path: ContainerPath) throws {
    let bytes: [UInt8]
    do {
      bytes = try file.encoded()
    } catch var error as DrydockError {
      error.path = error.path ?? path.description
      throw error
    }
    try write(bytes, to: path)
    // XML rounds dates, so that what is read is not always what was written.
    if file.format == .propertyList(.binary) { remember(file, bytes, path) }
  }

  /// - Parameter path: where the file is, which decides on its format.
  private func settingsFile(_ bytes: [UInt8], at path: ContainerPath) throws -> SettingsFile {
    if let known = recentSettings.first(where: { $0.bytes == bytes && $0.path == path }) { return known.file }
    let file = try SettingsFile(bytes: bytes, path: path.description)
    remember(file, bytes, path)
    return file
  }

  private func remember(_ file: SettingsFile, _ bytes: [UInt8], _ path: ContainerPath) {
    recentSettings = recentSettings.suffix(1) + [(bytes, path, file)]
  }
}

extension StagedContainer {
  /// The keys of the device.
  ///
  /// - Parameter doing: what needs them, such as `vault.rename`, for the message.
  /// - Throws: `DrydockError` with code `vaultLocked` when none was given.
  @discardableResult
  package func requireDeviceKeys(_ doing: String) throws -> DeviceKeys {
    if let deviceKeys { return deviceKeys }
    let sealed = try sealedVault().map { " (it is \(Vault.summary(of: $0)))" } ?? ""
    throw DrydockError(
      .vaultLocked,
      "\(doing) needs the device key\(sealed), and none was given",
      path: container.vaultPath.description)
  }

  /// The vault as it will be; nil when there is none.
  ///
  /// - Throws: `DrydockError`: `vaultLocked` without a key that opens it, `badVault` when it is damaged.
  package func vault() throws -> Vault? {
    guard let bytes = try sealedVault() else { return nil }
    return try Vault(
      opening: bytes, with: requireDeviceKeys("opening the vault"), path: container.vaultPath.description)
  }

  /// How the vault's file is encrypted, which needs no key; nil when there is none.
  package func vaultEncryption() throws -> String? {
    try sealedVault().map { try Vault.encryption(of: $0, path: container.vaultPath.description) }
  }

  /// The vault's file as it will be; nil when there is none.
  func sealedVault() throws -> [UInt8]? {
    guard try status(of: container.vaultPath) != nil else { return nil }
    return try read(container.vaultPath)
  }

  /// Writes the vault, sealed to the keys that it names, and opens what was written to compare it. A vault that is there
  /// already and the same stays as it is.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when the vault would be sealed to keys of which none was given;
  ///   a new key for it (``Vault/rekey(to:)``) may be given or not.
  package func setVault(_ vault: Vault) throws {
    let path = container.vaultPath
    let keys = try requireDeviceKeys("writing the vault")
    let present = try self.vault()
    if vault == present { return }
    let bytes = try vault.sealed()
    if !Set(keys.recipients).isDisjoint(with: vault.recipients) {
      guard try Vault(opening: bytes, with: keys, path: path.description) == vault else {
        throw DrydockError(
          .checkFailed, "the vault read back differs from what was written; nothing was changed",
          path: path.description)
      }
    } else if vault.recipients == present?.recipients ?? [] {
      // A user who opened it with a key that it does not name would be locked out.
      throw DrydockError(
        .vaultLocked,
        "the vault names other keys than the one that opened it", path: path.description)
    }
    try write(bytes, to: path, mode: 0o600)
  }
}
