import ArchiveManifest
import AgeEncryption
import AppStores
import ArchiveFile
import ArchiveSigning
import Cryptography
import DrydockErrors
import FileSystem
import Storage

/// A snapshot, open for reading: an archive, and if it is incremental the archives that it needs, which are in the same
/// directory.
public final class Archive {
  /// What an archive says of itself.
  public typealias Header = ArchiveHeader
  /// The id of an archive.
  public typealias ID = ArchiveID

  /// Its file, or the URL of it.
  public var path: String { parts[0].path }
  /// What it says of itself.
  public var header: Header { parts[0].header }
  package let manifest: Manifest
  /// The snapshot id: equal ones hold the same content.
  public var snapshot: String { parts[0].snapshot }
  /// The archive itself, its parent, and so on to the full one; or to the last one before ``gap``.
  let parts: [ArchivePart]
  /// The first archive of the chain that cannot be opened, and why; those that only it names are not known.
  let gap: (archive: ID, reason: DrydockError)?
  private let limit: ExpansionLimit

  /// Opens an archive; reads its end, its first member and its manifest, and nothing else; the same of each archive that it
  /// needs.
  ///
  /// - Parameters:
  ///   - keys: what opens it when it is encrypted.
  ///   - limit: how large its manifest may be, and its content when that is read.
  ///   - trusted: whose signatures it and all that it needs must have, and be what was signed; nil for any archive.
  ///   - acceptsGap: opens it also when one that it needs is missing or damaged: with the paths that are known without that
  ///     one. ``verify(data:progress:)`` and a restore then throw an error that names what is affected.
  /// - Throws: `DrydockError`: `notFound`, `untrusted`, `badSignature`, `noIdentity` when no key opens it, `damaged`, `missingArchive` when one that it
  ///   needs is not there, and what reading it throws.
  public convenience init(
    path: String, keys: AgeKeys = AgeKeys(), limit: ExpansionLimit = .standard, trusted: TrustedKeys? = nil,
    acceptsGap: Bool = false
  ) throws {
    try self.init(
      path: path, among: nil as PlaceListing?, keys: keys, limit: limit, trusted: trusted,
      acceptsGap: acceptsGap, usesCache: false)
  }

  /// - Parameter listing: of its repository, which has just been made.
  package convenience init(
    path: String, among listing: Repository.Listing?, keys: AgeKeys, limit: ExpansionLimit,
    trusted: TrustedKeys?, acceptsGap: Bool = false
  ) throws {
    try self.init(
      path: path, among: listing?.present, keys: keys, limit: limit, trusted: trusted, acceptsGap: acceptsGap,
      usesCache: false)
  }

  /// - Parameters:
  ///   - present: what is in its repository, if that was listed: of a remote one, it is not listed again.
  ///   - usesCache: see ``Place/open(_:usesCache:)``.
  init(
    path: String, among present: PlaceListing?, keys: AgeKeys, limit: ExpansionLimit = .standard,
    trusted: TrustedKeys?, acceptsGap: Bool = false, usesCache: Bool
  ) throws {
    let open = { (path: String, file: PlaceFile?) in
      try ArchivePart(path: path, file, keys: keys, limit: limit, trusted: trusted, usesCache: usesCache)
    }
    var known = Places.isRemote(path) ? present : nil
    // A listing's time that is not exact does not show that the file is replaced while it is read.
    let listed = try known?.file(ContainerPath(lastName(path))).flatMap {
      usesCache || $0.timeError == 0 ? $0 : nil
    }
    var parts = [try open(path, listed)]
    func find(_ parent: ID, among listing: PlaceListing) throws -> ArchivePart {
      let place = try Places.ofFile(path).place
      return try Self.find(parent, neededBy: parts[parts.count - 1], of: path, among: listing) {
        name, isNamed in
        let (path, found) = (place.full(name), try listing.file(name))
        // Of a file with another name it is not known yet whether it is worth reading its manifest.
        if !isNamed {
          let source = try Places.source(path, found, usesCache: usesCache)
          let reader = try ArchiveReader(source, path: path, keys: keys)
          guard try ArchivePart.header(reader, path).archive == parent else { return nil }
        }
        return try open(path, found)
      }
    }
    var gap: (ID, DrydockError)?
    var beside: PlaceListing?
    while let parent = parts[parts.count - 1].header.parent {
      let part: ArchivePart
      do {
        var found: ArchivePart?
        // A server that does not answer is not waited for once more.
        do { found = try known.map { try find(parent, among: $0) } } catch let error as DrydockError
          where error.code != .io
        {}
        if let found {
          part = found
        } else {
          // Since that listing, another process may have put an archive in the place of several.
          known = nil
          let listing = try beside ?? Places.ofFile(path).place.list()
          beside = listing
          part = try find(parent, among: listing)
        }
      } catch let error as DrydockError where acceptsGap && error.meansDamage {
        gap = (parent, error)
        break
      }
      guard !parts.contains(where: { $0.header.archive == parent }), parts.count < Manifest.longestChain
      else {
        throw DrydockError(.damaged, "it needs itself", path: path)
      }
      parts.append(part)
    }
    (self.parts, self.limit, self.gap) = (parts, limit, gap)
    manifest = try Manifest(parts.map(\.manifest), isComplete: gap == nil)
    if parts.count > 1 {
      try DrydockError.locating(path) {
        try limit.checkMemory("its chain's manifest", manifest.memory(), fileSize: fileSize)
      }
    }
  }

  /// Finds an archive that an incremental one needs, by its id: in its directory, whatever its name is. The ids in
  /// names are tried first, so that usually one file is opened for each.
  ///
  /// - Parameter open: opens a file, also whether its name has the id; nil for another archive's.
  private static func find(
    _ id: ID, neededBy child: ArchivePart, of archive: String, among listing: PlaceListing,
    open: (ContainerPath, _ isNamed: Bool) throws -> ArchivePart?
  ) throws -> ArchivePart {
    var problem: DrydockError?
    for (name, isNamed) in listing.archives(withFirst: id) {
      do {
        guard let part = try open(name, isNamed), part.header.archive == id else { continue }
        guard ArchiveLabel(part.header).ownerKey == ArchiveLabel(child.header).ownerKey else {
          throw DrydockError(
            .damaged, "its parent, \(lastName(part.path).printable), is of another app or instance",
            path: child.path)
        }
        return part
      } catch let error as DrydockError where isNamed || error.meansForgery {
        problem = problem ?? error
      } catch is DrydockError {}
    }
    if let problem {
      throw DrydockError(
        problem.code,
        "\(lastName(problem.path ?? id.short).printable), which \(lastName(archive).printable) needs, cannot be read: "
          + problem.message,
        path: problem.path, cause: problem)
    }
    throw DrydockError(
      .missingArchive,
      "needs the archive \(id.short), which is not in its directory; put that file back, or use another archive",
      path: archive)
  }

  /// The header of a full archive in the place of this one. It names what the archives of the chain named as older, and those
  /// themselves where their times do not say it.
  func fullHeader() -> Header {
    let ancestors = parts.dropFirst().map(\.header)
    func named(_ field: (Header) -> [String]?, _ isOlder: (String) -> Bool) -> [String]? {
      let ids =
        parts.flatMap { field($0.header) ?? [] } + ancestors.filter { isOlder($0.time) }.map(\.archive.short)
      return ids.isEmpty ? nil : Array(Set(ids)).sorted()
    }
    var header = header
    (header.kind, header.parent) = (.full, nil)
    header.follows = named(\.follows) { $0 > header.time }
    header.followsOfSecond = named(\.followsOfSecond) { $0 == header.time }
    return header
  }

  /// Whether an archive has a signature, as a list says it: nothing of it is verified.
  package static func hasSignature(path: String) throws -> Bool {
    let (place, name) = try Places.ofFile(path)
    return try SignaturePayload.isSigned(name, at: place)
  }

  /// Who signed it; nil unless it was opened with trusted keys.
  public var signer: Signer? { parts[0].signature?.by }

  /// Where the vault's items are that may leave their device; only an encrypted archive has them.
  var vault: MemberLocation? { parts[0].vault }
  package var encryption: ArchiveEncryption? { parts[0].reader.encryption }
  /// Compressed bytes that were read so far, also of the archives that it needs.
  public var bytesRead: UInt64 { parts.reduce(0) { $0 + $1.reader.bytesRead } }
  /// The size of its file and of those that it needs.
  public var fileSize: UInt64 { parts.reduce(0) { $0 + $1.reader.fileSize } }

  /// How an archive is encrypted; nil when it is not.
  package static func encryption(path: String) throws -> ArchiveEncryption? {
    try DrydockError.locating(path) { try ArchiveEncryption.of(Places.source(path, usesCache: true)) }
  }

  /// What an archive says of itself, without opening the rest.
  public static func header(path: String, keys: AgeKeys = AgeKeys()) throws -> Header {
    try ArchivePart.header(ArchiveReader(Places.source(path), path: path, keys: keys), path)
  }

  /// Checks that all content together stays within the limit that the archive was opened with.
  func checkExpansion() throws {
    for part in parts { try part.reader.checkExpansion(limit) }
    // Entries of an incremental archive may share content: a small one could name the same content a million times.
    if parts.count > 1 {
      let stored = parts.reduce(0) { $0 + $1.reader.tarSize }
      func check(_ size: UInt64) throws {
        try limit.check("repeated content", size - min(size, stored), fileSize: fileSize)
      }
      try DrydockError.locating(path) {
        do { try check(manifest.contentSize()) } catch {
          // That counted earlier versions, too.
          var size: UInt64 = 0
          try manifest.entries { entry in
            let (sum, overflow) = size.addingReportingOverflow(entry.hardLink == nil ? entry.size : 0)
            size = overflow ? .max : sum
          }
          try check(size)
        }
      }
    }
  }

  /// Visits all entries, each with its place in the manifests; throws at last unless they give the snapshot id.
  ///
  /// - Parameter own: see ``MergedEntries/next(own:)``.
  func entries(
    _ visit: (ManifestEntry, (part: Int, row: Int64)) throws -> Void,
    own: (Int, ManifestEntry) throws -> Void
  ) throws {
    let id = try SnapshotID()
    var entries = try MergedEntries(manifest)
    while let entry = try entries.next(own: own) {
      id.add(entry)
      try visit(entry, entries.place)
    }
    try expectSnapshot(id.finish().hex)
  }

  /// Throws unless the entries that were read give the snapshot id; without all manifests they cannot.
  func expectSnapshot(_ id: String) throws {
    guard gap != nil || id == snapshot else {
      throw DrydockError(
        .damaged, "the manifest's entries do not match its snapshot id; use another archive", path: path)
    }
  }

  /// What to do about content that is not what the manifest says, before anything was changed.
  static let nothingChanged = "nothing was changed, use another archive"

  /// Reads an entry's content; see ``ManifestEntry/readContent(of:otherwise:into:reader:)``. The checks, one for each
  /// archive of the chain, compare the headers in front of contents.
  @discardableResult
  func content(
    of entry: ManifestEntry, otherwise advice: String = "use another archive",
    checking checks: [MemberCheck?] = [],
    _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws -> BlockHashes? {
    try entry.readContent(of: path, otherwise: advice, into: body) { extent in
      guard let number = parts.firstIndex(where: { $0.header.archive == extent.archive }) else { return nil }
      if number < checks.count { try checks[number]?.check(contentAt: extent.offset) }
      return parts[number].reader.ranges
    }
  }

  /// The vault's items that may leave their device, checked against the manifest; nil when the archive has none.
  package func vaultExtract() throws -> VaultExtract? {
    guard let vault else { return nil }
    let secret = try SecretBytes(count: Int(vault.length)) { target in
      var filled = 0
      try parts[0].reader.read(offset: vault.offset, length: vault.length) { bytes in
        UnsafeMutableRawBufferPointer(rebasing: target[filled...]).copyMemory(from: bytes)
        filled += bytes.count
      }
    }
    guard try secret.withBytes({ try SHA256.hash($0) }) == vault.sha256 else {
      throw DrydockError(
        .damaged, "its \(MemberNames.vault) is not what the manifest says; use another archive", path: path)
    }
    do {
      return try VaultExtract(decoding: secret, path: nil)
    } catch let error as DrydockError {
      throw DrydockError(
        .damaged, "its \(MemberNames.vault) is invalid: \(error.message)", path: path, cause: error)
    }
  }
}

extension ManifestEntry {
  /// Reads the content piece by piece, and compares it with its hash at last: what `body` was given is not to be
  /// trusted before this returns.
  ///
  /// - Parameters:
  ///   - archive: the archive's path, for errors.
  ///   - advice: what to do about content that is not what the manifest says.
  ///   - reader: the reader of a piece's archive.
  /// - Returns: the hashes of its blocks, if its digest follows from them.
  /// - Throws: `DrydockError` with code `damaged`, what reading the archive throws, and what `body` throws.
  func readContent(
    of archive: String, otherwise advice: String, into body: (UnsafeRawBufferPointer) throws -> Void,
    reader: (Extent) throws -> RangeReader?
  ) throws -> BlockHashes? {
    var hash = try ContentHash(isDatabase: kind == .database, size: size)
    for extent in extents {
      try reader(extent)?.read(offset: extent.offset, length: extent.length) { bytes in
        try hash.update(bytes)
        try body(bytes)
      }
    }
    let (found, blocks) = try hash.finish()
    guard found == digest else {
      throw DrydockError(
        .damaged, "the content of \(path) is not what the manifest says; \(advice)", path: archive)
    }
    return blocks
  }
}

extension WorkProgress {
  /// Begins a phase that reads an archive and those that it needs: what is read of their bytes is the measure. Frames that are
  /// read again, such as those of the manifest, may make it more than all.
  func begin(_ phase: Phase, reading archive: Archive) {
    let (size, sources) = (archive.fileSize, archive.parts.map(\.reader.rangeSource))
    begin(phase, totalBytes: size) { min(size, sources.reduce(0) { $0 + $1.bytesRead }) }
  }
}

extension DrydockError {
  /// Whether no trusted key has signed something, or a signature is not valid.
  var meansForgery: Bool { code == .untrusted || code == .badSignature }
}
