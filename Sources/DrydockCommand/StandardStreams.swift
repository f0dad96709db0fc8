import Foundation
import Synchronization

/// Standard output and standard error as they are written: completely, or the program does not end with 0.
///
/// A failed write does not stop a command: its work is still completed or reverted, its locks and scratch directories
/// are removed, and the failure is reported when it ends. So the flag is the process's, as the stream is.
enum StandardStreams {
  enum Fault: Equatable {
    /// The reader has ended, such as `head`.
    case closedPipe
    case failed(String)
  }

  private struct State {
    var fault: Fault?
    var isUsed = false
    /// Whether the last line of standard error is a status, which the next output replaces.
    var showsStatus = false
    /// Whether a question was asked, and its answer is being typed.
    var isAsking = false
    var isQuiet = false
    var color = ColorChoice.auto

    mutating func eraseStatus() {
      if showsStatus { _ = StandardStreams.write("\r\u{1B}[K", to: STDERR_FILENO) }
      showsStatus = false
    }
  }

  private static let state = Mutex(State())

  /// How the command's options want it.
  static func configure(_ options: CommonOptions) {
    state.withLock { ($0.isQuiet, $0.color) = (options.quiet, options.color) }
  }

  static var isQuiet: Bool { state.withLock(\.isQuiet) }

  /// Whether standard output gets colours.
  static var colorsResults: Bool { isColored(STDOUT_FILENO) }

  /// Whether standard error gets colours.
  static var colorsNotices: Bool { isColored(STDERR_FILENO) }

  /// As <https://no-color.org> has it; an option wins over the variable.
  private static func isColored(_ stream: Int32) -> Bool {
    switch state.withLock(\.color) {
    case .always: return true
    case .never: return false
    case .auto:
      let variables = ProcessInfo.processInfo.environment
      return isatty(stream) == 1 && variables["NO_COLOR", default: ""].isEmpty && variables["TERM"] != "dumb"
    }
  }

  /// Why something is missing in standard output; nil when all of it was taken.
  static var fault: Fault? { state.withLock(\.fault) }

  /// To be called before anything is opened and printed.
  static func prepare() {
    // A file that is opened later must not get the number of a closed stream: output would be written into it.
    // Neither can a directory be written, so that a closed standard output is an error, as it is without this.
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      _ = open("/", O_RDONLY)
    }
    // A closed pipe is an error of `write`, not a kill in the middle of a commit. Not ignored but handled: the
    // scripts that a migration runs get the usual signal back.
    signal(SIGPIPE) { _ in }
  }

  static func result(_ bytes: UnsafeRawBufferPointer) {
    state.withLock { state in
      guard state.fault == nil, !bytes.isEmpty else { return }
      state.isUsed = true
      state.eraseStatus()
      guard let error = write(bytes, to: STDOUT_FILENO) else { return }
      state.fault = error == EPIPE ? .closedPipe : .failed(String(cString: strerror(error)))
    }
  }

  /// A result that could not even be put into words.
  static func fail(_ reason: String) {
    state.withLock { $0.fault = $0.fault ?? .failed(reason) }
  }

  /// A note, to standard error; when that fails there is no place left to report it.
  static func note(_ text: String) {
    state.withLock { state in
      state.eraseStatus()
      _ = write(text, to: STDERR_FILENO)
    }
  }

  /// Shows a line on standard error that anything printed later replaces; nil removes it.
  static func show(status: String?) {
    state.withLock { state in
      guard let status else { return state.eraseStatus() }
      if state.isAsking { return }
      _ = write("\r\u{1B}[K" + status, to: STDERR_FILENO)
      state.showsStatus = true
    }
  }

  /// Whether standard error is a terminal on which a line can be replaced.
  static var canShowStatus: Bool {
    isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
  }

  /// The columns of the terminal behind standard output; nil without one.
  static var outputWidth: Int? { columns(STDOUT_FILENO) }

  private static func columns(_ stream: Int32) -> Int? {
    var size = winsize()
    return ioctl(stream, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : nil
  }

  /// The columns of the terminal behind standard error.
  static var width: Int {
    if let columns = columns(STDERR_FILENO) { return columns }
    return ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) }.map { max(1, $0) } ?? 80
  }

  /// Runs a body that asks a question and waits for the answer; no status is shown meanwhile.
  static func asking<T>(_ body: () throws -> T) rethrows -> T {
    state.withLock { $0.isAsking = true }
    defer { state.withLock { $0.isAsking = false } }
    return try body()
  }

  /// Why something is missing at the end: what a file system reports only when a file is closed, such as the full quota
  /// of a network's, counts too.
  static func finish() -> Fault? {
    state.withLock { state in
      if state.isUsed, state.fault == nil, close(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) != 0,
        errno != EINTR
      {
        state.fault = .failed(String(cString: strerror(errno)))
      }
      return state.fault
    }
  }

  private static func write(_ text: String, to stream: Int32) -> Int32? {
    var text = text
    return text.withUTF8 { write(UnsafeRawBufferPointer($0), to: stream) }
  }

  /// Writes all of it; gives the error number otherwise.
  private static func write(_ bytes: UnsafeRawBufferPointer, to stream: Int32) -> Int32? {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = UnsafeRawBufferPointer(rebasing: rest)
      let count = Foundation.write(stream, piece.baseAddress, piece.count)
      if count >= 0 {
        rest = rest.dropFirst(count)
        continue
      }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        // The other end of a terminal or pipe has made it so for all who share it.
        var ready = pollfd(fd: stream, events: Int16(POLLOUT), revents: 0)
        _ = poll(&ready, 1, -1)
      case let error: return error
      }
    }
    return nil
  }
}
