import AppContainer
import BackupRepository
import ContainerTransaction
import FixtureTesting
import Foundation

/// Compares archives, containers and goldens with each other.
public enum Comparing {
  /// One of the two that are compared.
  public enum Operand {
    case archive(Archive), container(Container), golden(Golden)
  }

  /// What is at a path: a file is an archive, a directory with a golden's list a golden, any other a container.
  ///
  /// - Throws: `ContainerError`: `notFound`, or `notAContainer` for what is none of the three; what opening it throws.
  public static func operand(
    at path: String, configuration: Configuration = Configuration(), instance: String? = nil
  ) throws -> Operand {
    guard let resolved = realPath(path),
      let type = try? FileManager.default.attributesOfItem(atPath: resolved)[.type] as? FileAttributeType
    else {
      throw ContainerError(
        .notFound, "nothing is there; give an archive, a container or a golden", path: path)
    }
    switch type {
    case .typeDirectory:
      if Golden.isGolden(resolved) { return .golden(try Golden(path)) }
      return .container(try Container(at: path, configuration: configuration, instance: instance))
    case .typeRegular: return .archive(try Archive(path: path))
    default:
      throw ContainerError(
        .notAContainer,
        "neither an archive (a file), nor a container or a golden (a directory); check the path", path: path)
    }
  }

  /// Compares two; what rules keep out of either does not count.
  ///
  /// A live container may be in use, and is not changed: its databases are captured as for a snapshot, and every byte
  /// of the files that the other side has is read. Of an archive only what differs is read.
  ///
  /// - Throws: `RepositoryError`, `ArchiveError`, `ContainerError`, `TransactionError` (`locked`), `FixtureError`.
  public static func run(
    _ before: Operand, _ after: Operand, configuration: Configuration = Configuration(),
    options: ComparisonOptions = ComparisonOptions(), transaction: TransactionOptions = TransactionOptions()
  ) throws -> Comparison {
    try withSide(before, configuration, transaction) { before in
      try withSide(after, configuration, transaction) { after in
        try Comparison(of: before, with: after, options: options)
      }
    }
  }

  private static func withSide<T>(
    _ operand: Operand, _ configuration: Configuration, _ transaction: TransactionOptions,
    _ body: (any ComparisonSide) throws -> T
  ) throws -> T {
    switch operand {
    case .archive(let archive): try body(ArchiveSide(archive, configuration: configuration))
    case .golden(let golden): try body(GoldenSide(golden))
    case .container(let container):
      try Transaction.inspect(container, options: transaction) { try body(LiveSide($0)) }
    }
  }
}
