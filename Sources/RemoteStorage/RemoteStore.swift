import DrydockErrors

/// Files at a remote place: an S3 bucket below a prefix, or a directory of an SFTP server.
///
/// Names are relative to the place; a name may have one folder, as `locks/x`. Every function sends its requests again
/// when the connection breaks or the server fails for a time, until a deadline; the error then says which request failed
/// and how often it was tried. Safe to use from any thread; transfers of several threads run in parallel.
package protocol RemoteStore: AnyObject, Sendable {
  /// The place, as `s3://BUCKET/PREFIX` or `sftp://HOST/PATH`: never with credentials.
  var url: String { get }

  /// How many small files are best read at a time.
  var parallelReads: Int { get }

  /// Makes the directory of an SFTP server when its parent exists; a bucket must exist.
  ///
  /// - Throws: `DrydockError`: `notFound`, `permission`, `io`.
  func createIfNeeded() throws

  /// The files in one folder, `""` for those at the top, sorted by name; at an SFTP server also links, directories and others
  /// (``RemoteFile/isFile``). A folder that does not exist has none.
  ///
  /// - Throws: `DrydockError`: `notFound` when the place itself does not exist, `permission`, `io`.
  func list(_ folder: String) throws -> [RemoteFile]

  /// One file; nil when it does not exist.
  func file(_ name: String) throws -> RemoteFile?

  /// Fills a buffer with the bytes at an offset, of that version of the file.
  ///
  /// - Throws: `DrydockError`: `notFound` when the file is gone, `changedMeanwhile` when it was replaced, `truncated` when it
  ///   ends before, `permission`, `io`.
  func read(_ file: RemoteFile, at offset: UInt64, into target: UnsafeMutableRawBufferPointer) throws

  /// Writes a small file in one request, replacing one of that name.
  ///
  /// - Returns: the file as the server has it now.
  func put(_ name: String, _ bytes: [UInt8]) throws -> RemoteFile

  /// Begins to write a large file, whose bytes come from a local file that is being written.
  func upload(_ name: String, from source: @escaping RemoteSource) throws -> any RemoteUpload

  /// Removes a file; one that does not exist is fine.
  func remove(_ name: String) throws
}

extension RemoteStore {
  /// What the server has of a file that was written just now.
  func written<File>(_ file: File?, _ name: String) throws -> File {
    if let file { return file }
    throw DrydockError(
      .changedMeanwhile, "was removed by another process right after it was written; run it again",
      path: "\(url)/\(name)")
  }

  /// Fills a buffer with a range of a file, in as many attempts as it takes: what has arrived is not asked for again.
  ///
  /// - Parameter fetch: asks for bytes from an offset to the end of the range, and counts those that arrived, also when it
  ///   throws.
  func fill(
    _ target: UnsafeMutableRawBufferPointer, with file: RemoteFile, at offset: UInt64, _ retries: Retries,
    _ label: RequestLabel,
    _ fetch: (_ rest: UnsafeMutableRawBufferPointer, _ from: UInt64, _ received: inout Int) throws -> Void
  ) throws {
    try RemoteName.check(file.name)
    let (end, overflows) = offset.addingReportingOverflow(UInt64(target.count))
    guard !overflows, end <= file.size else {
      throw DrydockError(
        .truncated, "the file has \(file.size) bytes; bytes after that were asked for",
        path: "\(url)/\(file.name)")
    }
    guard !target.isEmpty else { return }
    var done = 0
    try retries.run(label) { attempt in
      let start = done
      var received = 0
      defer {
        done += received
        if received > 0 { attempt.progressed() }
      }
      try fetch(
        UnsafeMutableRawBufferPointer(rebasing: target[start...]), offset + UInt64(start), &received)
    }
  }
}

/// A file at a remote place, in the version that a request has seen.
package struct RemoteFile: Sendable, Hashable {
  package var name: String
  package var size: UInt64
  /// By the server's clock, in nanoseconds since 1970, as exact as the server says it.
  package var modified: Int64
  /// The ETag, the same in a listing and of a single file; empty where a server has none.
  package var version: String
  /// False for a directory, a link, or another thing that is not a file.
  package var isFile = true
  /// Whether `modified` is exact to the second, so that a file that was replaced is recognized while it is read: in a
  /// listing of an SFTP server it is not.
  package var hasExactTime = true

  package init(
    name: String, size: UInt64, modified: Int64, version: String, isFile: Bool = true,
    hasExactTime: Bool = true
  ) {
    (self.name, self.size, self.modified, self.version) = (name, size, modified, version)
    (self.isFile, self.hasExactTime) = (isFile, hasExactTime)
  }
}

/// The bytes of an upload: called from several threads, for any range that was announced, also repeatedly.
package typealias RemoteSource =
  @Sendable (_ into: UnsafeMutableRawBufferPointer, _ offset: UInt64) throws -> Void

/// A large file on its way. Parts are sent in the background as soon as their bytes are there; nothing has the name before
/// ``publish(size:)``.
package protocol RemoteUpload: AnyObject, Sendable {
  /// Announces that the first `size` bytes of the source are final. Returns at once; errors of the transfer are thrown here
  /// or by ``publish(size:)``.
  func extend(to size: UInt64) throws

  /// Sends the rest, and gives the file its name in one step, never replacing one. Safe to repeat when the reply is lost:
  /// a file of this upload counts as published.
  ///
  /// - Returns: nil when there is another file of that name; what was sent is removed then.
  func publish(size: UInt64) throws -> RemoteFile?

  /// Stops, and removes what was sent, as far as the server can be reached.
  func cancel()
}
