import DrydockErrors

/// How large an archive's content may be: what keeps a small file from filling a disk.
package struct ExpansionLimit: Sendable {
  private let bytes: UInt64?

  /// 1 GiB, or 250 times the archive's size where that is more.
  package static let standard = ExpansionLimit(nil)

  /// So many bytes, whatever the archive's size.
  package init(bytes: UInt64) { self.init(bytes) }

  private init(_ bytes: UInt64?) { self.bytes = bytes }

  private static let always: UInt64 = 1 << 30
  private static let ratio: UInt64 = 250

  /// Throws `DrydockError` `.limit` for more than that.
  func check(_ what: String, _ size: UInt64, fileSize: UInt64) throws {
    let limit = bytes ?? max(Self.always, Self.product(fileSize, Self.ratio))
    guard size <= limit else {
      throw DrydockError(
        .limit,
        "\(what) expands to \(size) bytes, from a file of \(fileSize); more than \(limit) is refused, as it may be made "
          + "to fill the disk: if you trust it, allow it with --max-size")
    }
  }

  /// What a list of paths may take in memory: 240 MB for an archive of up to 2 MiB, and 400 bytes for each byte beyond. The
  /// smallest archive that a snapshot can make takes 20 bytes for a path, of an empty file.
  private static let memory: UInt64 = 240_000_000
  private static let memoryFileSize: UInt64 = 2 << 20
  private static let memoryRatio: UInt64 = 400

  /// Throws `DrydockError` `.limit` for more than that.
  func checkMemory(_ what: String, _ need: UInt64, fileSize: UInt64) throws {
    let beyond = fileSize - min(fileSize, Self.memoryFileSize)
    let (sum, overflow) = Self.product(beyond, Self.memoryRatio).addingReportingOverflow(Self.memory)
    let limit = bytes ?? (overflow ? .max : sum)
    guard need <= limit else {
      throw DrydockError(
        .limit,
        "\(what) takes up to \(need) bytes of memory, from a file of \(fileSize); more than \(limit) is refused, as it may "
          + "be made to fill the memory: if you trust it, allow it with --max-size")
    }
  }

  private static func product(_ size: UInt64, _ factor: UInt64) -> UInt64 {
    let (product, overflow) = size.multipliedReportingOverflow(by: factor)
    return overflow ? .max : product
  }
}

extension ArchiveReader {
  /// Checks that the whole content stays within a limit.
  ///
  /// - Throws: `DrydockError` with code `limit`.
  package func checkExpansion(_ limit: ExpansionLimit) throws {
    try located { try limit.check("the archive", tarSize, fileSize: fileSize) }
  }

  /// Checks that what is kept of the manifest in memory stays within a limit.
  ///
  /// - Throws: `DrydockError` with code `limit`.
  package func checkManifestMemory(_ need: UInt64, _ limit: ExpansionLimit) throws {
    try located { try limit.checkMemory("its manifest", need, fileSize: fileSize) }
  }
}
