import CLibCurl
import DrydockErrors

/// Why one attempt of a request failed: translated from libcurl's and the servers' errors.
struct RemoteFailure: Error {
  var code: DrydockError.Code
  /// What happened, without credentials.
  var reason: String
  var advice: String?
  /// Whether the same request may succeed later.
  var isTransient = false
  /// How often the request is tried at most, if fewer times than others.
  var attemptLimit: Int?
  /// Seconds that the server asks to wait.
  var retryAfter: Double?
  /// The server's word for the error, as `NoSuchKey`.
  var serverCode: String?
  /// libcurl's code, if it is its error.
  private var curlCode: CURLcode?

  /// Whether it is libcurl's code for all that the SSH library has no other for: a write that the server refuses, or a
  /// connection that broke.
  private var isUnspecific: Bool { curlCode == CURLE_SSH }
  /// Whether no connection could be made.
  var isUnreachable: Bool {
    [CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT].contains(curlCode)
  }
  /// Whether an SFTP server answered with this error: the connection is as before.
  var isAnswer: Bool { curlCode.map(Self.isAnswer) ?? false }
  /// Whether the SSH server refused the key that was offered.
  var refusesLogin: Bool { curlCode == CURLE_LOGIN_DENIED }

  init(
    _ code: DrydockError.Code, _ reason: String, advice: String? = nil, isTransient: Bool = false,
    attemptLimit: Int? = nil
  ) {
    (self.code, self.reason, self.advice) = (code, reason, advice)
    (self.isTransient, self.attemptLimit) = (isTransient, attemptLimit)
  }

  /// An SFTP server that reports a failure without a reason. It may be for a moment, but seldom is.
  private static func refused(_ message: String) -> RemoteFailure {
    RemoteFailure(
      .io,
      "the server reports a failure without a reason (\(RemoteName.printable(message.isEmpty ? "SSH_FX_FAILURE" : message))), "
        + "as OpenSSH does on a full or read-only disk",
      advice: "check both on the server, then run it again", isTransient: true, attemptLimit: 3)
  }

  /// The same of a write that made no progress: more often is in vain, and the reason is named that it mostly has.
  var ofWrite: RemoteFailure {
    guard isUnspecific, attemptLimit == nil else { return self }
    var failure = self
    failure.reason = "the server takes no bytes, as on a full disk, or the connection broke (\(reason))"
    (failure.advice, failure.attemptLimit) = (
      "check the server's free space and the network, then run it again", 5
    )
    return failure
  }

  static let replaced = RemoteFailure(.changedMeanwhile, "it was replaced meanwhile", advice: "run it again")
  static let shortened = RemoteFailure(.truncated, "the file is shorter than it was", advice: "run it again")
  static let connectionLost = RemoteFailure(.io, "the connection was closed", isTransient: true)

  /// A server that does not follow the protocol, or is hostile: trying again does not help.
  static func protocolViolation(_ reason: String) -> RemoteFailure {
    RemoteFailure(.unreadable, reason, advice: "check that the URL and the endpoint name the right server")
  }
}

// MARK: libcurl

extension RemoteFailure {
  static func curl(
    _ code: CURLcode, _ message: String, isKeyChanged: Bool, isHTTP: Bool, isConnected: Bool
  ) -> RemoteFailure {
    // Version 3 of the protocol has one code for everything that has none of its own.
    var failure =
      code == CURLE_SSH && isConnected
      ? refused(message) : translated(code, message, isKeyChanged: isKeyChanged, isHTTP: isHTTP)
    failure.curlCode = code
    return failure
  }

  /// Whether an error of libcurl is an answer of an SFTP server.
  static func isAnswer(_ code: CURLcode) -> Bool {
    [
      CURLE_REMOTE_FILE_NOT_FOUND, CURLE_REMOTE_ACCESS_DENIED, CURLE_REMOTE_DISK_FULL,
      CURLE_REMOTE_FILE_EXISTS, CURLE_QUOTE_ERROR,
    ].contains(code)
  }

  private static func translated(
    _ code: CURLcode, _ message: String, isKeyChanged: Bool, isHTTP: Bool
  ) -> RemoteFailure {
    let text = message.isEmpty ? String(cString: drydock_curl_strerror(code)) : message
    let reason = RemoteName.printable(text)
    switch code {
    case CURLE_PEER_FAILED_VERIFICATION where !isHTTP: return hostKeyRefused(isKeyChanged)
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
      return RemoteFailure(
        .io, "the server's certificate is refused: \(reason)",
        advice: "set AWS_CA_BUNDLE to the file of the authority that signed it")
    case CURLE_LOGIN_DENIED:
      return RemoteFailure(
        .permission, "the server refuses every key",
        advice:
          "load an Ed25519 or ECDSA key into ssh-agent, or set DRYDOCK_SSH_KEY to its file; one with a passphrase works "
          + "in ssh-agent only")
    case CURLE_REMOTE_ACCESS_DENIED: return denied
    case CURLE_REMOTE_FILE_NOT_FOUND: return RemoteFailure(.notFound, "it does not exist")
    case CURLE_REMOTE_DISK_FULL:
      return RemoteFailure(.noSpace, "the server's disk is full", advice: "free space there")
    case CURLE_UNSUPPORTED_PROTOCOL:
      return RemoteFailure(
        .unsupported, reason, advice: "install a libcurl that was built with this protocol")
    case CURLE_QUOTE_ERROR: return command(reason)
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT:
      // Mostly a wrong address or a server that is down: waiting for minutes helps nobody.
      return RemoteFailure(
        .io, reason, advice: "check the address, the network and whether the server runs", isTransient: true,
        attemptLimit: 5)
    case CURLE_SSH, CURLE_OPERATION_TIMEDOUT, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR,
      CURLE_RECV_ERROR,
      CURLE_SSL_CONNECT_ERROR, CURLE_WEIRD_SERVER_REPLY, CURLE_FAILED_INIT, CURLE_AGAIN,
      CURLE_UPLOAD_FAILED, CURLE_SEND_FAIL_REWIND, CURLE_ABORTED_BY_CALLBACK, CURLE_BAD_DOWNLOAD_RESUME:
      return RemoteFailure(.io, reason, isTransient: true)
    default: return RemoteFailure(.io, reason)
    }
  }

  private static let denied = RemoteFailure(
    .permission, "the server denies access", advice: "check the user and the permissions")

  /// A command over SFTP: libcurl has one code for all failures, and the server's words.
  private static func command(_ reason: String) -> RemoteFailure {
    if reason.hasSuffix("No such file or directory") {
      return RemoteFailure(.notFound, "it does not exist")
    }
    if reason.hasSuffix("Permission denied") { return denied }
    return RemoteFailure(
      .io, reason,
      advice: "check the server's log, its free space and whether it may be written, then run it again")
  }

  /// libcurl asks for a key of the kind that known_hosts has, and has no code for a server without one.
  static func ofHandshake(_ message: String) -> RemoteFailure? {
    guard message.contains("Unable to exchange encryption keys") else { return nil }
    var failure = RemoteFailure(
      .permission,
      "no keys could be exchanged: the server has no key of the kind that known_hosts has for it, so that another machine may "
        + "answer in its place, or the connection broke",
      advice: "ask the server's administrator for the fingerprint before you change known_hosts",
      isTransient: true, attemptLimit: 5)
    failure.curlCode = CURLE_COULDNT_CONNECT
    return failure
  }

  private static func hostKeyRefused(_ isChanged: Bool) -> RemoteFailure {
    isChanged
      ? RemoteFailure(
        .permission,
        "the server's key differs from the one in known_hosts: another machine may answer in its place",
        advice: "ask the server's administrator for the fingerprint before you change known_hosts")
      : RemoteFailure(
        .permission, "the server's key is not in known_hosts",
        advice: "connect once with ssh and compare the fingerprint, or set DRYDOCK_SSH_KNOWN_HOSTS")
  }
}

// MARK: S3

extension RemoteFailure {
  /// The error of an S3 server's reply.
  static func s3(_ reply: CurlReply) -> RemoteFailure {
    let document = S3Document.read(reply.text)
    let serverCode = (document?.name == "Error" ? document?["Code"]?.text : nil).map(RemoteName.printable)
    var failure = s3(status: reply.status, serverCode, region: reply.fields["x-amz-bucket-region"])
    failure.serverCode = serverCode
    failure.retryAfter = reply.fields["retry-after"].flatMap { Double($0) }.map { max($0, 0) }
    return failure
  }

  private static let transientCodes: Set = [
    "SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling", "ThrottlingException",
    "RequestLimitExceeded", "BandwidthLimitExceeded", "OperationAborted", "ConditionalRequestConflict",
    "IncompleteBody",
  ]

  private static func s3(status: Int, _ serverCode: String?, region: String?) -> RemoteFailure {
    let reason = "the server answered \(status)\(serverCode.map { " \($0)" } ?? "")"
    if [408, 429, 500, 502, 503, 504].contains(status) || serverCode.map(transientCodes.contains) == true {
      return RemoteFailure(.io, reason, isTransient: true)
    }
    switch (status, serverCode) {
    case (_, "NoSuchBucket"):
      return RemoteFailure(
        .notFound, "the bucket does not exist",
        advice: "make it with the provider's tools, or correct the URL")
    case (404, _): return RemoteFailure(.notFound, "it does not exist")
    case (412, _): return replaced
    case (_, "RequestTimeTooSkewed"):
      return RemoteFailure(.permission, reason, advice: "set this machine's clock")
    case (_, "SignatureDoesNotMatch"), (_, "InvalidAccessKeyId"), (_, "ExpiredToken"), (_, "InvalidToken"):
      return RemoteFailure(
        .permission, reason,
        advice: "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION")
    case (_, "InvalidObjectState"):
      return RemoteFailure(
        .io, "it is archived in cold storage", advice: "restore it there with the provider's tools first")
    case (401, _), (403, _):
      return RemoteFailure(.permission, reason, advice: "check the credentials and the rights of their user")
    case (300..<400, _), (_, "AuthorizationHeaderMalformed"):
      let advice = region.map { "set AWS_REGION to \(RemoteName.printable($0))" }
      return RemoteFailure(
        .io, reason, advice: advice ?? "check AWS_REGION and the endpoint; redirects are not followed")
    case (_, "XAmzContentSHA256Mismatch"), (_, "BadDigest"):
      return RemoteFailure(.io, "\(reason): the data was damaged on the way", isTransient: true)
    default:
      return RemoteFailure(
        .io, reason, advice: "check the credentials, AWS_REGION, the endpoint and the server's log")
    }
  }
}
