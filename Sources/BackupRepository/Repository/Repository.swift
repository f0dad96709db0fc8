import ArchiveManifest
import AgeEncryption
import ArchiveFile
import ArchiveSigning
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Storage

/// A directory or a remote place with archives.
public struct Repository: Sendable {
  /// The directory's path, or `s3://BUCKET/PREFIX` or `sftp://HOST/PATH`.
  public let path: String

  /// The repository in a directory, or at an `s3://` or `sftp://` URL; nothing is opened yet.
  public init(_ path: String) {
    let trimmed = String(path.prefix(path.count - path.reversed().prefix { $0 == "/" }.count))
    // The slashes of `s3://` belong to the URL.
    let isCut = trimmed.isEmpty || Places.isRemote(path) && !Places.isRemote(trimmed)
    self.path = isCut ? path : trimmed
  }

  /// The repository that an archive's file is in.
  package static func ofArchive(_ path: String) -> Repository {
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) }
    return Repository(folder.map { $0.isEmpty ? "/" : $0 } ?? ".")
  }

  /// Whether it is at a remote place, named by a URL.
  package var isRemote: Bool { Self.isRemote(path) }
  package static func isRemote(_ path: String) -> Bool { Places.isRemote(path) }

  /// Creates the directory on its first use. Its parent must exist, so that a mistyped path does not become a repository; so
  /// must the bucket of a remote one.
  public func createIfNeeded() throws { try Places.createIfNeeded(path) }

  /// Limits the transfers of this process to and from remote places, and keeps the beginnings and ends of remote archives, which
  /// make a list. For places that are not open yet.
  ///
  /// - Parameters:
  ///   - rateLimit: bytes per second, all transfers together; nil for no limit.
  ///   - cache: a directory for caches; nil for none.
  package static func configureRemotePlaces(rateLimit: UInt64?, cache: String?) {
    Places.configure(RemoteOptions(rateLimit: rateLimit), cache: cache)
  }

  /// Reads the headers of all archives, and nothing else of them. Other files are ignored.
  /// Of encrypted ones that no key opens, only the name is known.
  ///
  /// - Parameters:
  ///   - keys: what opens encrypted ones.
  ///   - trusted: whose signatures are verified; nil to see only whether there are any.
  ///   - progress: counts the archives.
  /// - Throws: `DrydockError`: `notFound`, `permission`, `io`.
  public func list(
    keys: AgeKeys = AgeKeys(), trusted: TrustedKeys? = nil, progress: WorkProgress? = nil
  ) throws -> Listing {
    try opened { try list($0, keys, trusted: trusted, progress: progress) }
  }

  /// Lists files whose names are those of certain archives, and files without such a name. Without tags, each of which
  /// is a file to read.
  ///
  /// - Parameter present: the files in the repository, which were listed before.
  func listUntagged(
    _ present: PlaceListing, keys: AgeKeys, where isWanted: (ArchiveLabel) -> Bool
  ) throws -> Listing {
    try opened { try list($0, keys, present: present, readsTags: false, where: isWanted) }
  }

  private func opened(_ body: (any Place) throws -> Listing) throws -> Listing {
    do {
      return try body(Places.open(path))
    } catch let error as DrydockError where error.code == .notFound && !isRemote {
      throw DrydockError(.notFound, "no such repository; check the path", path: path, cause: error)
    } catch let error as DrydockError {
      throw DrydockError.unusable("the repository", path: path, error)
    }
  }

  func list(
    _ place: any Place, _ keys: AgeKeys, present: PlaceListing? = nil, readsTags: Bool = true,
    trusted: TrustedKeys? = nil, progress: WorkProgress? = nil,
    where isWanted: (ArchiveLabel) -> Bool = { _ in true }
  ) throws -> Listing {
    let present = try present ?? place.list()
    let names = present.archives.filter { $0.label.map(isWanted) ?? true }.map(\.name)
    let all = Set(present.names)
    var listing = Listing(repository: path, place.isRemote ? present : nil)
    progress?.begin(.list, totalFiles: names.count)
    OrderedWork.run(names, jobs: place.parallelReads) { name in
      Result { try present.file(name).flatMap { try found($0, in: place, all, keys, trusted) } }
    } deliver: { name, result in
      progress?.add(files: 1)
      switch result {
      case .success(let archive): listing.archives += [archive].compactMap { $0 }
      case .failure(let error): listing.unreadable.append(.init(path: place.full(name), error))
      }
    }
    if readsTags { try listing.readTags(present.names, in: place) }
    listing.archives = listing.namingOwners(listing.archives)
    try listing.makeTimesExact(at: place)
    listing.archives = ArchiveOrder(listing.archives).sorted()
    return listing
  }

  /// An archive by its file; nil when it is gone.
  private func found(
    _ file: PlaceFile, in place: any Place, _ names: Set<[UInt8]>, _ keys: AgeKeys, _ trusted: TrustedKeys?
  ) throws -> StoredArchive? {
    let path = place.full(file.name)
    guard file.isFile else {
      throw DrydockError(
        .damaged, "not a file; links are not followed, put the archive itself here", path: path)
    }
    // A path that is printed must be that of the file.
    guard "\(file.name)".utf8.elementsEqual(file.name.bytes) else {
      throw DrydockError(.damaged, "its name has control characters, or is not UTF-8; rename it", path: path)
    }
    do {
      let source = try place.open(file, usesCache: true)
      do {
        let reader = try ArchiveReader(source, keys: keys)
        let json = try ArchivePart.json(reader, path)
        let header = try Archive.Header(decoding: json, path: path)
        var archive = StoredArchive(path: path, access: .open(header), file: file)
        (archive.encryption, archive.contentSize) = (reader.encryption, reader.contentSize)
        archive.signature = try SignatureState.of(file.name, among: names, at: place, trusted) {
          try $0.requireOf(header, json, reader)
        }
        return archive
      } catch let error as DrydockError where error.code == .noIdentity {
        guard let encryption = try ArchiveEncryption.of(source) else { throw error }
        var archive = StoredArchive(path: path, access: .locked(error.at(path)), file: file)
        archive.encryption = encryption
        archive.signature = try SignatureState.of(file.name, among: names, at: place, trusted) {
          try $0.requireOf(file, archive.label)
        }
        return archive
      }
    } catch let error as DrydockError where error.code == .notFound {
      return nil
    } catch let error as DrydockError where error.code == .permission && !isRemote {
      throw DrydockError(.permission, "permission denied; run it as its owner", path: path, cause: error)
    }
  }

  /// The path of the archive that a name means; see ``Listing/find(_:for:)``.
  package func find(_ name: String, keys: AgeKeys = AgeKeys()) throws -> String {
    try list(keys: keys).find(name)
  }
}

extension Repository {
  /// The repository with its lock (``Places/locked(_:exclusive:timeout:)``), which is held as long as a copy of this exists. Who
  /// reads takes none: an open archive stays readable to its end when its name is removed, and a read-only repository, or another
  /// user's, can be read.
  ///
  /// - Parameters:
  ///   - exclusive: for who removes; who writes takes it shared.
  ///   - timeout: seconds to wait; 0 waits for a tenth of a second.
  /// - Throws: `DrydockError`: `locked`, naming the holders; `notFound`, `permission`.
  func locked(exclusive: Bool, timeout: Double) throws -> any Place {
    do {
      if let place = try Places.locked(path, exclusive: exclusive, timeout: timeout) { return place }
      throw DrydockError(
        .locked, "the repository is locked by \(try ContainerLock.holders(of: path)); wait for it", path: path
      )
    } catch let error as DrydockError {
      throw DrydockError.unusable("the repository", path: path, error)
    }
  }
}

extension DrydockError {
  /// An error of the file system about a directory for archives.
  static func unusable(_ what: String, path: String, _ error: DrydockError) -> DrydockError {
    // What a server says has its own advice.
    if Places.isRemote(path) { return error.at(path) }
    return switch error.code {
    case .notFound:
      DrydockError(
        .notFound, "\(what) does not exist; check the path, or make it with mkdir", path: path, cause: error)
    case .notAContainer:
      DrydockError(.notFound, "\(what) is not a directory; check the path", path: path, cause: error)
    case .permission:
      DrydockError(
        .permission,
        "\(what) cannot be used: \(error.cause.map { "\($0)" } ?? error.message); run it as its owner, or choose another "
          + "place", path: path, cause: error)
    default: error.at(path)
    }
  }
}
