import DrydockErrors
import Foundation
import Synchronization

/// A directory of an SFTP server.
///
/// A new file is written under another name and then renamed: OpenSSH's rename does not replace a file. Files have no version:
/// a listing has times only to the minute, and in the server's time zone.
final class SFTPStore: RemoteStore {
  let url: String
  let place: SFTPPlace
  let options: RemoteOptions
  let retries: Retries
  private let login: SSHLogin
  private let pool: CurlPool
  private let hasRemovedOld = Mutex(false)

  /// More connections take longer to open than they save.
  let parallelReads = 4

  /// Files that are being written.
  static let writingPrefix = ".drydock-writing-"
  /// What was replaced, until the new file has its name.
  static let replacedPrefix = ".drydock-replaced-"
  private static let listingLimit = 256 << 20

  init(_ url: String, _ options: RemoteOptions) throws {
    place = try SFTPPlace(url, options)
    self.url = place.url
    self.options = options
    retries = Retries(options)
    login = try SSHLogin(options)
    pool = CurlPool(place.settings(options, login), limit: 2 * max(options.parallelTransfers, 1))
  }

  func label(_ failure: String, _ method: String, _ name: String) -> RequestLabel {
    RequestLabel(failure: failure, method: method, url: name.isEmpty ? url : "\(url)/\(name)")
  }

  // MARK: Requests

  /// One request, with each of the user's keys until the server accepts one.
  func perform(_ request: CurlRequest, received: inout Int) throws -> CurlReply {
    while true {
      let number = login.number
      do {
        let reply = try pool.perform(request, received: &received)
        login.isAccepted()
        return reply
      } catch var failure as RemoteFailure where failure.refusesLogin {
        switch login.isRefused(number) {
        case .next: continue
        case .again:
          failure.isTransient = true
          throw failure
        case .end: throw failure
        }
      }
    }
  }

  func perform(_ request: CurlRequest) throws -> CurlReply {
    var received = 0
    return try perform(request, received: &received)
  }

  /// Writes a file, or to its end.
  func send(_ request: CurlRequest) throws {
    do { _ = try perform(request) } catch let failure as RemoteFailure { throw failure.ofWrite }
  }

  func run(_ commands: [String]) throws {
    _ = try perform(CurlRequest(url: place.location(""), operation: .commands(commands)))
  }

  /// The size and time of a file as the server says it; nil when it does not exist.
  func state(_ name: String) throws -> RemoteFile? {
    do {
      let reply = try perform(CurlRequest(url: place.location(name), operation: .head, asksTime: true))
      // libcurl does not know the size of an empty file.
      let (size, seconds) = (reply.size ?? 0, reply.modified ?? 0)
      return RemoteFile(name: name, size: size, modified: seconds * 1_000_000_000, version: "")
    } catch let failure as RemoteFailure where failure.code == .notFound {
      return nil
    }
  }

  // MARK: RemoteStore

  func createIfNeeded() throws {
    try retries.run(label("cannot be made", "mkdir", "")) { _ in
      // Fails when it exists; whether it can be used shows the listing.
      try run(["*mkdir \(place.argument(""))"])
      do {
        _ = try lines("")
      } catch let failure as RemoteFailure where failure.code == .notFound {
        // The protocol has one answer for all reasons.
        throw RemoteFailure(
          .notFound, "the directory does not exist, and the server does not make it",
          advice: "check that its parent directory exists and may be written, or correct the path")
      }
    }
  }

  /// The lines of a directory's listing.
  private func lines(_ folder: String) throws -> [SFTPListingLine] {
    let reply = try perform(
      CurlRequest(
        url: place.location(folder.isEmpty ? "" : folder)
          + (place.location(folder).hasSuffix("/") ? "" : "/"),
        operation: .get, target: .text(limit: Self.listingLimit)))
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

  func list(_ folder: String) throws -> [RemoteFile] {
    if !folder.isEmpty { try RemoteName.check(folder) }
    let lines = try retries.run(label("cannot be listed", "list", folder)) { _ -> [SFTPListingLine] in
      do {
        return try self.lines(folder)
      } catch let failure as RemoteFailure where failure.code == .notFound {
        guard !folder.isEmpty else {
          throw RemoteFailure(.notFound, "the directory does not exist", advice: "correct the path")
        }
        // Only the folder may be missing.
        _ = try self.lines("")
        return []
      }
    }
    let names = Set(lines.map { $0.name })
    return lines.compactMap { line -> RemoteFile? in
      var name = line.name
      if line.isRegularFile, name.hasPrefix(Self.writingPrefix) { return nil }
      if line.isRegularFile, name.hasPrefix(Self.replacedPrefix) {
        name.removeFirst(Self.replacedPrefix.count)
        if names.contains(name) || name.isEmpty { return nil }
      }
      return RemoteFile(
        name: folder.isEmpty ? name : "\(folder)/\(name)", size: line.size,
        modified: line.modified * 1_000_000_000, version: "", isFile: line.isRegularFile, hasExactTime: false)
    }.sorted { $0.name < $1.name }
  }

  func file(_ name: String) throws -> RemoteFile? {
    try RemoteName.check(name)
    return try retries.run(label("cannot be read", "stat", name)) { _ in try existing(name) }
  }

  /// The file, or what it had before a replacement that was interrupted.
  private func existing(_ name: String) throws -> RemoteFile? {
    if let file = try state(name) { return file }
    guard var old = try state(Self.replaced(name)) else {
      // The replacement may have ended between the two requests.
      return try state(name)
    }
    old.name = name
    return old
  }

  /// The name for what a file had before, in the same folder.
  static func replaced(_ name: String) -> String {
    guard let slash = name.lastIndex(of: "/") else { return replacedPrefix + name }
    return name[...slash] + replacedPrefix + name[name.index(after: slash)...]
  }

  func read(_ file: RemoteFile, at offset: UInt64, into target: UnsafeMutableRawBufferPointer) throws {
    var name = file.name
    try fill(target, with: file, at: offset, retries, label("cannot be read", "read", file.name)) {
      rest, first, received in
      do {
        let reply = try perform(
          CurlRequest(
            url: place.location(name), operation: .get, range: "\(first)-\(first + UInt64(rest.count) - 1)",
            target: .buffer(rest, contentRange: nil), asksTime: file.hasExactTime),
          received: &received)
        if file.hasExactTime, let seconds = reply.modified, seconds * 1_000_000_000 != file.modified {
          throw RemoteFailure(.changedMeanwhile, "it was replaced meanwhile", advice: "run it again")
        }
        guard received == rest.count else {
          throw RemoteFailure(.truncated, "the file is shorter than it was", advice: "run it again")
        }
      } catch let failure as RemoteFailure
        where failure.code == .notFound && name == file.name && first == offset
      {
        guard try state(Self.replaced(name)) != nil else { throw failure }
        name = Self.replaced(name)
        throw RemoteFailure(.notFound, failure.reason, isTransient: true)
      }
    }
  }

  func put(_ name: String, _ bytes: [UInt8]) throws -> RemoteFile {
    try RemoteName.check(name)
    let temporary = Self.temporaryName()
    do {
      try write(bytes, to: name, through: temporary)
    } catch {
      // Once: where the server cannot be reached, an upload removes it a day later.
      try? run(["*rm \(place.argument(temporary))"])
      throw error
    }
    return try written(file(name), name)
  }

  private func write(_ bytes: [UInt8], to name: String, through temporary: String) throws {
    try retries.run(label("cannot be written", "write", name)) { _ in
      try send(CurlRequest(url: place.location(temporary), operation: .send("", RequestBody(bytes))))
    }
    try retries.run(label("cannot be written", "rename", name)) { _ in
      if try rename(temporary, to: name, size: UInt64(bytes.count)) {
        try run(["*rm \(place.argument(Self.replaced(name)))"])
        return
      }
      // No request replaces a file; a kill between these leaves the old one under a name that readers know.
      let old = place.argument(Self.replaced(name))
      try run([
        "*rm \(old)", "rename \(place.argument(name)) \(old)",
        "rename \(place.argument(temporary)) \(place.argument(name))", "*rm \(old)",
      ])
    }
  }

  static func temporaryName() -> String {
    writingPrefix + String(UInt64.random(in: .min ... .max), radix: 36)
  }

  /// Gives a file that was written its name.
  ///
  /// - Returns: false when there is another file of that name.
  func rename(_ temporary: String, to name: String, size: UInt64) throws -> Bool {
    let command = "rename \(place.argument(temporary)) \(place.argument(name))"
    // OpenSSH does not replace a file; this is for servers that do.
    let existing = try state(name)
    do {
      if existing == nil {
        try run([command])
        return true
      }
    } catch let failure as RemoteFailure where failure.code == .notFound {
      // The folder is missing, or the reply of an earlier attempt was lost.
      if let slash = name.lastIndex(of: "/"), try state(temporary) != nil {
        try run(["*mkdir \(place.argument(String(name[..<slash])))", command])
        return true
      }
    } catch let failure as RemoteFailure where failure.isAnswer && failure.code == .io {
      guard try state(name) != nil else {
        // Not because of another file.
        throw failure
      }
    }
    guard let found = try state(name) else {
      throw RemoteFailure(.notFound, "what was written is gone", advice: "run it again")
    }
    if try state(temporary) != nil { return false }
    // An earlier attempt, whose reply was lost, gave it its name.
    guard found.size == size else {
      throw RemoteFailure(.notFound, "what was written is gone", advice: "run it again")
    }
    return true
  }

  func upload(_ name: String, from source: @escaping RemoteSource) throws -> any RemoteUpload {
    try RemoteName.check(name)
    removeOldUploads()
    return SFTPUpload(self, name, source)
  }

  func remove(_ name: String) throws {
    try RemoteName.check(name)
    try retries.run(label("cannot be removed", "rm", name)) { _ in
      do {
        try run(["*rm \(place.argument(Self.replaced(name)))", "rm \(place.argument(name))"])
      } catch let failure as RemoteFailure where failure.code == .notFound {
      }
    }
  }

  // MARK: Uploads of killed processes

  /// Removes what uploads have left that ended more than a day ago, once for each store.
  private func removeOldUploads() {
    guard
      !hasRemovedOld.withLock({
        let done = $0; $0 = true; return done
      }), let lines = try? lines("")
    else { return }
    let yesterday = Int64((Date().timeIntervalSince1970 - 86_400) * 1e9)
    for line in lines where line.isRegularFile && line.name.hasPrefix(Self.writingPrefix) {
      // The listing's time may be of another time zone.
      guard let file = try? state(line.name), file.modified < yesterday else { continue }
      try? run(["*rm \(place.argument(line.name))"])
    }
  }
}
