import AppContainer
import ContainerTransaction
import FileSystem

/// A plain archive whose settings still hold a value that was moved into the vault: everybody with the archive has the
/// secret, which must be replaced by a new one.
public struct ExposedSecret: Sendable, Codable, Equatable {
  /// The archive's path.
  public var archive: String
  /// Its settings file and the key in it, which may have had another name then.
  public var file: ContainerPath, key: String
}

extension Repository {
  /// Searches the settings of an app's plain archives for values that were moved into the vault. It gives names only.
  /// Encrypted archives are skipped.
  ///
  /// - Returns: what was found, oldest archive first; and archives that could not be read, each with the reason.
  package func exposed(
    _ secrets: [MovedSecret], of app: String, configuration: ContainerConfiguration = ContainerConfiguration()
  ) throws -> (found: [ExposedSecret], notRead: [String]) {
    if secrets.isEmpty { return ([], []) }
    let listing = try list()
    var found: [ExposedSecret] = []
    var notRead = listing.unreadable.map { "\($0.path): \($0.reason)" }
    for item in listing.items where item.encryption == nil && item.app == app {
      do {
        let side = try ArchiveSide(Archive(path: item.path), configuration: configuration)
        let next = try side.walk()
        while let step = try next() {
          guard case .entry(let entry) = step,
            entry.kind == .settings || (entry.kind == .file && secrets.contains { $0.path == entry.path })
          else { continue }
          for key in secrets.keys(in: try side.settings(of: entry.path) ?? [:]) {
            found.append(ExposedSecret(archive: item.path, file: entry.path, key: key))
          }
        }
      } catch {
        notRead.append("\(item.path): \(error)")
      }
    }
    return (found, notRead)
  }
}
