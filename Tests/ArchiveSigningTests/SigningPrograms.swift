import Foundation
import TestSupport

/// minisign, signify and ssh-keygen, for checking against, with keys in a directory. When they are missing, tests fail.
struct SigningPrograms {
  let directory: TemporaryDirectory

  /// The kinds of keys whose files need no passphrase.
  enum Kind: String, CaseIterable, Sendable {
    case minisign, signify
    case ed25519, rsa
    case p256 = "ecdsa256"
    case p384 = "ecdsa384"
    case p521 = "ecdsa521"

    static let ssh: [Kind] = [.ed25519, .rsa, .p256, .p384, .p521]
    var isSSH: Bool { Self.ssh.contains(self) }
  }

  init() throws { directory = try TemporaryDirectory() }

  @discardableResult
  func run(
    _ program: String, _ arguments: [String], input: String = "", environment: [String: String?] = [:]
  ) throws -> CommandResult {
    try Command.run(
      Tools.system(program), arguments, environment: environment, input: Array(input.utf8),
      directory: directory.path)
  }

  /// Throws with the program's complaint when it does not end well.
  func must(
    _ program: String, _ arguments: [String], input: String = "", environment: [String: String?] = [:]
  ) throws {
    let result = try run(program, arguments, input: input, environment: environment)
    guard result.succeeded else { throw SystemFailure("\(program) \(arguments): \(result)") }
  }

  /// Makes a key without a passphrase: `NAME.key` and `NAME.pub`.
  func makeKey(_ kind: Kind, _ name: String) throws -> (secret: String, open: String) {
    // signify insists on the suffix.
    let (secret, open) = (directory(name + (kind == .signify ? ".sec" : ".key")), directory(name + ".pub"))
    switch kind {
    case .minisign: try must("minisign", ["-G", "-W", "-p", open, "-s", secret])
    case .signify: try must("signify-openbsd", ["-G", "-n", "-c", name, "-p", open, "-s", secret])
    default:
      let options: [String] =
        switch kind {
        case .ed25519: ["-t", "ed25519"]
        case .rsa: ["-t", "rsa", "-b", "2048"]
        case .p256: ["-t", "ecdsa", "-b", "256"]
        case .p384: ["-t", "ecdsa", "-b", "384"]
        default: ["-t", "ecdsa", "-b", "521"]
        }
      try must("ssh-keygen", ["-q", "-N", "", "-C", "\(name)@example.com", "-f", secret] + options)
      try FileManager.default.moveItem(atPath: secret + ".pub", toPath: open)
    }
    return (secret, open)
  }

  /// Lets the key's program sign a file; gives the signature's.
  func sign(_ kind: Kind, _ file: String, with secret: String, namespace: String = "archive@drydock") throws
    -> [UInt8]
  {
    let signature = directory("made.sig")
    try? FileManager.default.removeItem(atPath: signature)
    switch kind {
    case .minisign:
      try must("minisign", ["-S", "-s", secret, "-m", file, "-x", signature, "-t", "a comment"])
    case .signify: try must("signify-openbsd", ["-S", "-s", secret, "-m", file, "-x", signature])
    default:
      try? FileManager.default.removeItem(atPath: file + ".sig")
      try must("ssh-keygen", ["-Y", "sign", "-n", namespace, "-f", secret, file])
      try FileManager.default.moveItem(atPath: file + ".sig", toPath: signature)
    }
    return try read(signature)
  }

  /// Whether the key's program accepts a signature.
  func accepts(_ kind: Kind, _ file: String, _ signature: String, by open: String) throws -> CommandResult {
    switch kind {
    case .minisign: return try run("minisign", ["-V", "-p", open, "-m", file, "-x", signature])
    case .signify: return try run("signify-openbsd", ["-V", "-p", open, "-m", file, "-x", signature])
    default:
      let key = String(decoding: try read(open), as: UTF8.self)
      try write("allowed", "builder@example.com namespaces=\"archive@drydock\" \(key)")
      return try run(
        "ssh-keygen",
        [
          "-Y", "verify", "-f", directory("allowed"), "-I", "builder@example.com", "-n", "archive@drydock",
          "-s",
          signature,
        ], input: String(decoding: try read(file), as: UTF8.self))
    }
  }

  @discardableResult
  func write(_ name: String, _ text: String) throws -> String {
    try write(name, Array(text.utf8))
  }

  @discardableResult
  func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    try RawFiles.write(bytes, to: Array(directory(name).utf8))
    return directory(name)
  }

  func read(_ path: String) throws -> [UInt8] { [UInt8](try RawFiles.read(Array(path.utf8))) }
}
