import DrydockErrors
import FileSystem

/// Signs with keys that `ssh-agent` has, which never leave it.
extension SSHPublicKey {
  private static let signRequest: UInt8 = 13, signResponse: UInt8 = 14
  private static let preferSHA512: UInt32 = 4
  private static let longestAnswer: UInt32 = 1 << 18

  /// A signature in SSH's form.
  ///
  /// - Parameter path: the agent's socket, as `SSH_AUTH_SOCK` names it.
  /// - Throws: `DrydockError`: `badKey` when the agent does not have the key, or refuses; `io`, `notFound`.
  func sign(_ message: [UInt8], inAgentAt path: String) throws -> [UInt8] {
    let request =
      [Self.signRequest] + SSHWriter.string(blob) + SSHWriter.string(message)
      + SSHWriter.number(Self.preferSHA512)
    let socket = try LocalSocket(path)
    try socket.send(SSHWriter.string(request))
    var head = SSHReader(try socket.receive(4))
    guard let count = head.number(), (1...Self.longestAnswer).contains(count) else {
      throw DrydockError(.io, "the SSH agent's answer is invalid", path: path)
    }
    var answer = SSHReader(try socket.receive(Int(count)))
    guard answer.bytes(1) == [Self.signResponse], let signature = answer.string() else {
      throw DrydockError(
        .badKey,
        "the SSH agent did not sign with \(fingerprint); add the key with `ssh-add`, and confirm its use if it asks",
        path: path)
    }
    return signature
  }
}
