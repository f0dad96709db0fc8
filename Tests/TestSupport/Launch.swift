import Foundation

/// One start of a program through `posix_spawn`.
struct Launch {
  enum Input {
    case pipe
    case file(String)
  }

  var executable: String
  var arguments: [String]
  var environment: [String: String]
  var output: String
  var errors: String
  var input = Input.pipe

  /// Between making a pipe and marking it close-on-exec, another thread's child could inherit its end and keep
  /// it open for ever; so starts happen one at a time.
  private static let oneAtATime = NSLock()

  /// Starts the program; gives its process id and, with a pipe, the descriptor to write its input to.
  func start() throws -> (process: pid_t, input: Int32?) {
    Self.oneAtATime.lock()
    defer { Self.oneAtATime.unlock() }
    var ends: [Int32] = [-1, -1]
    if case .pipe = input {
      guard pipe(&ends) == 0 else { throw SystemFailure(call: "pipe", path: Array(executable.utf8)) }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }
    defer { if ends[0] >= 0 { close(ends[0]) } }
    do {
      return (try spawn(reading: ends[0]), ends[1] >= 0 ? ends[1] : nil)
    } catch {
      if ends[1] >= 0 { close(ends[1]) }
      throw error
    }
  }

  private func spawn(reading pipe: Int32) throws -> pid_t {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    switch input {
    case .pipe: posix_spawn_file_actions_adddup2(&actions, pipe, 0)
    case .file(let path): posix_spawn_file_actions_addopen(&actions, 0, path, O_RDONLY, 0)
    }
    let write = O_WRONLY | O_CREAT | O_APPEND
    posix_spawn_file_actions_addopen(&actions, 1, output, write, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, errors, write, 0o600)

    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // A test runner may block or ignore signals; a child must get them as from a shell.
    var none = sigset_t()
    sigemptyset(&none)
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for signal in [SIGPIPE, SIGTERM, SIGINT, SIGHUP] { sigaddset(&defaults, signal) }
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))

    var process = pid_t()
    let variables = environment.map { "\($0.key)=\($0.value)" }
    let status = withStrings([executable] + arguments) { arguments in
      withStrings(variables) { posix_spawnp(&process, executable, &actions, &attributes, arguments, $0) }
    }
    guard status == 0 else {
      throw SystemFailure("cannot start \(executable): \(String(cString: strerror(status)))")
    }
    return process
  }

  private func withStrings<T>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> T
  ) -> T {
    var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) } + [nil]
    defer { pointers.forEach { free($0) } }
    return pointers.withUnsafeMutableBufferPointer { buffer in
      // Never empty: the terminator is always there.
      buffer.baseAddress.map(body)
    } ?? body(&pointers)
  }
}
