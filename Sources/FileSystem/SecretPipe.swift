import Cryptography
import DrydockErrors
import Foundation
import SystemPackage

extension SecretBytes {
  /// A pipe that another process reads this secret from: the secret is in no file, no argument and no variable. Writing ends when
  /// it was read, or when nobody can read it any more.
  ///
  /// - Returns: the descriptor of the end to read from, which the caller closes.
  package func pipe() throws -> Int32 {
    let (reading, writing) = try DrydockError.translating("cannot make a pipe", "pipe") {
      try FileDescriptor.pipe()
    }
    // A process that is started now for another purpose must not hold the pipe open.
    for end in [reading, writing] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
    let thread = Thread { self.write(to: writing) }
    thread.start()
    return reading.rawValue
  }

  private func write(to pipe: FileDescriptor) {
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
    withBytes { _ = try? pipe.writeAll($0) }
  }
}
