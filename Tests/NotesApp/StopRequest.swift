import Foundation

/// When a long-running command ends: after a time, on SIGTERM or SIGINT, or when a piped standard input ends.
struct StopRequest {
  private let end: Date?
  private let watchesInput: Bool

  /// Holds the signals back, so that they can be asked for.
  static func prepare() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTERM)
    sigaddset(&signals, SIGINT)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }

  init(after seconds: Int?) {
    end = seconds.map { Date().addingTimeInterval(Double($0)) }
    // A shell gives its background jobs /dev/null, which is at its end from the start: only a pipe counts.
    var status = stat()
    watchesInput = fstat(STDIN_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// Whether to stop now; waits up to `milliseconds` for a reason to.
  func isMade(waiting milliseconds: Int32 = 0) -> Bool {
    if let end, Date() >= end { return true }
    var input = pollfd(fd: watchesInput ? STDIN_FILENO : -1, events: Int16(POLLIN), revents: 0)
    if poll(&input, 1, milliseconds) > 0 {
      var byte: UInt8 = 0
      if read(STDIN_FILENO, &byte, 1) <= 0 { return true }
    }
    var pending = sigset_t()
    sigemptyset(&pending)
    sigpending(&pending)
    return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1
  }
}
