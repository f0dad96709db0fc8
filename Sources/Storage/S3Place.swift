import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// A bucket below a prefix, over S3's REST interface. Requests are signed by libcurl.
final class S3Place: ServerPlace {
  let path: String
  let parallelReads = 16, parallelRanges = 16
  let address: S3Address
  let options: RemoteOptions
  private let pool: CurlPool
  /// Whether the server knows `If-None-Match` in requests that publish; until one is refused.
  let knowsConditions = Mutex(true)

  private static let listingLimit = 8 << 20
  /// A listing of more pages than this, 1,000 names each, is not one of a repository.
  private static let pageLimit = 10_000

  init(_ url: String, _ options: RemoteOptions) throws {
    address = try S3Address(url, options)
    path = address.url
    self.options = options
    pool = CurlPool(address.scheme, options, apply: address.apply)
  }

  // MARK: Requests

  /// Sends one signed request; the caller looks at the status.
  ///
  /// - Parameter digest: of the body, which the server compares with what arrives.
  func send(
    _ operation: CurlRequest.Operation, key: String?, query: [(name: String, value: String)] = [],
    fields: [String] = [], digest: SHA256.Digest? = nil, into buffer: ReplyBuffer? = nil,
    textLimit: Int = 256 << 10, patience: Double? = nil
  ) throws -> CurlReply {
    let digest = try digest ?? SHA256.hash([])
    return try pool.perform(
      CurlRequest(
        url: address.url(key: key, query: query), operation: operation,
        fields: address.fields + ["x-amz-content-sha256:\(digest.hex)"] + fields, buffer: buffer,
        textLimit: textLimit, patience: patience))
  }

  /// The reply, if the server did what it was asked.
  func succeeded(_ reply: CurlReply) throws -> CurlReply {
    guard (200..<300).contains(reply.status) else { throw RemoteFailure.s3(reply) }
    return reply
  }

  /// The document of a reply with status 200, of this name. S3 reports late errors in such a reply, too.
  func document(_ reply: CurlReply, _ name: String) throws -> S3Document {
    guard let document = S3Document.read(try succeeded(reply).text) else {
      throw RemoteFailure.protocolViolation("the server's reply is not an S3 document")
    }
    if document.name == "Error" { throw RemoteFailure.s3(reply) }
    guard document.name == name else {
      throw RemoteFailure.protocolViolation(
        "the server's reply is a \(RemoteName.printable(document.name)), not a \(name)")
    }
    return document
  }

  // MARK: ServerPlace

  func createIfNeeded() throws {
    // A bucket that answers is there.
    if abortOldUploads() { return }
    _ = try retrying("the bucket cannot be listed", "GET") { _ in
      try document(
        send(.get, key: nil, query: [("list-type", "2"), ("max-keys", "1"), ("prefix", address.key(.root))]),
        "ListBucketResult")
    }
  }

  func files(_ folder: ContainerPath) throws -> [PlaceFile] {
    let prefix = address.key(folder) + (folder.isRoot ? "" : "/")
    var files: [PlaceFile] = []
    var token: String?
    for _ in 0..<Self.pageLimit {
      var query = [("list-type", "2"), ("delimiter", "/"), ("encoding-type", "url"), ("prefix", prefix)]
      if let token { query.append(("continuation-token", token)) }
      let page = try retrying("cannot be listed", "GET", folder.isRoot ? nil : folder) { _ in
        try document(
          send(.get, key: nil, query: query, textLimit: Self.listingLimit), "ListBucketResult")
      }
      files += try page.all("Contents").compactMap { try file($0, in: page, prefix: prefix, folder) }
      guard page["IsTruncated"]?.text == "true" else { return files.sorted { $0.name < $1.name } }
      guard let next = page["NextContinuationToken"]?.text, !next.isEmpty, next != token else { break }
      token = next
    }
    throw DrydockError(.unreadable, "cannot be listed: the server's listing does not end", path: path)
  }

  /// One entry of a listing; nil for the prefix itself, which some tools make as an empty object.
  private func file(
    _ entry: S3Document, in page: S3Document, prefix: String, _ folder: ContainerPath
  ) throws -> PlaceFile? {
    let raw = entry["Key"]?.text ?? ""
    let isEncoded = page["EncodingType"]?.text == "url"
    guard let key = isEncoded ? RemoteName.decode(raw) : raw, key.hasPrefix(prefix),
      let size = entry["Size"].flatMap({ UInt64($0.text) }),
      let modified = entry["LastModified"].flatMap({ RemoteTime.iso($0.text) })
    else {
      throw DrydockError(
        .unsafeName,
        "cannot be listed: the server's listing has an invalid entry: \(RemoteName.printable(raw))",
        path: path)
    }
    let name = key.dropFirst(prefix.count)
    if name.isEmpty { return nil }
    guard RemoteName.isComponent(name) else {
      throw DrydockError(
        .unsafeName,
        "cannot be listed: the server's listing has an unsafe name: \(RemoteName.printable(raw))",
        path: path)
    }
    return PlaceFile(
      folder.appending(name: Array(name.utf8)), size: size, modified: modified,
      version: Self.version(entry["ETag"]?.text ?? ""))
  }

  func file(_ name: ContainerPath) throws -> PlaceFile? {
    try retrying("cannot be read", "HEAD", name) { _ in try head(name)?.file }
  }

  /// The file and the identifier of the upload that made it.
  func head(_ name: ContainerPath) throws -> (file: PlaceFile, upload: String?)? {
    let reply = try send(.head, key: address.key(name))
    if reply.status == 404 { return nil }
    let fields = try succeeded(reply).fields
    // libcurl takes the size from the same field, and checks it.
    guard let size = reply.size ?? fields["content-length"].flatMap({ UInt64($0) }),
      let modified = fields["last-modified"].flatMap({ RemoteTime.http($0) })
    else { throw RemoteFailure.protocolViolation("the server does not say the file's size and time") }
    let file = PlaceFile(
      name, size: size, modified: modified, version: Self.version(fields["etag"] ?? ""))
    return (file, fields[S3Upload.markField])
  }

  /// An ETag without quotes, which lists and headers write differently.
  static func version(_ tag: String) -> String {
    let tag = tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
    return tag.trimmingCharacters(in: ["\""])
  }

  func read(_ file: PlaceFile, at offset: UInt64, into target: UnsafeMutableRawBufferPointer) throws {
    let condition = file.version.isEmpty ? [] : ["if-match:\"\(file.version)\""]
    try fill(target, with: file, at: offset, by: "GET") { rest in
      let reply = try send(
        .get, key: address.key(file.name), fields: ["range:bytes=\(rest.range)"] + condition, into: rest)
      if reply.status == 416 { throw RemoteFailure.shortened }
      _ = try succeeded(reply)
      guard rest.isFull else { throw RemoteFailure(.io, "the reply ended early", isTransient: true) }
    }
  }

  func put(_ name: ContainerPath, _ bytes: [UInt8]) throws {
    let digest = try SHA256.hash(bytes)
    _ = try retrying("cannot be written", "PUT", name) { _ in
      try succeeded(send(.send("PUT", ArchiveSource(bytes)), key: address.key(name), digest: digest))
    }
  }

  func receiver(_ name: ContainerPath) -> (any PieceReceiver, threads: Int) {
    (S3Upload(self, name), options.parallelTransfers)
  }

  func remove(_ name: ContainerPath) throws {
    try retrying("cannot be removed", "DELETE", name) { _ in
      let reply = try send(.plain("DELETE"), key: address.key(name))
      if reply.status != 404 || RemoteFailure.s3(reply).serverCode == "NoSuchBucket" {
        _ = try succeeded(reply)
      }
    }
  }

  // MARK: Uploads of killed processes

  /// Ends uploads below the prefix that began more than a day ago: their parts are paid for, and nothing shows them. Without
  /// the rights for it, nothing happens: the bucket should have a lifecycle rule.
  ///
  /// - Returns: whether the server knows the bucket.
  private func abortOldUploads() -> Bool {
    guard
      let reply = try? send(.get, key: nil, query: [("prefix", address.key(.root)), ("uploads", "")]),
      let page = try? document(reply, "ListMultipartUploadsResult")
    else { return false }
    let yesterday = Int64((Date().timeIntervalSince1970 - 86_400) * 1e9)
    for upload in page.all("Upload") {
      guard let key = upload["Key"]?.text, key.hasPrefix(address.key(.root)),
        let id = upload["UploadId"]?.text,
        let begun = upload["Initiated"].flatMap({ RemoteTime.iso($0.text) }), begun < yesterday
      else { continue }
      _ = try? send(.plain("DELETE"), key: key, query: [("uploadId", id)])
    }
    return true
  }
}
