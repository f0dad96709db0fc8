import Cryptography
import DrydockErrors
import Foundation

/// A file on its way into a bucket: one request when it is small, else a multipart upload whose parts are sent in parallel.
final class S3Upload: RemoteUpload, @unchecked Sendable {
  // Everything mutable is used with the lock of `condition`.
  private let store: S3Store
  private let name: String
  private let source: RemoteSource
  /// Identifies this upload in the object's metadata, so that it is recognized when the reply was lost.
  private let mark = UUID().uuidString.lowercased()
  private let condition = NSCondition()

  private var announced: UInt64 = 0
  /// Whether no more bytes follow, so that the last part may be short.
  private var isComplete = false
  /// Whether no further part is to be sent.
  private var isStopped = false
  private var failure: (any Error)?
  /// The server's identifier of the multipart upload, once it began.
  private var id: String?
  private var isBeginning = false
  private var nextPart = 0
  private var nextOffset: UInt64 = 0
  private var tags: [Int: String] = [:]
  private var working = 0
  /// A repeated `publish` reports what the first one did.
  private var published: RemoteFile?

  static let markField = "x-amz-meta-drydock-upload"

  init(_ store: S3Store, _ name: String, _ source: @escaping RemoteSource) {
    (self.store, self.name, self.source) = (store, name, source)
  }

  private var key: String { store.place.key(name) }

  /// Parts grow, so that the 10,000 that are allowed are enough for 1 TiB. The first 380 have the same size: some servers want
  /// that of all parts.
  static func partSize(_ index: Int) -> UInt64 { (8 << 20) * UInt64(1 + index / 380) }
  private static let partLimit = 10_000

  // MARK: RemoteUpload

  func extend(to size: UInt64) throws {
    try condition.withLock {
      if let failure { throw failure }
      announced = max(announced, size)
      startWorkers()
      condition.broadcast()
    }
  }

  func publish(size: UInt64) throws -> RemoteFile? {
    let (parts, isRepeated) = try condition.withLock { () -> (Bool, RemoteFile?) in
      if let published { return (false, published) }
      if let failure { throw failure }
      announced = max(announced, size)
      isComplete = true
      // A file of one part needs no multipart upload.
      if nextPart > 0 || size > Self.partSize(0) {
        startWorkers()
        condition.broadcast()
        while failure == nil, working > 0 { condition.wait() }
        if let failure { throw failure }
        return (true, nil)
      }
      return (false, nil)
    }
    if let isRepeated { return isRepeated }
    if let other = try existing() { return try settle(other, size) }
    let reply = parts ? try complete() : try putWhole(size)
    guard reply else {
      guard let other = try existing() else {
        throw DrydockError(
          .changedMeanwhile,
          "cannot be written: another file of that name was there for a moment; run it again",
          path: "\(store.url)/\(name)")
      }
      return try settle(other, size)
    }
    return try settle(store.written(existing(), name), size)
  }

  func cancel() {
    let id = condition.withLock { () -> String? in
      isStopped = true
      condition.broadcast()
      while working > 0 { condition.wait() }
      return self.id.take()
    }
    guard let id else { return }
    _ = try? store.retries.run(store.label("cannot be cancelled", "DELETE", name)) { _ in
      let reply = try store.send(.plain("DELETE"), key: key, query: [("uploadId", id)])
      if reply.status != 404 { _ = try store.succeeded(reply) }
    }
  }

  deinit {
    condition.withLock { isStopped = true }
  }

  /// The file of that name, and which upload made it.
  private func existing() throws -> (file: RemoteFile, upload: String?)? {
    try store.retries.run(store.label("cannot be read", "HEAD", name)) { _ in try store.head(name) }
  }

  /// The result, when there is a file of that name: this upload's, or another.
  private func settle(_ found: (file: RemoteFile, upload: String?), _ size: UInt64) throws -> RemoteFile? {
    guard found.upload == mark else {
      cancel()
      return nil
    }
    guard found.file.size == size else {
      throw DrydockError(
        .io, "was written with \(found.file.size) bytes instead of \(size); remove it, and run it again",
        path: "\(store.url)/\(name)")
    }
    condition.withLock { (published, id) = (found.file, nil) }
    return found.file
  }

  // MARK: Publishing

  /// - Returns: false when the server has a file of that name.
  private func putWhole(_ size: UInt64) throws -> Bool {
    let body = body(offset: 0, size: size)
    let digest = try digest(body)
    return try publishing("PUT") { condition in
      try store.send(
        .send("PUT", body), key: key, fields: ["\(Self.markField):\(mark)"] + condition, digest: digest)
    }
  }

  private func complete() throws -> Bool {
    let (begun, tags) = condition.withLock { () -> (String?, [Int: String]) in (self.id, self.tags) }
    guard let id = begun else { return false }
    var document = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    for (index, tag) in tags.sorted(by: { $0.key < $1.key }) {
      document += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>&quot;\(tag)&quot;</ETag></Part>"
    }
    let bytes = Array((document + "</CompleteMultipartUpload>").utf8)
    let digest = try SHA256.hash(bytes)
    return try publishing("POST") { condition in
      // The server joins the parts before it answers.
      let reply = try store.send(
        .send("POST", RequestBody(bytes)), key: key, query: [("uploadId", id)], fields: condition,
        digest: digest,
        patience: max(store.options.noProgressLimit, store.options.deadline))
      // An earlier attempt, whose reply was lost, did it; or it is gone for good, and the caller finds no file.
      if reply.status == 404, RemoteFailure.s3(reply).serverCode == "NoSuchUpload" { return nil }
      guard (200..<300).contains(reply.status) else { return reply }
      // S3 reports late errors so. After any other document the file is asked for.
      let document = S3Document.read(reply.text)
      if document?.name == "Error" { throw RemoteFailure.s3(reply) }
      return document?.name == "CompleteMultipartUploadResult" ? reply : nil
    }
  }

  /// Sends a request that gives the file its name, unless there is one.
  ///
  /// - Parameter request: its parameter are the fields of the condition; it returns nil when there is nothing more to do.
  /// - Returns: false when the server has a file of that name, which may be this upload's.
  private func publishing(_ method: String, _ request: ([String]) throws -> CurlReply?) throws -> Bool {
    try store.retries.run(store.label("cannot be written", method, name)) { _ in
      let isConditional = store.knowsConditions.withLock { $0 }
      guard var reply = try request(isConditional ? ["if-none-match:*"] : []) else { return false }
      if reply.status == 412 { return false }
      if isConditional, reply.status == 501 || RemoteFailure.s3(reply).serverCode == "NotImplemented" {
        store.knowsConditions.withLock { $0 = false }
        guard let unconditional = try request([]) else { return false }
        reply = unconditional
      }
      _ = try store.succeeded(reply)
      return true
    }
  }

  // MARK: Parts

  private func body(offset: UInt64, size: UInt64) -> RequestBody {
    RequestBody(size: size) { [weak self, source] target, position in
      // Cancelled: the request ends at once.
      guard let self, !condition.withLock({ isStopped }) else { throw CancellationError() }
      try source(target, offset + position)
    }
  }

  private func digest(_ body: RequestBody) throws -> SHA256.Digest {
    let digest = try SHA256()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var offset: UInt64 = 0
    while offset < body.size {
      let piece = UnsafeMutableRawBufferPointer(
        rebasing: buffer[..<Int(min(UInt64(buffer.count), body.size - offset))])
      try body.read(piece, offset)
      digest.update(UnsafeRawBufferPointer(piece))
      offset += UInt64(piece.count)
    }
    return try digest.finalize()
  }

  /// The next part, if its bytes are there. Called with the lock.
  private var hasPart: Bool {
    guard nextOffset < announced, !isStopped, failure == nil else { return false }
    return isComplete || announced - nextOffset > Self.partSize(nextPart)
  }

  /// Starts threads for the parts that are ready, up to the allowed number. Called with the lock.
  private func startWorkers() {
    guard hasPart else { return }
    while working < max(store.options.parallelTransfers, 1) {
      working += 1
      let thread = Thread { self.work() }
      thread.stackSize = 1 << 20
      thread.start()
      // More threads than parts would only start and end.
      if announced - nextOffset <= UInt64(working) * Self.partSize(nextPart) { break }
    }
  }

  private func work() {
    while let (index, offset, size) = takePart() {
      do {
        try sendPart(index, offset, size)
      } catch {
        condition.withLock { failure = failure ?? error }
      }
    }
  }

  /// The next part; nil when there is none yet, and this thread's work is done.
  private func takePart() -> (index: Int, offset: UInt64, size: UInt64)? {
    condition.withLock {
      guard hasPart else {
        working -= 1
        condition.broadcast()
        return nil
      }
      let part = (nextPart, nextOffset, min(Self.partSize(nextPart), announced - nextOffset))
      (nextPart, nextOffset) = (nextPart + 1, nextOffset + part.2)
      return part
    }
  }

  private func sendPart(_ index: Int, _ offset: UInt64, _ size: UInt64) throws {
    guard index < Self.partLimit else {
      throw DrydockError(.limit, "cannot be written: larger than 1 TiB", path: "\(store.url)/\(name)")
    }
    let id = try begin()
    let body = body(offset: offset, size: size)
    let digest = try digest(body)
    let tag = try store.retries.run(store.label("cannot be written", "PUT", name)) { _ in
      let reply = try store.succeeded(
        store.send(
          .send("PUT", body), key: key, query: [("partNumber", "\(index + 1)"), ("uploadId", id)],
          digest: digest))
      guard let tag = reply.fields["etag"].map(S3Store.version), !tag.isEmpty,
        tag.utf8.allSatisfy({ (0x21...0x7e).contains($0) && !"<>&\"".utf8.contains($0) })
      else { throw RemoteFailure.protocolViolation("the server does not say the ETag of a part") }
      return tag
    }
    condition.withLock { tags[index] = tag }
  }

  /// The multipart upload's identifier; the first thread asks the server for it, the others wait.
  private func begin() throws -> String {
    condition.lock()
    while isBeginning { condition.wait() }
    if let id {
      condition.unlock()
      return id
    }
    if let failure {
      condition.unlock()
      throw failure
    }
    isBeginning = true
    condition.unlock()
    let begun = Result { try requestID() }
    return try condition.withLock {
      isBeginning = false
      condition.broadcast()
      switch begun {
      case .success(let id): self.id = id
      case .failure(let error): failure = failure ?? error
      }
      return try begun.get()
    }
  }

  private func requestID() throws -> String {
    try store.retries.run(store.label("cannot be written", "POST", name)) { _ in
      let document = try store.document(
        store.send(
          .send("POST", RequestBody([])), key: key, query: [("uploads", "")],
          fields: ["\(Self.markField):\(mark)"]),
        "InitiateMultipartUploadResult")
      guard let id = document["UploadId"]?.text, !id.isEmpty, id.utf8.count <= 2048 else {
        throw RemoteFailure.protocolViolation("the server does not say the identifier of an upload")
      }
      return id
    }
  }
}
