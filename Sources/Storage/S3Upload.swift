import Cryptography
import ArchiveFile
import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// A file on its way into a bucket: one request when it is small, else a multipart upload whose parts are sent in parallel.
final class S3Upload: PieceReceiver {
  private let place: S3Place
  private let name: ContainerPath, key: String
  /// Identifies this upload in the object's metadata, so that it is recognized when the reply was lost.
  private let mark = UUID().uuidString.lowercased()

  /// The server's identifier of the multipart upload, once the first thread asked for it; the others wait.
  private let begun = Mutex<Result<String, any Error>?>(nil)
  /// The ETags of the parts.
  private let tags = Mutex<[Int: String]>([:])

  static let markField = "x-amz-meta-drydock-upload"

  init(_ place: S3Place, _ name: ContainerPath) {
    (self.place, self.name, key) = (place, name, place.address.key(name))
  }

  /// Parts grow, so that the 10,000 that are allowed are enough for 1 TiB. The first 380 have the same size: some servers want
  /// that of all parts.
  static func partSize(_ index: Int) -> UInt64 { (8 << 20) * UInt64(1 + index / 380) }
  private static let partLimit = 10_000

  func pieceSize(_ number: Int, ready: UInt64, isComplete: Bool) -> UInt64? {
    let size = Self.partSize(number)
    if ready > size { return size }
    // A file of one part needs no multipart upload.
    return isComplete && number > 0 && ready > 0 ? ready : nil
  }

  func finish(_ size: UInt64, pieces: Int, _ body: Body) throws -> PlaceFile? {
    if let other = try existing() { return try settle(other, size) }
    guard try pieces > 0 ? complete() : putWhole(body(0..<size)) else {
      guard let other = try existing() else {
        throw DrydockError(
          .changedMeanwhile,
          "cannot be written: another file of that name was there for a moment; run it again",
          path: place.full(name))
      }
      return try settle(other, size)
    }
    return try settle(place.written(existing(), name), size)
  }

  func discard() {
    guard case .success(let id)? = begun.withLock({ $0.take() }) else { return }
    _ = try? place.retrying("cannot be cancelled", "DELETE", name) { _ in
      let reply = try place.send(.plain("DELETE"), key: key, query: [("uploadId", id)])
      if reply.status != 404 { _ = try place.succeeded(reply) }
    }
  }

  /// The file of that name, and which upload made it.
  private func existing() throws -> (file: PlaceFile, upload: String?)? {
    try place.retrying("cannot be read", "HEAD", name) { _ in try place.head(name) }
  }

  /// The result, when there is a file of that name: this upload's, or another.
  private func settle(_ found: (file: PlaceFile, upload: String?), _ size: UInt64) throws -> PlaceFile? {
    guard found.upload == mark else { return nil }
    guard found.file.size == size else {
      throw DrydockError(
        .io, "was written with \(found.file.size) bytes instead of \(size); remove it, and run it again",
        path: place.full(name))
    }
    return found.file
  }

  // MARK: Publishing

  /// - Returns: false when the server has a file of that name.
  private func putWhole(_ body: ArchiveSource) throws -> Bool {
    let digest = try body.digest()
    return try publishing("PUT") { condition in
      try place.send(
        .send("PUT", body), key: key, fields: ["\(Self.markField):\(mark)"] + condition, digest: digest)
    }
  }

  private func complete() throws -> Bool {
    let id = try begin()
    var document = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    for (index, tag) in tags.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
      document += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>&quot;\(tag)&quot;</ETag></Part>"
    }
    let bytes = Array((document + "</CompleteMultipartUpload>").utf8)
    let digest = try SHA256.hash(bytes)
    return try publishing("POST") { condition in
      // The server joins the parts before it answers.
      let reply = try place.send(
        .send("POST", ArchiveSource(bytes)), key: key, query: [("uploadId", id)], fields: condition,
        digest: digest,
        patience: max(place.options.noProgressLimit, place.options.deadline))
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
    try place.retrying("cannot be written", method, name) { _ in
      let isConditional = place.knowsConditions.withLock { $0 }
      guard var reply = try request(isConditional ? ["if-none-match:*"] : []) else { return false }
      if reply.status == 412 { return false }
      if isConditional, reply.status == 501 || RemoteFailure.s3(reply).serverCode == "NotImplemented" {
        place.knowsConditions.withLock { $0 = false }
        guard let unconditional = try request([]) else { return false }
        reply = unconditional
      }
      _ = try place.succeeded(reply)
      return true
    }
  }

  // MARK: Parts

  func send(_ piece: Range<UInt64>, number: Int, _ body: Body) throws -> Bool {
    guard number < Self.partLimit else {
      throw DrydockError(.limit, "cannot be written: larger than 1 TiB", path: place.full(name))
    }
    let id = try begin()
    let body = body(piece)
    let digest = try body.digest()
    let tag = try place.retrying("cannot be written", "PUT", name) { _ in
      let reply = try place.succeeded(
        place.send(
          .send("PUT", body), key: key, query: [("partNumber", "\(number + 1)"), ("uploadId", id)],
          digest: digest))
      guard let tag = reply.fields["etag"].map(S3Place.version), !tag.isEmpty,
        tag.utf8.allSatisfy({ (0x21...0x7e).contains($0) && !"<>&\"".utf8.contains($0) })
      else { throw RemoteFailure.protocolViolation("the server does not say the ETag of a part") }
      return tag
    }
    tags.withLock { $0[number] = tag }
    return true
  }

  private func begin() throws -> String {
    try begun.withLock { begun in
      let result = begun ?? Result { try requestID() }
      begun = result
      return try result.get()
    }
  }

  private func requestID() throws -> String {
    try place.retrying("cannot be written", "POST", name) { _ in
      let document = try place.document(
        place.send(
          .send("POST", ArchiveSource([])), key: key, query: [("uploads", "")],
          fields: ["\(Self.markField):\(mark)"]),
        "InitiateMultipartUploadResult")
      guard let id = document["UploadId"]?.text, !id.isEmpty, id.utf8.count <= 2048 else {
        throw RemoteFailure.protocolViolation("the server does not say the identifier of an upload")
      }
      return id
    }
  }
}
