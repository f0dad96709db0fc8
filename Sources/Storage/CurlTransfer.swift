import ArchiveFile
import CLibCurl
import DrydockErrors
import Foundation

/// A range of a file that is read into a caller's buffer.
final class ReplyBuffer {
  private let bytes: UnsafeMutableRawBufferPointer
  let first: UInt64
  private let fileSize: UInt64
  /// How many bytes have arrived.
  private(set) var received = 0

  init(_ bytes: UnsafeMutableRawBufferPointer, at first: UInt64, of fileSize: UInt64) {
    (self.bytes, self.first, self.fileSize) = (bytes, first, fileSize)
  }

  var size: Int { bytes.count }
  var isFull: Bool { received == size }
  /// As `first-last`, and as HTTP's reply must name it.
  var range: String { "\(first)-\(first + UInt64(size) - 1)" }
  var contentRange: String { "bytes \(range)/\(fileSize)" }

  /// Never writes past the end.
  func append(_ piece: UnsafeRawBufferPointer) throws {
    guard piece.count <= size - received else {
      throw RemoteFailure.protocolViolation("the server sent more bytes than it was asked for")
    }
    UnsafeMutableRawBufferPointer(rebasing: bytes[received...]).copyMemory(from: piece)
    received += piece.count
  }
}

/// The state of one request while libcurl runs it: what its callbacks read and write.
final class CurlTransfer {
  private let easy: UnsafeMutableRawPointer
  private let request: CurlRequest
  private let body: ArchiveSource?
  private let isHTTP: Bool
  private let noProgressLimit: Double
  private let rate: RateLimit?

  private var sent: UInt64 = 0
  private var lastProgress = ProcessInfo.processInfo.systemUptime
  /// Whether the bytes go into the caller's buffer, decided at the first one.
  private var fillsBuffer: Bool?

  /// The fields of the last reply's header, their names in lower case.
  private(set) var fields: [String: String] = [:]
  /// Whether the empty line after the header has arrived.
  private(set) var isHeaderComplete = false
  /// What arrived and is not in the caller's buffer: a listing, or an error in XML.
  private(set) var text: [UInt8] = []
  /// Why a callback stopped the request.
  private(set) var failure: (any Error)?
  /// Whether known_hosts has another key of the server, which was refused.
  private(set) var isKeyChanged = false

  init(_ easy: UnsafeMutableRawPointer, _ request: CurlRequest, _ pool: CurlPool) {
    (self.easy, self.request, isHTTP, rate) = (easy, request, pool.isHTTP, pool.rate)
    body = if case .send(_, let body) = request.operation { body } else { nil }
    noProgressLimit = request.patience ?? pool.options.noProgressLimit
  }

  /// Makes libcurl call this object, which must live until the request is done.
  func install() {
    let context = Unmanaged.passUnretained(self).toOpaque()
    for option in [
      CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_XFERINFODATA,
      CURLOPT_SSH_KEYDATA,
    ] {
      drydock_curl_set_pointer(easy, option, context)
    }
    drydock_curl_set_transfer(easy, CURLOPT_WRITEFUNCTION) { CurlTransfer.of($3).receive($0, $1 * $2) }
    drydock_curl_set_transfer(easy, CURLOPT_HEADERFUNCTION) { CurlTransfer.of($3).receiveField($0, $1 * $2) }
    drydock_curl_set_transfer(easy, CURLOPT_READFUNCTION) { CurlTransfer.of($3).send($0, $1 * $2) }
    drydock_curl_set_seek(easy) { CurlTransfer.of($0).seek($1, $2) }
    drydock_curl_set_progress(easy) { context, _, _, _, _ in CurlTransfer.of(context).watch() }
    drydock_curl_set_host_key_check(easy) { _, _, _, match, context in
      CurlTransfer.of(context).check(match)
    }
    drydock_curl_set_long(easy, CURLOPT_NOPROGRESS, 0)
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer {
    guard let context else { preconditionFailure("libcurl called without its context") }
    return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  // MARK: Callbacks

  private func receive(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    lastProgress = ProcessInfo.processInfo.systemUptime
    guard let bytes, count > 0 else { return 0 }
    rate?.take(count)
    let piece = UnsafeRawBufferPointer(start: bytes, count: count)
    do {
      if let buffer = request.buffer, try fills(buffer) {
        try buffer.append(piece)
      } else {
        guard count <= request.textLimit - text.count else {
          throw RemoteFailure.protocolViolation("the server's reply has more than \(request.textLimit) bytes")
        }
        text.append(contentsOf: piece)
      }
    } catch {
      failure = error
      return 0
    }
    lastProgress = ProcessInfo.processInfo.systemUptime
    return count
  }

  /// Whether the reply is the range that was asked for, not an error.
  private func fills(_ buffer: ReplyBuffer) throws -> Bool {
    if let fillsBuffer { return fillsBuffer }
    var answer = true
    if isHTTP {
      var status = 0
      drydock_curl_long(easy, CURLINFO_RESPONSE_CODE, &status)
      answer = (200..<300).contains(status)
      if answer {
        guard status == 206, let found = fields["content-range"] else {
          throw RemoteFailure.protocolViolation("the server ignores the range of a request")
        }
        guard found == buffer.contentRange else {
          throw RemoteFailure(.changedMeanwhile, "the server sent another range than it was asked for")
        }
      }
    } else {
      // Without the file's size libcurl does not seek, and reads from the start.
      var size: curl_off_t = -1
      drydock_curl_offset(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size)
      guard size >= 0 else { throw RemoteFailure.connectionLost }
      guard size == curl_off_t(buffer.size) else { throw RemoteFailure.shortened }
    }
    fillsBuffer = answer
    return answer
  }

  private func receiveField(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    lastProgress = ProcessInfo.processInfo.systemUptime
    guard let bytes, isHTTP else { return count }
    let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    if line.hasPrefix("HTTP/") {
      (fields, isHeaderComplete) = ([:], false)
    } else if line == "\r\n" || line == "\n" {
      isHeaderComplete = true
    } else if let colon = line.firstIndex(of: ":"), fields.count < 200 {
      fields[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
        in: .whitespacesAndNewlines)
    }
    return count
  }

  private func send(_ target: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
    lastProgress = ProcessInfo.processInfo.systemUptime
    guard let target, let body else { return 0 }
    let count = Int(min(UInt64(min(room, rate?.piece ?? room)), body.size - sent))
    guard count > 0 else { return 0 }
    do {
      try body.readExactly(UnsafeMutableRawBufferPointer(start: target, count: count), at: sent)
    } catch {
      failure = error
      return Int(CURL_READFUNC_ABORT)
    }
    sent += UInt64(count)
    rate?.take(count)
    lastProgress = ProcessInfo.processInfo.systemUptime
    return count
  }

  /// libcurl sends a body from its start when a kept connection turns out to be closed.
  private func seek(_ offset: curl_off_t, _ origin: Int32) -> Int32 {
    // By the offsets of the server's file.
    let start = request.appendOffset
    guard origin == SEEK_SET, let body, let offset = UInt64(exactly: offset), offset >= start,
      offset - start <= body.size
    else { return Int32(CURL_SEEKFUNC_FAIL) }
    sent = offset - start
    return Int32(CURL_SEEKFUNC_OK)
  }

  /// libcurl calls this about once a second, also when nothing moves.
  private func watch() -> Int32 {
    guard ProcessInfo.processInfo.systemUptime - lastProgress > noProgressLimit else { return 0 }
    failure =
      failure
      ?? RemoteFailure(.io, "the server sent nothing for \(Int(noProgressLimit)) s", isTransient: true)
    return 1
  }

  private func check(_ match: curl_khmatch) -> Int32 {
    isKeyChanged = match == CURLKHMATCH_MISMATCH
    return Int32((match == CURLKHMATCH_OK ? CURLKHSTAT_FINE : CURLKHSTAT_REJECT).rawValue)
  }
}
