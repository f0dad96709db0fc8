import CLibCurl
import DrydockErrors
import FileSystem
import Foundation

/// A bucket and a prefix, where the server is, and the credentials.
struct S3Address: Sendable {
  let bucket: String
  /// Without slashes at its ends; may be empty.
  let prefix: String
  private let credentials: Credentials
  private typealias Credentials = (key: String, secret: String, token: String?)
  private let region: String
  /// The URL of the bucket, which keys follow.
  private let base: String
  private let authorities: String?

  /// Where the place of a `s3://BUCKET/PREFIX` is, by the variables of AWS's own tools.
  init(_ url: String, _ options: RemoteOptions) throws {
    let parts = url.dropFirst("s3://".count).split(separator: "/", omittingEmptySubsequences: false)
    let bucket = parts.first.map(String.init) ?? ""
    guard (3...255).contains(bucket.utf8.count), bucket.utf8.allSatisfy(RemoteName.isPlain), bucket != "..."
    else {
      throw DrydockError(
        .usage, "not an S3 place: the bucket's name is invalid; use s3://BUCKET/PREFIX",
        path: url.contains("@") ? nil : RemoteName.printable(url))
    }
    var components = parts.dropFirst()
    if components.last == "" { components.removeLast() }
    try RemoteName.refuseDots(Array(components), in: url)
    guard components.allSatisfy({ RemoteName.isComponent($0) }) else {
      throw DrydockError(
        .usage, "not an S3 place: the prefix has an empty component, `.` or `..`; use s3://BUCKET/PREFIX",
        path: RemoteName.printable(url))
    }
    self.bucket = bucket
    prefix = components.joined(separator: "/")
    credentials = try Self.credentials(options)
    region = try Self.region(options)
    base = try Self.base(bucket: bucket, region: region, options)
    authorities = options.variable("AWS_CA_BUNDLE")
  }

  private static func credentials(_ options: RemoteOptions) throws -> Credentials {
    let names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    let missing = names.filter { options.variable($0) == nil }
    guard missing.isEmpty else {
      throw DrydockError(
        .usage, "credentials for S3 are missing; set \(missing.joined(separator: " and "))")
    }
    let values = (names + ["AWS_SESSION_TOKEN"]).map { options.variable($0) }
    // They become parts of header lines.
    guard values.allSatisfy({ $0?.utf8.allSatisfy { (0x21...0x7e).contains($0) } ?? true }) else {
      throw DrydockError(
        .badConfiguration,
        "an AWS credential in the environment has a space or another invalid character; set it again")
    }
    return (values[0] ?? "", values[1] ?? "", values[2])
  }

  private static func region(_ options: RemoteOptions) throws -> String {
    let region = options.variable("AWS_REGION") ?? options.variable("AWS_DEFAULT_REGION") ?? "us-east-1"
    guard region.utf8.count <= 64,
      region.utf8.allSatisfy({ RemoteName.isPlain($0) && $0 != UInt8(ascii: ".") })
    else {
      throw DrydockError(.badConfiguration, "AWS_REGION is invalid; set it to a name such as eu-central-1")
    }
    return region
  }

  private static func base(bucket: String, region: String, _ options: RemoteOptions) throws -> String {
    if let endpoint = options.variable("AWS_ENDPOINT_URL_S3") ?? options.variable("AWS_ENDPOINT_URL") {
      guard let url = URLComponents(string: endpoint), url.scheme == "https" || url.scheme == "http",
        url.host?.isEmpty == false, url.query == nil, url.fragment == nil
      else {
        throw DrydockError(
          .badConfiguration,
          "the S3 endpoint is invalid; set AWS_ENDPOINT_URL_S3 to a URL such as https://storage.example.com")
      }
      guard url.user == nil, url.password == nil else {
        throw DrydockError(
          .badConfiguration,
          "the S3 endpoint has a user or a password; remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
      }
      return endpoint.trimmingCharacters(in: ["/"]) + "/" + bucket
    }
    let host = "s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")"
    // A certificate for *.s3… does not cover a bucket with a dot, and a host's name has no capitals or underscores.
    let isHostName = !bucket.contains { $0 == "." || $0 == "_" || $0.isUppercase }
    return isHostName ? "https://\(bucket).\(host)" : "https://\(host)/\(bucket)"
  }

  /// `s3://BUCKET/PREFIX`.
  var url: String { prefix.isEmpty ? "s3://\(bucket)" : "s3://\(bucket)/\(prefix)" }

  /// The object's key.
  func key(_ name: ContainerPath) -> String { prefix.isEmpty ? name.text : "\(prefix)/\(name.text)" }

  /// The URL of an object, or of the bucket, with a query in canonical order: libcurl signs it as it is.
  func url(key: String?, query: [(name: String, value: String)] = []) -> String {
    let path = key.map { "/" + RemoteName.encode($0, keeping: true) } ?? "/"
    let parameters = query.map { (RemoteName.encode($0.name), RemoteName.encode($0.value)) }
      .sorted { $0 < $1 }.map { "\($0)=\($1)" }
    return base + path + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
  }

  /// The header fields that every request has beside libcurl's own: they are signed.
  var fields: [String] { credentials.token.map { ["x-amz-security-token:\($0)"] } ?? [] }

  var scheme: String { base.hasPrefix("https:") ? "https" : "http" }

  /// What libcurl needs for each request, which is signed by Signature 4.
  func apply(_ handle: CurlHandle) {
    handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    // Servers that do not know the question do not answer it.
    handle.set(CURLOPT_EXPECT_100_TIMEOUT_MS, 250)
    handle.set(CURLOPT_AWS_SIGV4, "aws:amz:\(region):s3")
    handle.set(CURLOPT_USERNAME, credentials.key)
    handle.set(CURLOPT_PASSWORD, credentials.secret)
    if let authorities { handle.set(CURLOPT_CAINFO, authorities) }
  }
}
