import Cryptography
import DrydockErrors
import Foundation
import SystemPackage

/// A pipe that another process reads a secret from. The secret is in no file, no argument and no variable.
package struct SecretPipe: Sendable {
  /// The descriptor of the end to read from, which the caller closes.
  package let readingEnd: Int32

  /// Starts to write the secret; that ends when it was read, or when nobody can read it any more.
  package init(_ secret: SecretBytes) throws {
    let (reading, writing) = try DrydockError.translating("cannot make a pipe", "pipe") {
      try FileDescriptor.pipe()
    }
    // A process that is started now for another purpose must not hold the pipe open.
    for end in [reading, writing] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
    readingEnd = reading.rawValue
    let thread = Thread { Self.write(secret, to: writing) }
    thread.start()
  }

  private static func write(_ secret: SecretBytes, to pipe: FileDescriptor) {
    defer { try? pipe.close() }
    // A reader that ends early is an error of `write`, and no signal that ends this process.
    #if canImport(Darwin)
      _ = fcntl(pipe.rawValue, F_SETNOSIGPIPE, 1)
    #else
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
    #endif
    secret.withBytes { _ = try? pipe.writeAll($0) }
  }
}
