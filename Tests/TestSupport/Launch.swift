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
  /// Where it starts; nil is where this process is.
  var directory: String?

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

    if let directory {
      guard Self.changeDirectory(&actions, directory) == 0 else {
        throw SystemFailure(call: "posix_spawn_file_actions_addchdir_np", path: Array(directory.utf8))
      }
    }

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
    // A file that another test is writing just now must not be open in the program: what uses a container is looked for.
    #if canImport(Darwin)
      let closing = Int16(POSIX_SPAWN_CLOEXEC_DEFAULT)
    #else
      let closing: Int16 = 0
      guard Self.closeFrom(&actions, 3) == 0 else {
        throw SystemFailure(call: "posix_spawn_file_actions_addclosefrom_np", path: Array(executable.utf8))
      }
    #endif
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | closing)

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

  #if canImport(Darwin)
    private static func changeDirectory(_ actions: inout posix_spawn_file_actions_t?, _ path: String) -> Int32
    {
      posix_spawn_file_actions_addchdir_np(&actions, path)
    }
  #else
    private typealias Actions = UnsafeMutablePointer<posix_spawn_file_actions_t>
    private static func changeDirectory(_ actions: Actions, _ path: String) -> Int32 {
      typealias Function = @convention(c) (Actions, UnsafePointer<CChar>) -> Int32
      return hiddenFunction("posix_spawn_file_actions_addchdir_np", Function.self)?(actions, path) ?? -1
    }
    private static func closeFrom(_ actions: Actions, _ first: Int32) -> Int32 {
      typealias Function = @convention(c) (Actions, Int32) -> Int32
      return hiddenFunction("posix_spawn_file_actions_addclosefrom_np", Function.self)?(actions, first) ?? -1
    }
  #endif

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

#if !canImport(Darwin)
  /// A function of the C library that Glibc's module hides from Swift.
  func hiddenFunction<Function>(_ name: String, _ type: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: type) }
  }
#endif
