import AppContainer
import DrydockErrors
import FileSystem

/// A vault's items as an archive has them, as far as they can be read.
enum ArchivedVault {
  /// All of them, from the sealed file: this is the device that the archive was made on.
  case whole(Vault)
  /// Those that may leave their device, and why the sealed file does not open.
  case extract(VaultExtract, String)
  /// None, and why.
  case none(String)

  /// Opens the sealed file of an archive, else takes what may leave.
  ///
  /// - Parameter sealed: the file's content; nil when the archive has something else in its place.
  /// - Throws: as ``Archive/vaultExtract()``.
  init(_ sealed: [UInt8]?, _ archive: Archive, _ keys: DeviceKeys?, path: ContainerPath) throws {
    var problem = "the archive has no file in its place"
    if let sealed {
      do {
        if let keys {
          self = .whole(try Vault(opening: sealed, with: keys, path: path.description))
          return
        }
        problem = "it is \(Vault.summary(of: sealed)), and \(Self.noKey)"
      } catch let error as DrydockError {
        problem = "in the archive: " + error.message
      }
    }
    self = try archive.vaultExtract().map { .extract($0, problem) } ?? .none(problem)
  }

  static let noKey =
    "no device key is at hand; give it with --device-key FILE, or name it in DRYDOCK_DEVICE_KEY"

  /// The items.
  var items: [VaultItem.ID: VaultItem] {
    switch self {
    case .whole(let vault): vault.items
    case .extract(let extract, _): extract.document.items
    case .none: [:]
    }
  }

  /// What is known of those that it does not have.
  var staying: [VaultExtract.Staying] {
    if case .extract(let extract, _) = self { extract.staying } else { [] }
  }

  /// The device's name; nil when it is not known.
  var device: String? {
    switch self {
    case .whole(let vault): vault.device
    case .extract(let extract, _): extract.document.device
    case .none: nil
    }
  }

  /// Whether all of the vault can be read.
  var isWhole: Bool { if case .whole = self { true } else { false } }
}
