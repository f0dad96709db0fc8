/// How large an archive's content may be: what keeps a small file from filling a disk.
public struct ExpansionLimit: Sendable {
  private let bytes: UInt64?

  /// 1 GiB, or 250 times the archive's size where that is more.
  public static let standard = ExpansionLimit(nil)

  /// So many bytes, whatever the archive's size.
  public init(bytes: UInt64) { self.init(bytes) }

  private init(_ bytes: UInt64?) { self.bytes = bytes }

  private static let always: UInt64 = 1 << 30
  private static let ratio: UInt64 = 250

  /// Throws `ArchiveError` `.limit` for more than that.
  func check(_ what: String, _ size: UInt64, fileSize: UInt64) throws {
    let (product, overflow) = fileSize.multipliedReportingOverflow(by: Self.ratio)
    let limit = bytes ?? max(Self.always, overflow ? .max : product)
    guard size <= limit else {
      throw ArchiveError(
        .limit,
        "\(what) expands to \(size) bytes, from a file of \(fileSize); more than \(limit) is refused, as it may be made "
          + "to fill the disk: if you trust it, allow it with --max-size")
    }
  }
}

extension ArchiveReader {
  /// Checks that the whole content stays within a limit.
  ///
  /// - Throws: `ArchiveError` with code `limit`.
  public func checkExpansion(_ limit: ExpansionLimit) throws {
    try located { try limit.check("the archive", tarSize, fileSize: fileSize) }
  }

  /// Checks that the manifest stays within a limit.
  ///
  /// - Throws: `ArchiveError` with code `limit`.
  public func checkManifestExpansion(_ limit: ExpansionLimit) throws {
    try located { try limit.check("its manifest", manifest.length, fileSize: fileSize) }
  }
}
