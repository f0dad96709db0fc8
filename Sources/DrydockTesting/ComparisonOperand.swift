import AgeEncryption
import AppContainer
import AppStores
import ArchiveFile
import BackupRepository
import ContainerDiff
import ContainerTransaction
import Drydock
import DrydockErrors
import Foundation

/// One of the two that are compared.
package enum ComparisonOperand {
  case archive(Archive), container(Container), golden(Golden)

  /// Runs a body with what is at a path: a file is an archive or a container packed into one file, a directory with a
  /// golden's list a golden, any other a container.
  ///
  /// - Parameters:
  ///   - keys: what opens an encrypted archive.
  ///   - limit: how large an archive, or a packed container, may be when it is expanded.
  /// - Throws: `DrydockError`: `notFound`, or `notAContainer` for anything else; what opening it and the
  ///   body throw.
  package static func with<T>(
    at path: String, configuration: ContainerConfiguration = ContainerConfiguration(),
    keys: AgeKeys = AgeKeys(), limit: ExpansionLimit = .standard, _ body: (Self) throws -> T
  ) throws -> T {
    guard let resolved = realPath(path),
      let type = try? FileManager.default.attributesOfItem(atPath: resolved)[.type] as? FileAttributeType
    else {
      throw DrydockError(
        .notFound, "nothing is there; give an archive, a container or a golden", path: path)
    }
    switch type {
    case .typeDirectory where Golden.isGolden(resolved): return try body(.golden(Golden(path)))
    case .typeRegular:
      if let archive = try archive(path, keys, limit) { return try body(.archive(archive)) }
      fallthrough
    case .typeDirectory:
      return try Container.reading(at: path, configuration: configuration, limit: limit) {
        try body(.container($0))
      }
    default:
      throw DrydockError(
        .notAContainer,
        "neither an archive (a file), nor a container or a golden (a directory); check the path", path: path)
    }
  }

  /// The archive that a file is; nil for a packed container.
  private static func archive(_ path: String, _ keys: AgeKeys, _ limit: ExpansionLimit) throws -> Archive? {
    do {
      return try Archive(path: path, keys: keys, limit: limit)
    } catch let error as DrydockError where ForeignContainer.isForeignArchive(path) {
      // A tar in zstd without our tables at its end is a foreign archive, or was cut: its first member shows which.
      if ForeignContainer.isArchive(path) { throw error }
      return nil
    }
  }

  fileprivate func side(
    _ configuration: ContainerConfiguration, _ transaction: TransactionOptions,
    isWhole: Bool
  ) throws -> any ComparisonSide {
    switch self {
    case .archive(let archive): try ArchiveSide(archive, configuration: configuration)
    case .golden(let golden): golden
    case .container(let container):
      try ContentSide(live: DiscardedStage(on: container, options: transaction), isWhole: isWhole)
    }
  }

  fileprivate var golden: Golden? {
    if case .golden(let golden) = self { golden } else { nil }
  }
}

extension Comparison {
  /// Compares two; what rules keep out of either does not count, unless one is a golden, which has all of a container.
  /// Nor does what is volatile in the fixture that a golden is of.
  ///
  /// A live container may be in use, and is not changed: its databases are captured as for a snapshot, and every byte
  /// of the files that the other side has is read. Of an archive only what differs is read.
  package init(
    of before: ComparisonOperand, with after: ComparisonOperand,
    configuration: ContainerConfiguration = ContainerConfiguration(),
    options: ComparisonOptions = ComparisonOptions(), transaction: TransactionOptions = TransactionOptions()
  ) throws {
    var options = options
    options.deviceKeys = options.deviceKeys ?? transaction.deviceKeys
    // A golden has all of a container, also what no backup takes.
    let goldens = [before, after].compactMap(\.golden)
    let volatile = try goldens.compactMap { try $0.volatile() }.first ?? VolatileValues()
    let isWhole = !goldens.isEmpty
    var (before, after) = try (
      before.side(configuration, transaction, isWhole: isWhole),
      after.side(configuration, transaction, isWhole: isWhole)
    )
    if isWhole {
      (before, after) = try (NormalizedSide(before, volatile), NormalizedSide(after, volatile))
    }
    try self.init(of: before, with: after, options: options)
  }

  /// Compares a container's vault with an archive's by the items that a restore would bring back.
  ///
  /// - Returns: what such a restore would do; nil when there is nothing to say of items: no key opens both, or they are
  ///   the same file.
  package static func vault(
    of archive: Archive, with container: Container, transaction: TransactionOptions
  ) throws -> RestoreReport.Vault? {
    guard transaction.deviceKeys != nil else { return nil }
    var options = RestoreOptions()
    options.stores = [.vault]
    options.transaction = transaction
    let vault = try Restore.plan(archive, container, options).vault
    return vault?.problem == nil ? vault : nil
  }
}
