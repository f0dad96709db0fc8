import ArchiveFile
import CLibCurl
import DrydockErrors
import Foundation
import Synchronization

/// One request over HTTP or SFTP.
struct CurlRequest {
  enum Operation {
    /// Reads the body of a reply, a file or a directory.
    case get
    /// Asks for the size and time only.
    case head
    /// Sends a body with this HTTP method; over SFTP, writes a file.
    case send(String, ArchiveSource)
    /// An HTTP method without a body, in either direction.
    case plain(String)
    /// Over SFTP: runs these commands, one after the other.
    case commands([String])
  }

  var url: String
  var operation: Operation
  /// HTTP header fields as `name:value`, in lower case: libcurl signs them as they are.
  var fields: [String] = []
  /// Over SFTP, `first-last`.
  var range: String?
  /// Over SFTP, the offset at which the server's file ends, and more is written.
  var appendOffset: UInt64 = 0
  /// Takes the bytes of the reply; nil for a text, which errors are, too.
  var buffer: ReplyBuffer?
  var textLimit = 256 << 10
  /// Whether the reply is to have the file's time, which over SFTP takes one more message.
  var asksTime = false
  /// Seconds without a byte, when the server may need longer than usual.
  var patience: Double?

  /// Whether libcurl reports success over SFTP, too, when the connection broke.
  var needsConnection: Bool {
    switch operation {
    case .head, .commands: true
    case .get, .send, .plain: false
    }
  }
}

/// What the server answered.
struct CurlReply {
  /// The HTTP status; 0 over SFTP.
  var status: Int
  var fields: [String: String]
  var text: [UInt8]
  /// The size of what was asked for, if the server says it.
  var size: UInt64?
  /// The file's time in seconds since 1970, over SFTP.
  var modified: Int64?
}

/// A handle of libcurl with its connection, which the next request uses again. One thread uses it at a time.
final class CurlHandle: @unchecked Sendable {
  private let easy: UnsafeMutableRawPointer
  private let message: UnsafeMutablePointer<CChar>

  static let isReady = drydock_curl_load()

  init() throws {
    guard Self.isReady, let easy = drydock_curl_init() else {
      throw DrydockError(.io, "libcurl cannot be loaded; install it (libcurl4 on Debian)")
    }
    self.easy = easy
    message = .allocate(capacity: Int(CURL_ERROR_SIZE))
  }

  deinit {
    drydock_curl_cleanup(easy)
    message.deallocate()
  }

  /// Sends a request and waits for the reply, whatever its HTTP status.
  ///
  /// - Throws: `RemoteFailure`, or what the body's source throws.
  func perform(_ request: CurlRequest, _ pool: CurlPool) throws -> CurlReply {
    drydock_curl_reset(easy)
    message[0] = 0
    drydock_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, message)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_URL, request.url)
    set(CURLOPT_PATH_AS_IS, 1)
    set(CURLOPT_PROTOCOLS_STR, pool.scheme)
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
    set(CURLOPT_TCP_KEEPALIVE, 1)
    set(CURLOPT_FILETIME, request.asksTime ? 1 : 0)
    set(CURLOPT_CONNECTTIMEOUT_MS, Int(pool.options.noProgressLimit * 1000))
    set(CURLOPT_TIMEOUT_MS, Int(pool.longestTime(request) * 1000))
    let piece = pool.rate?.piece ?? (512 << 10)
    set(CURLOPT_BUFFERSIZE, piece)
    set(CURLOPT_UPLOAD_BUFFERSIZE, max(piece, 16 << 10))
    pool.apply(self)

    // HTTP has header fields, SFTP commands.
    var lines = request.fields
    switch request.operation {
    case .get: break
    case .head: set(CURLOPT_NOBODY, 1)
    case .send(let method, let sent):
      set(CURLOPT_UPLOAD, 1)
      if pool.isHTTP { set(CURLOPT_CUSTOMREQUEST, method) }
      // libcurl subtracts the offset from the size.
      drydock_curl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(request.appendOffset + sent.size))
      if request.appendOffset > 0 {
        drydock_curl_set_offset(easy, CURLOPT_RESUME_FROM_LARGE, curl_off_t(request.appendOffset))
      }
    case .plain(let method): set(CURLOPT_CUSTOMREQUEST, method)
    case .commands(let commands):
      lines = commands
      set(CURLOPT_NOBODY, 1)
    }
    var list: UnsafeMutablePointer<curl_slist>?
    for line in lines { list = drydock_curl_append(list, line) ?? list }
    defer { drydock_curl_free(list) }
    drydock_curl_set_list(easy, pool.isHTTP ? CURLOPT_HTTPHEADER : CURLOPT_QUOTE, list)
    if let range = request.range { set(CURLOPT_RANGE, range) }

    let transfer = CurlTransfer(easy, request, pool)
    transfer.install()
    let code = drydock_curl_perform(easy)
    // libcurl has used them until here.
    withExtendedLifetime(transfer) {}
    if let failure = transfer.failure, code != CURLE_OK { throw failure }
    if !pool.isHTTP, let failure = RemoteFailure.ofHandshake(String(cString: message)) { throw failure }
    if pool.isHTTP {
      // libcurl takes a header that was cut for a complete one.
      guard code != CURLE_OK || transfer.isHeaderComplete else { throw RemoteFailure.connectionLost }
    } else if request.needsConnection || RemoteFailure.isAnswer(code), !isConnected {
      // After a connection breaks, libcurl reports the server's answer to an earlier request, or success.
      throw RemoteFailure.connectionLost
    }
    guard code == CURLE_OK else {
      throw RemoteFailure.curl(
        code, String(cString: message), isKeyChanged: transfer.isKeyChanged, isHTTP: pool.isHTTP,
        isConnected: isConnected)
    }
    return reply(transfer)
  }

  /// Whether the other side has not closed the connection of the last request.
  private var isConnected: Bool {
    var socket = CURL_SOCKET_BAD
    guard drydock_curl_socket(easy, &socket) == CURLE_OK, socket != CURL_SOCKET_BAD else { return false }
    #if os(Linux)
      // Also when bytes are left that arrived before.
      var state = pollfd(fd: socket, events: Int16(0x2000), revents: 0)  // POLLRDHUP
      guard poll(&state, 1, 0) == 0 else { return false }
    #endif
    var byte: UInt8 = 0
    let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
  }

  private func reply(_ transfer: CurlTransfer) -> CurlReply {
    var status = 0
    var size: curl_off_t = -1
    var modified: curl_off_t = -1
    drydock_curl_long(easy, CURLINFO_RESPONSE_CODE, &status)
    drydock_curl_offset(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size)
    drydock_curl_offset(easy, CURLINFO_FILETIME_T, &modified)
    return CurlReply(
      status: status, fields: transfer.fields, text: transfer.text,
      size: size < 0 ? nil : UInt64(size), modified: modified < 0 ? nil : Int64(modified))
  }

  // MARK: Options

  func set(_ option: CURLoption, _ value: Int) {
    drydock_curl_set_long(easy, option, value)
  }

  func set(_ option: CURLoption, _ value: String) {
    drydock_curl_set_string(easy, option, value)
  }
}

/// What all requests to a place have in common, and the idle handles, so that connections are used again.
final class CurlPool: Sendable {
  /// As `https` or `sftp`: libcurl refuses any other.
  let scheme: String
  let options: RemoteOptions
  let rate: RateLimit?
  /// Sets credentials, certificates and keys.
  let apply: @Sendable (CurlHandle) -> Void
  private let idle = Mutex((handles: [CurlHandle](), hasAnswered: false))
  /// As many as are in use at a time: a connection that is closed would soon be opened again.
  private static let mostIdle = 16

  init(_ scheme: String, _ options: RemoteOptions, apply: @escaping @Sendable (CurlHandle) -> Void) {
    (self.scheme, self.options, self.apply) = (scheme, options, apply)
    rate = options.rateLimit.map { RateLimit(bytesPerSecond: $0) }
  }

  var isHTTP: Bool { scheme != "sftp" }

  /// A guard against a server that sends a byte now and then: the deadline, and time for the bytes on a slow line.
  fileprivate func longestTime(_ request: CurlRequest) -> Double {
    var bytes = UInt64(request.buffer?.size ?? request.textLimit)
    if case .send(_, let body) = request.operation { bytes += body.size }
    // Several transfers share the rate.
    return options.deadline + Double(bytes) / min(10_000, (rate?.bytesPerSecond ?? 1e9) / 16)
  }

  func perform(_ request: CurlRequest) throws -> CurlReply {
    let handle = try idle.withLock { $0.handles.popLast() } ?? CurlHandle()
    do {
      let reply = try handle.perform(request, self)
      putBack(handle)
      return reply
    } catch var failure as RemoteFailure {
      if failure.isAnswer { putBack(handle) }
      // A server that was there is waited for longer.
      if failure.isUnreachable, idle.withLock({ $0.hasAnswered }) { failure.attemptLimit = nil }
      throw failure
    }
    // After any other error the connection may be in an unknown state: it is closed with its handle.
  }

  private func putBack(_ handle: CurlHandle) {
    idle.withLock {
      $0.hasAnswered = true
      if $0.handles.count < Self.mostIdle { $0.handles.append(handle) }
    }
  }
}
