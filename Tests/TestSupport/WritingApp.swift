import Foundation

/// Programs that open a file of a container by themselves while a test runs, most of them a database with a busy timeout of
/// 60 s. One Python process forks them, so that each costs a millisecond.
public final class WritingApp: Sendable {
  /// What a program does.
  public enum Kind: String, Sendable {
    /// Commits six rows to a database.
    case rows
    /// As `rows`, with the database open already before a transaction begins that it then waits for.
    case early
    /// As `rows`, opening the database once a transaction has begun.
    case late
    /// Tries to read and to write a database, without waiting.
    case probe
    /// Appends lines to a file through one descriptor, until it is stopped.
    case append
    /// Writes to a mapping of a file, until it is stopped.
    case map
    /// Has a file open until it is stopped.
    case hold
    /// Is in a directory until it is stopped.
    case stay
  }

  /// What a program reported before it ended.
  public struct Report: Sendable {
    /// Rows whose COMMIT returned, or lines that were written.
    public var rows: [Int] = []
    /// What SQLite answered instead.
    public var errors: [String] = []
    /// All of it.
    public var lines: [String] = []
  }

  private let server: RunningCommand
  private let orders: FileHandle
  private let folder: TemporaryDirectory

  /// Starts the Python process.
  public init() throws {
    folder = try TemporaryDirectory()
    let pipe = folder("orders")
    guard mkfifo(pipe, 0o600) == 0 else { throw SystemFailure(call: "mkfifo", path: Array(pipe.utf8)) }
    server = try Command.spawn(Tools.system("python3"), ["-c", Self.script, pipe])
    guard let orders = FileHandle(forWritingAtPath: pipe) else {
      throw SystemFailure(call: "open", path: Array(pipe.utf8))
    }
    self.orders = orders
    try server.waitForLine("ready")
  }

  deinit { server.kill() }

  /// Starts a program that reports under a name.
  ///
  /// - Parameters:
  ///   - delay: milliseconds until it opens the file.
  ///   - life: milliseconds after which it is killed by SIGKILL; 0 lets it end by itself.
  public func start(_ name: String, _ kind: Kind, _ path: String, delay: Double = 0, life: Double = 0) throws
  {
    let order = [folder(name), path, String(delay), String(life), kind.rawValue]
    try orders.write(contentsOf: Data((order.joined(separator: "\t") + "\n").utf8))
  }

  /// Starts a program, and waits until it has opened the file.
  public func open(_ name: String, _ kind: Kind, _ path: String) throws {
    try start(name, kind, path)
    try wait(name, for: "open")
  }

  /// Stops a program that waits for that.
  @discardableResult
  public func stop(_ name: String) throws -> Report {
    try RawFiles.write([], to: Array(folder(name + ".stop").utf8))
    return try wait(name, for: "end")
  }

  /// Waits for a line of its report: `open`, `end`, or more of it.
  @discardableResult
  public func wait(_ name: String, for line: String = "end") throws -> Report {
    let deadline = Date().addingTimeInterval(90)
    while !lines(name).contains(where: { $0.hasPrefix(line) }) {
      guard Date() < deadline else { throw SystemFailure("no \(line) of \(name): \(lines(name))") }
      usleep(2000)
    }
    var report = Report(lines: lines(name))
    for line in report.lines {
      if line.hasPrefix("row ") { report.rows.append(Int(line.dropFirst(4)) ?? -1) }
      if line.hasPrefix("error ") { report.errors.append(String(line.dropFirst(6))) }
    }
    return report
  }

  private func lines(_ name: String) -> [String] {
    let bytes = (try? RawFiles.read(Array(folder(name).utf8))) ?? Data()
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// A second fork waits for the program and reports its end.
  private static let script = """
    from glob import glob; import mmap, os, random, sqlite3, sys, time, signal

    def note(log, text):
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, (text + "\\n").encode())
        os.close(file)

    def until_stopped(log):
        number = 0
        while os.path.isdir(os.path.dirname(log)) and not os.path.exists(log + ".stop"):
            yield number
            number += 1
            time.sleep(0.002)

    def begun(path):
        root = os.path.dirname(os.path.dirname(path))
        if not os.path.isdir(root): os._exit(0)
        journals = glob(os.path.dirname(root) + "/.drydock-*/journal") + [root + "/.drydock-state/journal"]
        return any(os.path.exists(journal) and os.path.getsize(journal) for journal in journals)

    def early(log, path):
        rows(log, path, True)

    def late(log, path):
        while not begun(path): time.sleep(0.001)
        time.sleep(0.3 * random.random())
        rows(log, path)

    def rows(log, path, waits=False):
        database = sqlite3.connect(path, timeout=60, isolation_level=None)
        note(log, "open")
        while waits and not begun(path): time.sleep(0.001)
        for number in range(6):
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT INTO note(id, text) VALUES (?, ?)", (100000 + number, "x" * 3000))
            database.execute("COMMIT")
            note(log, "row %d" % (100000 + number))
            time.sleep(0.001)
        database.close()

    def probe(log, path):
        database = sqlite3.connect(path, timeout=0, isolation_level=None)
        database.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        database.execute("BEGIN IMMEDIATE")
        database.execute("ROLLBACK")
        database.close()

    def append(log, path):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        note(log, "open")
        for number in until_stopped(log):
            line = "line %d\\n" % number
            os.write(file, line.encode())
            note(log, "row %d" % number)

    def map(log, path):
        file = os.open(path, os.O_RDWR)
        memory = mmap.mmap(file, 0)
        os.close(file)
        note(log, "open")
        for number in until_stopped(log):
            memory[0:1] = b"0123456789"[number % 10:number % 10 + 1]
        memory.close()

    def hold(log, path):
        file = os.open(path, os.O_RDONLY)
        note(log, "open")
        for _ in until_stopped(log): pass

    def stay(log, path):
        os.chdir(path)
        note(log, "open")
        for _ in until_stopped(log): pass

    def app(log, path, delay, life, kind):
        worker = os.fork()
        if worker == 0:
            time.sleep(delay / 1000)
            try:
                globals()[kind](log, path)
            except (sqlite3.Error, OSError) as error:
                note(log, "error %s" % error)
            os._exit(0)
        if life:
            time.sleep((delay + life) / 1000)
            os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        note(log, "end")
        os._exit(0)

    # Nothing goes on without its directory, as when the tests were killed.
    signal.signal(signal.SIGALRM, lambda *_: os.path.exists(sys.argv[1]) or os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, 2, 2)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    orders = os.fdopen(os.open(sys.argv[1], os.O_RDWR))
    print("ready", flush=True)
    while True:
        log, path, delay, life, kind = orders.readline().rstrip("\\n").split("\\t")
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            app(log, path, float(delay), float(life), kind)
    """
}
