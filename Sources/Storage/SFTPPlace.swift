import ArchiveFile
import CLibCurl
import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// A directory of an SFTP server.
///
/// A new file is written under another name and then renamed: OpenSSH's rename does not replace a file. Files have no version:
/// a listing has times only to the minute, and in the server's time zone.
final class SFTPPlace: ServerPlace {
  let path: String
  let address: SFTPAddress
  let options: RemoteOptions
  private let login: SSHLogin
  private let pool: CurlPool
  private let hasRemovedOld = Mutex(false)

  /// More connections take longer to open than they save.
  let parallelReads = 4, parallelRanges = 6

  /// What was replaced, until the new file has its name.
  static let replacedPrefix = ".drydock-replaced-"
  private static let listingLimit = 256 << 20

  init(_ url: String, _ options: RemoteOptions) throws {
    address = try SFTPAddress(url, options)
    path = address.url
    self.options = options
    let login = try SSHLogin(options)
    self.login = login
    pool = CurlPool("sftp", options) { [user = address.user] handle in
      handle.set(CURLOPT_USERNAME, user)
      // Other accounts of the server read nothing.
      handle.set(CURLOPT_NEW_FILE_PERMS, 0o600)
      handle.set(CURLOPT_NEW_DIRECTORY_PERMS, 0o700)
      login.apply(handle)
    }
  }

  // MARK: Requests

  func perform(_ request: CurlRequest) throws -> CurlReply {
    try login.offering { try pool.perform(request) }
  }

  /// Writes a file, or to its end.
  func send(_ request: CurlRequest) throws {
    do { _ = try perform(request) } catch let failure as RemoteFailure { throw failure.ofWrite }
  }

  func run(_ commands: [String]) throws {
    _ = try perform(CurlRequest(url: address.location(.root), operation: .commands(commands)))
  }

  /// The size and time of a file as the server says it; nil when it does not exist.
  func state(_ name: ContainerPath) throws -> PlaceFile? {
    do {
      let reply = try perform(CurlRequest(url: address.location(name), operation: .head, asksTime: true))
      // libcurl does not know the size of an empty file.
      let (size, seconds) = (reply.size ?? 0, reply.modified ?? 0)
      return PlaceFile(name, size: size, modified: seconds * 1_000_000_000)
    } catch let failure as RemoteFailure where failure.code == .notFound {
      return nil
    }
  }

  // MARK: ServerPlace

  func createIfNeeded() throws {
    try retrying("cannot be made", "mkdir") { _ in
      // Fails when it exists; whether it can be used shows the listing.
      try run(["*mkdir \(address.argument(.root))"])
      do {
        _ = try lines(.root)
      } catch let failure as RemoteFailure where failure.code == .notFound {
        // The protocol has one answer for all reasons.
        throw RemoteFailure(
          .notFound, "the directory does not exist, and the server does not make it",
          advice: "check that its parent directory exists and may be written, or correct the path")
      }
    }
  }

  /// The lines of a directory's listing.
  private func lines(_ folder: ContainerPath) throws -> [SFTPListingLine] {
    let reply = try perform(
      CurlRequest(
        url: address.location(folder) + (folder.isRoot ? "" : "/"),
        operation: .get, textLimit: Self.listingLimit))
    let now = Int64(Date().timeIntervalSince1970)
    return try String(decoding: reply.text, as: UTF8.self).split(separator: "\n").compactMap { text in
      guard let line = SFTPListingLine(text, now: now) else {
        throw RemoteFailure.protocolViolation(
          "the server's listing has a line that is not understood: \(RemoteName.printable(text))")
      }
      guard RemoteName.isComponent(line.name) else {
        // `.` and `..` among them.
        guard line.isRegularFile else { return nil }
        throw RemoteFailure(
          .unsafeName, "the server's listing has an unsafe name: \(RemoteName.printable(line.name))")
      }
      return line
    }
  }

  func files(_ folder: ContainerPath) throws -> [PlaceFile] {
    let lines = try retrying("cannot be listed", "list", folder.isRoot ? nil : folder) {
      _ -> [SFTPListingLine] in
      do {
        return try self.lines(folder)
      } catch let failure as RemoteFailure where failure.code == .notFound {
        guard !folder.isRoot else {
          throw RemoteFailure(.notFound, "the directory does not exist", advice: "correct the path")
        }
        // Only the folder may be missing.
        _ = try self.lines(.root)
        return []
      }
    }
    let names = Set(lines.map { $0.name })
    return lines.compactMap { line -> PlaceFile? in
      var name = line.name
      if line.isRegularFile, name.hasPrefix(Places.writingPrefix) { return nil }
      if line.isRegularFile, name.hasPrefix(Self.replacedPrefix) {
        name.removeFirst(Self.replacedPrefix.count)
        if names.contains(name) || name.isEmpty { return nil }
      }
      return PlaceFile(
        folder.appending(name: Array(name.utf8)), size: line.size, modified: line.modified * 1_000_000_000,
        timeError: (24 + 14) * 3600, isFile: line.isRegularFile)
    }.sorted { $0.name < $1.name }
  }

  func file(_ name: ContainerPath) throws -> PlaceFile? {
    try retrying("cannot be read", "stat", name) { _ in try existing(name) }
  }

  /// The file, or what it had before a replacement that was interrupted.
  private func existing(_ name: ContainerPath) throws -> PlaceFile? {
    if let file = try state(name) { return file }
    guard var old = try state(Self.replaced(name)) else {
      // The replacement may have ended between the two requests.
      return try state(name)
    }
    old.name = name
    return old
  }

  /// The name for what a file had before, in the same folder.
  private static func replaced(_ name: ContainerPath) -> ContainerPath {
    name.parent.appending(name: Array(replacedPrefix.utf8) + name.nameBytes)
  }

  func read(_ file: PlaceFile, at offset: UInt64, into target: UnsafeMutableRawBufferPointer) throws {
    var name = file.name
    // So that a file that was replaced is recognized while it is read.
    let isExact = file.timeError == 0
    try fill(target, with: file, at: offset, by: "read") { rest in
      do {
        let reply = try perform(
          CurlRequest(
            url: address.location(name), operation: .get, range: rest.range, buffer: rest, asksTime: isExact))
        if isExact, let seconds = reply.modified, seconds * 1_000_000_000 != file.modified {
          throw RemoteFailure.replaced
        }
        guard rest.isFull else { throw RemoteFailure.shortened }
      } catch let failure as RemoteFailure
        where failure.code == .notFound && name == file.name && rest.first == offset
      {
        guard try state(Self.replaced(name)) != nil else { throw failure }
        name = Self.replaced(name)
        throw RemoteFailure(.notFound, failure.reason, isTransient: true)
      }
    }
  }

  func put(_ name: ContainerPath, _ bytes: [UInt8]) throws {
    try RemoteName.check(name)
    let temporary = Self.temporaryName()
    do {
      try write(bytes, to: name, through: temporary)
    } catch {
      // Once: where the server cannot be reached, an upload removes it a day later.
      try? run(["*rm \(address.argument(temporary))"])
      throw error
    }
  }

  private func write(_ bytes: [UInt8], to name: ContainerPath, through temporary: ContainerPath) throws {
    try retrying("cannot be written", "write", name) { _ in
      try send(CurlRequest(url: address.location(temporary), operation: .send("", ArchiveSource(bytes))))
    }
    try retrying("cannot be written", "rename", name) { _ in
      if try rename(temporary, to: name, size: UInt64(bytes.count)) {
        try run(["*rm \(address.argument(Self.replaced(name)))"])
        return
      }
      // No request replaces a file; a kill between these leaves the old one under a name that readers know.
      let old = address.argument(Self.replaced(name))
      try run([
        "*rm \(old)", "rename \(address.argument(name)) \(old)",
        "rename \(address.argument(temporary)) \(address.argument(name))", "*rm \(old)",
      ])
    }
  }

  static func temporaryName() -> ContainerPath {
    ContainerPath(
      name: Array((Places.writingPrefix + String(UInt64.random(in: .min ... .max), radix: 36)).utf8))
  }

  /// Gives a file that was written its name.
  ///
  /// - Returns: false when there is another file of that name.
  func rename(_ temporary: ContainerPath, to name: ContainerPath, size: UInt64) throws -> Bool {
    let command = "rename \(address.argument(temporary)) \(address.argument(name))"
    // OpenSSH does not replace a file; this is for servers that do.
    let existing = try state(name)
    do {
      if existing == nil {
        try run([command])
        return true
      }
    } catch let failure as RemoteFailure where failure.code == .notFound {
      // The folder is missing, or the reply of an earlier attempt was lost.
      if !name.parent.isRoot, try state(temporary) != nil {
        try run(["*mkdir \(address.argument(name.parent))", command])
        return true
      }
    } catch let failure as RemoteFailure where failure.isAnswer && failure.code == .io {
      guard try state(name) != nil else {
        // Not because of another file.
        throw failure
      }
    }
    let found = try state(name)
    if try found != nil && state(temporary) != nil { return false }
    // An earlier attempt, whose reply was lost, gave it its name.
    guard found?.size == size else {
      throw RemoteFailure(.notFound, "what was written is gone", advice: "run it again")
    }
    return true
  }

  func receiver(_ name: ContainerPath) -> (any PieceReceiver, threads: Int) {
    removeOldUploads()
    return (SFTPUpload(self, name), 1)
  }

  func remove(_ name: ContainerPath) throws {
    try retrying("cannot be removed", "rm", name) { _ in
      do {
        try run(["*rm \(address.argument(Self.replaced(name)))", "rm \(address.argument(name))"])
      } catch let failure as RemoteFailure where failure.code == .notFound {
      }
    }
  }

  // MARK: Uploads of killed processes

  /// Removes what uploads have left that ended more than a day ago, once for each place.
  private func removeOldUploads() {
    guard
      !hasRemovedOld.withLock({
        let done = $0; $0 = true; return done
      }), let lines = try? lines(.root)
    else { return }
    let yesterday = Int64((Date().timeIntervalSince1970 - 86_400) * 1e9)
    for line in lines where line.isRegularFile && line.name.hasPrefix(Places.writingPrefix) {
      // The listing's time may be of another time zone.
      let name = ContainerPath(name: Array(line.name.utf8))
      guard let file = try? state(name), file.modified < yesterday else { continue }
      try? run(["*rm \(address.argument(name))"])
    }
  }
}
