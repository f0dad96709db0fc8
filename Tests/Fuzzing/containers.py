#!/usr/bin/env python3
"""Fuzzes the commands that read a container: containers.py SECONDS [--seed N] [--only N] [--finds DIRECTORY]

It makes hostile containers (`hostile_containers.py`), one after another, and runs the reading commands on each under strace. A
container is somebody else's data: to look at it may change nothing, neither in it nor elsewhere, and may not reach what its
links and journals name. A run fails when a command

- opens, creates, changes or removes a path that is not in the container, its private TMPDIR, the repository, the directory for
  its results, or the list of system files in `SYSTEM` (also when the attempt fails), or opens a FIFO, socket or device of the
  container;
- leaves the container, or a canary outside of it, other than it was: names, content, modes, owners, attributes and times;
- takes longer than 20 s, is killed by a signal, writes more than 200 MB, needs more than 2 GB of memory, leaves something in
  TMPDIR, or ends with an exit code that the guide "The command line" does not give for it;
- prints control characters, or with `--json` something else than one document;
- writes an archive that cannot be verified, shown or exported, or that differs from the container.

Some containers have the state of an interrupted command, with hostile records. Recovery may change these, and nothing else.

Before it starts, it runs small programs that do what is forbidden, and fails when one of them goes unnoticed.

The program is $DRYDOCK, by default `.build/release/drydock`. A find is saved in `.build/fuzzing/finds`: the container as a tar,
the seed, the command and the reason, and the trace. `--seed N --only M` makes and examines one container again. Exit code 1: a
find.
"""
import argparse, contextlib, hashlib, json, os, random, re, resource, signal, sqlite3, stat, subprocess, sys, tempfile, time

import hostile_containers as hostile

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WRITTEN_LIMIT, MEMORY_LIMIT, TIME_LIMIT = 200 << 20, 2 << 30, 20
# Of each kind of find, this many are saved.
SAVED = 3

# ---- the system calls that are examined, by what their arguments are

# `f` is a descriptor, from which the next path starts, `p` a path, `s` the address of a socket, and `x` none of these.
CALLS = {
    "open": "p", "openat": "fp", "openat2": "fp", "creat": "p", "truncate": "p", "execve": "p", "execveat": "fp",
    "unlink": "p", "unlinkat": "fp", "rmdir": "p", "rename": "pp", "renameat": "fpfp", "renameat2": "fpfp",
    "link": "pp", "linkat": "fpfp", "symlink": "xp", "symlinkat": "xfp", "mkdir": "p", "mkdirat": "fp", "mknod": "p", "mknodat": "fp",
    "chmod": "p", "fchmodat": "fp", "fchmodat2": "fp", "chown": "p", "lchown": "p", "fchownat": "fp",
    "utime": "p", "utimes": "p", "futimesat": "fp", "utimensat": "fp",
    "setxattr": "p", "lsetxattr": "p", "removexattr": "p", "lremovexattr": "p", "setxattrat": "fp", "removexattrat": "fp",
    "mount": "pp", "umount2": "p", "pivot_root": "pp", "chroot": "p", "chdir": "p", "fchdir": "f", "connect": "s", "bind": "s",
    "open_by_handle_at": "f", "name_to_handle_at": "fp",
}
OPENING = {"open", "openat", "openat2"}
# Calls that an strace may not know by name, which change something.
UNKNOWN = {"syscall_0x1c4": "fchmodat2", "syscall_0x1cf": "setxattrat", "syscall_0x1d2": "removexattrat"}

# What every program reads of the system, and what Drydock does. Nothing of it is written.
SYSTEM = [
    rb"/usr/lib/.+", rb"/usr/share/(zoneinfo|locale|icu)/?.*", rb"/usr/share/zoneinfo", rb"/lib(64)?/.+", rb"/usr/local/lib/.+",
    rb"/etc/(ld\.so\.(cache|preload)|localtime|timezone|passwd|group|nsswitch\.conf|machine-id|os-release|locale\.alias)", rb"/etc/ssl/.+",
    rb"/proc", rb"/proc/(self|thread-self|\d+)/(maps|fd|fdinfo/\d+|mountinfo|status|stat|cgroup|comm|task|task/\d+/\w+)",
    rb"/proc/(locks|mounts|meminfo|stat|cpuinfo|filesystems)", rb"/proc/sys/(kernel|vm|fs)/.+",
    rb"/sys/devices/system/(cpu|node)/.+", rb"/sys/fs/cgroup/.*", rb"/sys/kernel/mm/.+",
    rb"/dev/(null|urandom|random|fd)",
]
SYSTEM = re.compile(b"(?:" + b"|".join(SYSTEM) + rb")\Z")

# A descriptor with its path, a string, or anything else.
TOKEN = re.compile(rb'(AT_FDCWD|-?\d+)<((?:\\x[0-9a-f]{2})*)>|"((?:\\x[0-9a-f]{2})*)"|'
                   rb'(?<![\w<>])(AT_FDCWD|NULL|0x[0-9a-f]+|-?\d+)(?![\w<])')
LINE = re.compile(rb"(\d+) +(\w+)\((.*)\) += (-?\d+|\?|0x[0-9a-f]+)(?:<((?:\\x[0-9a-f]{2})*)>)?(.*)\Z", re.S)
UNFINISHED = re.compile(rb"(\d+) +(\w+)\((.*) <unfinished \.\.\.>\Z", re.S)
RESUMED = re.compile(rb"(\d+) +<\.\.\. (\w+) resumed>(.*)\Z", re.S)
CONTROL, JSON_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]"), re.compile("[\0-\x08\x0b-\x1f]")


def unhex(text):
    return bytes.fromhex(text.replace(b"\\x", b"").decode())


class Call:
    """One examined system call: its name, the absolute paths that it names, and for an open the real path of what was opened."""

    def __init__(self, name, paths, arguments, result, opened):
        self.name, self.paths, self.arguments, self.result, self.opened = name, paths, arguments, result, opened

    @property
    def writes(self):
        """Whether it changes a name or a file, or opens one so that it is created or emptied."""
        return self.name not in OPENING and self.name not in ("chdir", "fchdir", "execve", "execveat", "connect") or \
            re.search(rb"O_(CREAT|TRUNC|TMPFILE)", self.arguments) is not None

    def __str__(self):
        names = " ".join(os.fsdecode(path) for path in self.paths)
        flags = re.search(rb"O_\w+(\|O_\w+)*", self.arguments)
        return f"{self.name} {names!r}{' ' + flags[0].decode() if flags else ''} = {self.result.decode()}" + (
            f" {os.fsdecode(self.opened)!r}" if self.opened is not None and self.opened not in self.paths else "")


def calls(trace, directory):
    """The calls in the output of strace, whose strings are in hexadecimal. The program starts in the directory."""
    descriptors, pending, current = {}, {}, directory
    lines = trace.split(b"\n")
    for line in lines:
        if match := UNFINISHED.match(line):
            pending[match[1], match[2]] = match[3]
            continue
        if line.endswith(b" +++") and b" +++ " in line:
            # A call that never returned, such as the opening of a FIFO.
            process = line.split()[0]
            lines += [b"%s %s(%s) = ?" % (*key, pending.pop(key)) for key in list(pending) if key[0] == process]
        if match := RESUMED.match(line):
            line = match[1] + b" " + match[2] + b"(" + pending.pop((match[1], match[2]), b"") + match[3]
        match = LINE.match(line)
        if not match:
            continue
        name = UNKNOWN.get(match[2].decode(), match[2].decode())
        shape = CALLS.get(name)
        if shape is None:
            continue
        if match[2].decode() in UNKNOWN:
            yield Call(name, [b"?"], match[3], match[4], None)
            continue
        for number, path in re.findall(rb"(\d+)<((?:\\x[0-9a-f]{2})+)>", match[3]):
            descriptors[number] = unhex(path)
        opened = unhex(match[5]) if match[5] is not None else None
        if opened is not None:
            descriptors[match[4]] = opened
        if shape == "s":
            local = re.search(rb'sun_path=(@?)"((?:\\x[0-9a-f]{2})*)"', match[3])
            path = local[1] + unhex(local[2]) if local else b"a network address"
            yield Call(name, [path], match[3], match[4], None)
            continue
        tokens = [(unhex(path) if number else None, None if number or other else unhex(text), other)
                  for number, path, text, other in TOKEN.findall(match[3])]
        paths, base = [], current
        for kind in shape:
            if not tokens:
                break
            folder, text, other = tokens.pop(0)
            if kind == "f":
                base = folder if folder else current if other in (b"AT_FDCWD", b"") else descriptors.get(other, b"?")
                if shape == "f":
                    paths.append(base)
            elif kind == "p":
                # Without a path, such as of utimensat, the descriptor itself is meant.
                path = os.path.join(base, text) if text else base
                if link := re.match(rb"/(?:proc/(?:self|thread-self|\d+)|dev)/fd/(\d+)(/.*)?\Z", path, re.S):
                    path = descriptors.get(link[1], path) + (link[2] or b"")
                paths.append(os.path.normpath(path).replace(b"//", b"/"))
                base = current
        if name in ("chdir", "fchdir") and match[4] == b"0" and paths:
            current = paths[0]
        yield Call(name, paths, match[3], match[4], opened)


# ---- states of directories


def content(path, status):
    """A hash of what a file has: its size, and all that is not a hole."""
    result = hashlib.blake2b(str(status.st_size).encode())
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOATIME)
    except OSError:
        return "unreadable"
    try:
        at = 0
        while at < status.st_size:
            try:
                start = os.lseek(file, at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(file, start, os.SEEK_HOLE)
            os.lseek(file, start, os.SEEK_SET)
            while start < at and (data := os.read(file, min(1 << 20, at - start))):
                result.update(b"%d:" % start + data)
                start += len(data)
    except OSError:
        return "unreadable"
    finally:
        os.close(file)
    return result.hexdigest()


def listing(root, contents=True):
    """Everything that is at and below a path, but for access times."""
    result, waiting = {}, [root]
    while waiting:
        path = waiting.pop()
        try:
            status = os.lstat(path)
        except OSError as error:
            result[path] = str(error.errno)
            continue
        form = stat.S_IFMT(status.st_mode)
        result[path] = [oct(status.st_mode), status.st_uid, status.st_gid, status.st_nlink, status.st_rdev, status.st_ino,
                        status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        if form == stat.S_IFLNK:
            result[path].append(os.readlink(path))
        if contents:
            try:
                names = os.listxattr(path, follow_symlinks=False)
                result[path].append({name: os.getxattr(path, name, follow_symlinks=False) for name in names})
            except OSError:
                pass
            if form == stat.S_IFREG:
                result[path].append(content(path, status))
        if form == stat.S_IFDIR:
            try:
                waiting += [os.path.join(path, name) for name in os.listdir(path)]
            except OSError:
                pass
    return result


FIELDS = ["mode", "owner", "group", "links", "device", "inode", "size", "time", "change time", "content", "content", "content"]


def differences(before, after):
    result = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        what = "gone" if new is None else "new" if old is None else ", ".join(
            dict.fromkeys(FIELDS[at] for at in range(min(len(old), len(new))) if old[at] != new[at])) or "changed"
        result.append(f"{os.fsdecode(path)!r}: {what}")
    return result


# ---- running one command


class Outcome:
    def __init__(self):
        self.code, self.seconds, self.written, self.memory = None, 0.0, 0, 0
        self.output = self.errors = self.trace = b""
        self.late = False


class World:
    """The directories of a run: the container is in `case`, and everything else has a directory of its own."""

    def __init__(self, program, forbidden=None):
        self.base = os.fsencode(os.path.realpath(tempfile.mkdtemp(prefix="drydock-containers.")))
        self.program, self.forbidden = os.fsencode(program), forbidden
        # Whether recovery may change the container that is examined.
        self.is_changeable = False
        # A copy of the container with other rows, if there is one.
        self.other = None
        for name in ["case", "canary", "start", "tmp", "out", "repository", "home", "made", "packed"]:
            path = os.path.join(self.base, name.encode())
            os.mkdir(path)
            setattr(self, name, path)
        join = os.path.join
        self.kept_files = [join(folder, b"kept") for folder in (self.base, self.start, self.tmp, self.case, self.home, self.repository)]
        self.kept_files += [
            join(self.canary, name) for name in (b"file", b"directory/file", b"file.sqlite", b"file.sqlite-journal")]
        self.canaries = self.kept_files + [
            join(self.canary, name) for name in (b"fifo", b"link", b"directory", b"nothing", b"directory/nothing")]
        self.renew_canaries()
        # Programs start in `start`. SQLite works on a copy in a directory below TMPDIR.
        self.targets = hostile.Targets(self.canaries, [self.start, join(self.tmp, b"drydock-scratch-x"), self.case])
        for name, text in CONFIGURATIONS.items():
            with open(join(self.start, name), "w") as file:
                file.write(DATABASES + text)
        for name, text in MIGRATIONS.items():
            os.makedirs(os.path.dirname(join(self.start, name)), exist_ok=True)
            with open(join(self.start, name), "w") as file:
                file.write(text)
        self.environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.fsdecode(self.home),
                            "TMPDIR": os.fsdecode(self.tmp), "LC_ALL": "C.UTF-8", "SWIFT_BACKTRACE": "enable=no", "TZ": "UTC"}
        # What nobody changes. Migrations and settings are read, the canaries are not.
        self.own = [self.canary, *self.kept_files, join(self.start, b"Migrations"), join(self.start, b"Moves"),
                    *(join(self.start, name) for name in CONFIGURATIONS)]

    def renew_canaries(self):
        """Makes what is outside of a container, of which an earlier find may have changed something."""
        for name in os.listdir(self.canary):
            remove(os.path.join(self.canary, name))
        os.mkdir(os.path.join(self.canary, b"directory"))
        os.mkfifo(os.path.join(self.canary, b"fifo"))
        os.symlink(b"file", os.path.join(self.canary, b"link"))
        for path in self.kept_files:
            remove(path)
            with open(path, "wb") as file:
                file.write(b"kept")

    def kept(self):
        """The state of what is outside of the container and must not change."""
        result = {}
        for path in self.own:
            result.update(listing(path))
        # A new name in the working directory, in the home, or above.
        for path in [self.base, self.start, self.home]:
            result[path + b"/"] = [sorted(os.listdir(path))]
        return result

    def run(self, arguments, limit=TIME_LIMIT, written=WRITTEN_LIMIT):
        outcome, log = Outcome(), os.path.join(self.made, b"trace")
        command = ["strace", "-f", "-qq", "--seccomp-bpf", "-y", "-xx", "-s", "8192", "-e",
                   "trace=" + ",".join("?" + name for name in CALLS), "-e", "signal=none", "-o", log, self.program, *arguments]
        paths = [os.path.join(self.made, name) for name in (b"output", b"errors")]
        free = os.statvfs(self.base)
        free = free.f_bavail * free.f_frsize
        with open(paths[0], "wb") as output, open(paths[1], "wb") as errors:
            start = time.monotonic()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=self.start, env=self.environment,
                                       start_new_session=True, preexec_fn=limited)
            while True:
                # What directories and journals of file systems need does not count: it is not the program's.
                outcome.written = max([outcome.written, *map(bytes_written, children(process.pid))])
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
                outcome.seconds = time.monotonic() - start
                if ended:
                    break
                now = os.statvfs(self.base)
                # So that it does not fill the disk, whatever it writes.
                if outcome.seconds > limit or free - now.f_bavail * now.f_frsize > 4 * written + (4 << 30):
                    outcome.late = True
                    status, usage = stop(process.pid)
                    break
                time.sleep(0.002 if outcome.seconds < 0.3 else 0.05)
            process.returncode = os.waitstatus_to_exitcode(status)
        outcome.code = process.returncode
        outcome.memory = usage.ru_maxrss * 1024
        for name, path in zip(("output", "errors", "trace"), (*paths, log)):
            try:
                with open(path, "rb") as file:
                    setattr(outcome, name, file.read(64 << 20))
                os.unlink(path)
            except FileNotFoundError:
                pass
        return outcome

    def clean(self):
        for path in [self.case, self.tmp, self.out, self.repository, self.packed]:
            for name in os.listdir(path):
                if name != b"kept":
                    remove(os.path.join(path, name))
        self.renew_canaries()

    def allowed(self, call, path, is_opened=False):
        """Whether a call may have this path; for an open also the real path of what was opened."""
        if self.forbidden and self.forbidden.search(path):
            return False
        for kept in self.own:
            if path == kept or path.startswith(kept + b"/"):
                return path.startswith(self.start) and not path.endswith(b"/kept") and not call.writes
        if call.name in ("chdir", "fchdir"):
            return True
        if call.name == "execve":
            return path == self.program
        if call.name in ("connect", "bind", "execveat", "mount", "umount2", "pivot_root", "chroot", "open_by_handle_at"):
            return call.name == "connect" and path in (
                # The system's caches of names, and its log, in which Swift's runtime says that it may not set priorities.
                b"/var/run/nscd/socket", b"/run/nscd/socket", b"/dev/log")
        inside = lambda folder: path == folder or path.startswith(folder + b"/")
        if inside(self.tmp):
            # Drydock's own directories and SQLite's temporary files have these prefixes; nobody else's are touched.
            return path == self.tmp and (not call.writes or b"O_TMPFILE" in call.arguments) or path.startswith(
                (self.tmp + b"/drydock-", self.tmp + b"/etilqs_"))
        if inside(self.out) or inside(self.repository):
            return True
        if inside(self.packed):
            return call.name in OPENING and not call.writes and b"O_RDWR" not in call.arguments
        if inside(self.home):
            return path == self.home and not call.writes or inside(os.path.join(self.home, b".cache"))
        if self.is_changeable and inside(self.case):
            return True
        if re.match(re.escape(self.case) + rb"/\.drydock-[0-9a-f]{16}(/|\Z)", path):
            # The state of a container is beside it.
            return call.name in OPENING and not call.writes
        if inside(self.case):
            if call.name not in OPENING or call.writes:
                return False
            try:
                form = stat.S_IFMT(os.lstat(path).st_mode)
            except OSError:
                return True
            # A FIFO is not opened by who wants a directory.
            return form in (stat.S_IFREG, stat.S_IFDIR) or not is_opened and (
                form == stat.S_IFLNK or b"O_PATH" in call.arguments or b"O_DIRECTORY" in call.arguments)
        if call.name not in OPENING or call.writes or b"O_WRONLY" in call.arguments or b"O_RDWR" in call.arguments and path != b"/dev/null":
            return False
        # The directories above a container, in which its state and drydock.yaml are searched for.
        above = path == b"/" or (self.base + b"/").startswith(path + b"/") or path in (self.base, self.start, self.packed)
        if above:
            return b"O_DIRECTORY" in call.arguments or is_opened
        if os.path.basename(path) == b"drydock.yaml" and (self.start + b"/").startswith(os.path.dirname(path) + b"/"):
            return True
        # The loader looks for libraries beside the program.
        if path.startswith(os.path.dirname(self.program) + b"/") and b".so" in path:
            return True
        return SYSTEM.match(path) is not None

    def violations(self, outcome):
        """The calls that are not allowed, by what they touch: a canary, a kind of file of the container, or a path of the system."""
        result = {}
        for call in calls(outcome.trace, self.start):
            bad = [path for path in call.paths if not self.allowed(call, path)]
            if call.opened is not None and not self.allowed(call, call.opened, True):
                bad.append(call.opened)
            for path in bad[:1]:
                lines = result.setdefault(f"touches what it may not: {call.name} {self.place(path)}", [])
                if len(lines) < 10 and str(call) not in lines:
                    lines.append(str(call))
        return result

    def place(self, path):
        """Where a path is, without what differs each time, to count what is alike."""
        if any(path == kept or path.startswith(kept + b"/") for kept in self.own) or not path.startswith(self.base):
            return re.sub(r"\d+", "N", os.fsdecode(path.replace(self.base + b"/", b"")))
        if not path.startswith(self.case):
            return os.fsdecode(path[len(self.base) + 1:].split(b"/")[0])
        try:
            form = stat.S_IFMT(os.lstat(path).st_mode)
        except OSError:
            form = 0
        return "in the container: " + KINDS[form]


KINDS = {0: "nothing", stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "FIFO",
         stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
DATABASES = "databases: {main: [Documents/main.sqlite, databases/main.sqlite, main.sqlite, data/main.sqlite], "\
            "moved: [Moved/main.sqlite, moved.sqlite]}\n"
# The first is found by its name, the others are given by --config.
CONFIGURATIONS = {
    b"drydock.yaml": "version-markers: [{pragma: main, absent: 0}]\nexclude: ['*.part', '[a-']\n",
    b"json.yaml": "version-markers: [{json: state.json, pointer: /version, absent: 0}]\nprotection: [{path: '**', require: complete}]\n",
    b"defaults.yaml": "version-markers: [{defaults: dataSchemaVersion, absent: 0}]\ninclude: ['**/x.db', 'Library/Caches']\n",
    b"grdb.yaml": "version-markers: [{grdb: main, at: {0: v1, 1: v2}, absent: 0}]\n",
    b"moved.yaml": "version-markers: [{json: state.json, pointer: /version, absent: 0}]\nmigrations: Moves\n",
    b"group.yaml": "version-markers: [{pragma: main, absent: 0}]\ngroups: {group.example: ../Group}\nlayout: ios\n",
}
MIGRATIONS = {
    b"Migrations/0001_sql.yaml": "description: Changes rows, so that triggers run\nsteps:\n"
                      "  - sql: {database: main, if-missing: create, destructive: an example, up: \""
                      "CREATE TABLE IF NOT EXISTS t(a, b); UPDATE t SET b = 'new'; INSERT INTO t(a, b) VALUES (77, 'y');"
                      " DELETE FROM t WHERE a = 1; CREATE TABLE added(x)\"}\n",
    b"Migrations/0002_files.yaml": "description: Settings and files\nsteps:\n  - defaults.set-default: {values: {theme: light}}\n"
                                   "  - files.create-directory: {path: Made, if-exists: keep}\n",
    # A link that was moved is a part of the stage, as a database is that was moved.
    b"Moves/0001_move.yaml": "description: A database moves\nsteps:\n"
                             "  - files.move: {from: moved.sqlite, to: Moved/main.sqlite, if-missing: skip}\n"
                             "verify:\n  - sql: {database: moved, query: SELECT count(*) FROM sqlite_schema, equals: before}\n",
    b"Moves/0002_sql.yaml": "description: A database changes\nsteps:\n"
                            "  - sql: {database: moved, if-missing: skip, up: CREATE TABLE added(x)}\n",
}


def limited():
    """Nothing that a hostile container does is to exhaust the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def children(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def bytes_written(process):
    try:
        with open(f"/proc/{process}/io") as file:
            return int(re.search(r"wchar: (\d+)", file.read())[1])
    except (OSError, TypeError):
        return 0


def stop(tracer):
    """Kills a program that strace runs, and then strace, which so has time to write what the program was about to do."""
    for _ in range(100):
        for child in children(tracer):
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        ended, status, usage = os.wait4(tracer, os.WNOHANG)
        if ended:
            return status, usage
        time.sleep(0.02)
    os.killpg(tracer, signal.SIGKILL)
    return os.wait4(tracer, 0)[1:]


def remove(path):
    """Removes a tree, whatever its modes are and however deep it is."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            subprocess.run(["chmod", "-R", "u+rwX", "--", path], stderr=subprocess.DEVNULL)
            subprocess.run(["rm", "-rf", "--", path])
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass


# ---- what is run on a container


class Task:
    """A command with what is expected of it: the exit codes, and whether it must be a success because an archive was written."""

    def __init__(self, *arguments, codes=(0, 1, 3, 4, 5), after=None):
        self.arguments = [os.fsencode(argument) for argument in arguments]
        self.codes, self.after = codes, after

    def add(self, *arguments):
        """Adds options, before the words that are none."""
        at = self.arguments.index(b"--") if b"--" in self.arguments else len(self.arguments)
        self.arguments[at:at] = arguments

    @property
    def name(self):
        words = [os.fsdecode(argument) for argument in self.arguments]
        return " ".join(words[:2] if words[0] in ("defaults", "vault", "fixture", "import") else words[:1]) + (
            " --dry-run" if "--dry-run" in words else "")


def tasks(rng, world, container, number):
    """The reading commands, in an order in which a later one finds what an earlier one wrote."""
    out = lambda name: os.path.join(world.out, name.encode())
    paths = sorted(listing(container, contents=False))
    some = os.path.relpath(rng.choice(paths), container)
    # A link or FIFO that the user names is opened, of course.
    files = [path for path in paths if stat.S_ISREG(os.lstat(path).st_mode)] or [os.path.join(world.start, b"drydock.yaml")]
    plain = os.path.relpath(rng.choice(files), container)
    place = rng.choice([container, container, os.path.relpath(container, world.start)])
    archive, repository = out("a.tar.zst"), world.repository
    busy = ["--busy-timeout", "0.2"]
    compare = (0, 1, 2, 3, 4, 5)
    yield Task("snapshot", place, "-o", archive, *busy, *rng.choice([[], ["--include-excluded"]]))
    wrote = os.path.exists(archive)
    os.mkdir(out("exported"))
    result = [
        Task("inspect", place, *busy), Task("inspect", place, "--excluded"), Task("inspect", place, "--html", out("i.html")),
        Task("explain", place, "--", some), Task("audit", place, *busy),
        Task("audit", place, "--sarif", out("s.json"), "--html", out("x.html")),
        Task("status", place, *busy), Task("log", place), Task("migrate", place, "--dry-run", *busy),
        Task("migrate", place, "--dry-run", "--html", out("m.html"), *busy), Task("diff", place, place, *busy),
        Task("defaults", "read", place), Task("defaults", "export", place, out("d.json"), "--as", "json"),
        Task("vault", "list", place), Task("rollback", place, "--dry-run", codes=(0, 1, 3, 4, 5, 6)),
        Task("fixture", "capture", place, "made", "--fixtures", out("fixtures"), "--at", "0", *busy),
        Task("audit", "--all", world.case, *busy), Task("status", "--all", world.case, *busy),
        Task("snapshot", "--all", world.case, "-r", out("all"), *busy),
        Task("import", place, "--list"), Task("import", os.path.join(place, plain), "--list"),
        Task("inspect", os.path.join(place, plain)), Task("snapshot", os.path.join(place, plain), "-o", out("some.tar.zst"), *busy),
        Task("show", os.path.join(place, plain)), Task("verify", os.path.join(place, plain)), Task("list", "-r", place),
        Task("defaults", "convert", os.path.join(place, plain), "--as", "json"),
    ]
    if wrote:
        result += [
            Task("show", archive, after="snapshot", codes=(0,)), Task("show", archive, some),
            Task("verify", archive, "--data", after="snapshot", codes=(0,)),
            # The container is as it was: nothing may differ.
            Task("verify", archive, "--container", place, *busy), Task("diff", archive, place, "--exit-code", *busy),
            Task("diff", place, archive, "--details", "--exit-code", *busy),
            Task("export", archive, "-o", out("e.tar.zst"), after="snapshot", codes=(0,)),
            Task("restore", archive, place, "--dry-run", *busy),
            Task("restore", archive, place, "--dry-run", "--overwrite-excluded", "--include-excluded", *busy),
            Task("restore", archive, out("new"), "--dry-run", "--from-other"),
            Task("restore", archive, out("new"), "--dry-run", "--from-other", "--migrate"),
            Task("restore", archive, out("restored"), "--yes", "--from-other"),
            Task("restore", archive, out("migrated"), "--yes", "--from-other", "--migrate"),
            Task("fixture", "capture", archive, "made", "--fixtures", out("fixtures2"), "--at", "0"),
        ]
    if world.other:
        result += [Task("diff", place, world.other, *busy), Task("diff", world.other, place, "--details", *busy),
                   Task("diff", place, world.other, "--html", out("d.html"), *busy)]
    if world.other and wrote:
        result += [Task("diff", archive, world.other, *busy), Task("verify", archive, "--container", world.other, *busy, codes=compare),
                   Task("restore", archive, world.other, "--dry-run", "--from-other", *busy),
                   Task("restore", archive, world.other, "--dry-run", "--from-other", "--migrate", *busy)]
    rng.shuffle(result)
    for task in result:
        if rng.random() < 0.45:
            yield task
    if rng.random() < 0.4:
        yield Task("snapshot", place, "-r", repository, *busy)
        yield Task("snapshot", place, "-r", repository, "--tag", "second", *busy)
        yield Task("list", "-r", repository)
        yield Task("verify", "-r", repository, "--data")
        yield Task("forget", "-r", repository, "--keep-last", "1", "--dry-run")
        yield Task("export", "latest", "-r", repository, "--into", out("exported"))
    if rng.random() < 0.35:
        file = os.path.join(world.packed, rng.choice([b"p.tar", b"p.zip", b"p", b"p.tar.gz"]))
        if hostile.packed(rng, container, file):
            for words in [["inspect"], ["inspect", "--excluded"], ["snapshot", "-o", out("p.tar.zst")], ["status"],
                          ["migrate", "--dry-run"], ["audit"]]:
                if rng.random() < 0.6:
                    yield Task(words[0], file, *words[1:])
            yield Task("diff", container, file, *busy)
            yield Task("explain", file, "--", some)
            yield Task("import", file, "--list")


STEPS = ["staged", "checked", "tree-built", "synced", "rewalked", "committed", "exchanged", "moved", "moved:2", "moved:3", "marked", "found-unused",
         "placed", "merged", "undo-kept", "old-removed", "done"]


def interrupted(rng, world, root):
    """A container whose state says that a command was interrupted, with hostile records of what is still to be done.

    The state is believed, as it belongs to the user: recovery changes the container, but nothing else.
    """
    for folder in (b"Documents", b"Library/Preferences"):
        os.makedirs(os.path.join(root, folder))
    main = os.path.join(root, b"Documents/main.sqlite")
    with contextlib.closing(sqlite3.connect(main, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode={rng.choice(['wal', 'delete'])}")
        db.execute("CREATE TABLE t(a, b)")
        db.execute("INSERT INTO t VALUES(1, 2)")
    environment = {**world.environment, "DRYDOCK_KILL_AT": rng.choice(STEPS),
                   "DRYDOCK_COMMIT": rng.choice(["in-place", "in-place", "exchange"])}
    subprocess.run([world.program, "migrate", root], cwd=world.start, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    for name in os.listdir(world.tmp):
        if name != b"kept":
            remove(os.path.join(world.tmp, name))
    states = [os.path.join(root, b".drydock-state")]
    states += [os.path.join(world.case, name) for name in os.listdir(world.case) if name.startswith(b".drydock-")]
    # The tree of an exchange is not a record.
    files = [path for state in states for path in sorted(listing(state, contents=False))
             if os.path.isfile(path) and not os.path.islink(path) and b"/tree" not in path and os.path.getsize(path) < 10**6]
    for path in rng.sample(files, min(len(files), rng.randrange(4))):
        name = world.targets.name(rng, os.path.dirname(path)).split(b"\0")[0]
        with open(path, "rb") as file:
            data = file.read()
        how = rng.random()
        texts = list(dict.fromkeys(re.findall(rb'"((?:[^"\\]|\\.)*)"', data)))
        if how < 0.6 and texts:
            # The form remains, and a path is another.
            old, new = rng.choice(texts), rng.choice([name, b"../" * rng.randrange(1, 5) + b"canary/file", b"..", b"", b"/", b".",
                                                      b"tree/../../x", rng.choice(texts)])
            data = data.replace(b'"' + old + b'"', b'"' + new.replace(b'"', b"").decode("utf-8", "replace").encode() + b'"')
        elif how < 0.7:
            inode = b"%d" % os.stat(world.canary).st_ino
            data = re.sub(rb"\d+", lambda match: rng.choice([match[0], b"0", b"-1", b"18446744073709551616", inode]), data)
        elif how < 0.8:
            data = hostile.varied(rng, data)
        elif how < 0.9:
            # Not a hard link: to remove that would change the number of a canary's links.
            os.unlink(path)
            rng.choice([os.symlink, lambda name, path: os.mkfifo(path)])(name, path)
            continue
        with open(path, "wb") as file:
            file.write(data)
    folders = [path for state in states for path in sorted(listing(state, contents=False))
               if os.path.isdir(path) and not os.path.islink(path)]
    if folders and rng.random() < 0.3:
        path = rng.choice(folders)
        remove(path)
        os.symlink(rng.choice([os.path.join(world.canary, b"directory"), b"../" * rng.randrange(1, 6) + b"canary"]), path)


HOLDER = """
import fcntl, os, sys
held = []
for name, start, length in ((sys.argv[1], 0x40000002, 510), (sys.argv[1] + "-shm", 120 + 3, 1), (sys.argv[1] + "-shm", 128, 1)):
    try:
        file = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, length, start)
        held.append(file)
    except OSError:
        pass
print(flush=True)
sys.stdin.read()
"""


class Fuzzer:
    def __init__(self, world, seed, finds):
        self.world, self.seed, self.finds = world, seed, finds
        self.containers = self.commands = 0
        self.codes, self.found, self.messages, self.slowest = {}, {}, {}, (0.0, "")

    def container(self, number):
        """Makes a container, and runs the commands on it."""
        world = self.world
        world.clean()
        rng = random.Random(f"{self.seed}/{number}")
        name = rng.choice([b"Notes"] * 6 + [b"com.example.hostile", b"X.xcappdata", b"-rf", b"%s", "Grüße".encode(), b"a b", b"x\ny",
                                            b"\x1b[1m"])
        root = os.path.join(world.case, name)
        world.is_changeable = rng.random() < 0.07
        if world.is_changeable:
            interrupted(rng, world, root)
            mains = []
        else:
            builder = hostile.Builder(rng, root, world.targets, os.path.join(world.made, b"db"))
            builder.build()
            mains = [path for path in map(builder.full, builder.databases) if os.path.isfile(path) and not os.path.islink(path)]
        holder, config = None, rng.choice([None, None, *list(CONFIGURATIONS)[1:]])
        if config == b"group.yaml":
            hostile.Builder(rng, os.path.join(world.case, b"Group"), world.targets, os.path.join(world.made, b"db")).build()
        if mains and rng.random() < 0.12:
            # A program has a database open: its index, which another program wrote, is believed.
            holder = subprocess.Popen([sys.executable, "-I", "-S", "-c", HOLDER, rng.choice(mains)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holder.stdout.readline()
        other = os.path.join(world.case, b"Other")
        if not world.is_changeable and rng.random() < 0.5 and hostile.changed_copy(rng, root, other, mains):
            world.other = other
        else:
            world.other = None
        try:
            # Hashes are compared once: what changes a file's content changes its change time.
            first, kept = listing(world.case), world.kept()
            before = listing(world.case, contents=False)
            for task in tasks(rng, world, root, number):
                if rng.random() < 0.3 and b"--html" not in task.arguments and task.name != "defaults convert":
                    task.add(b"--json")
                if config:
                    task.add(b"--config", config)
                outcome = world.run(task.arguments)
                for reason in self.reasons(task, outcome, before, kept):
                    self.save(number, task, outcome, reason)
                before, kept = listing(world.case, contents=False), world.kept()
                self.commands += 1
                self.codes[task.name, outcome.code] = self.codes.get((task.name, outcome.code), 0) + 1
                message = task.name, outcome.code, self.message(outcome) if outcome.code else ""
                self.messages[message] = self.messages.get(message, 0) + 1
                self.slowest = max(self.slowest, (round(outcome.seconds, 1), f"container {number}: {task.name}"))
            after = listing(world.case)
            for difference in [] if world.is_changeable else differences(first, after)[:3]:
                self.save(number, Task("all"), Outcome(), ("changed at the end", difference))
        except Exception as error:
            error.add_note(f"container {number}: --seed {self.seed} --only {number}")
            raise
        finally:
            if holder:
                holder.communicate()
        self.containers += 1

    @staticmethod
    def message(outcome):
        """The last message of a command, without what differs each time."""
        message = (outcome.errors.strip() or outcome.output.strip()).decode("utf-8", "replace").split("\n")[-1]
        return re.sub(r"/\S+|'[^']*'|`[^`]*`|\([^)]*\)|\d+", "…", message)[:150]

    def reasons(self, task, outcome, before, kept):
        """Why a command is a find: each reason as its kind and the details."""
        world = self.world
        for kind, lines in world.violations(outcome).items():
            yield kind, "\n".join(lines)
        changes = differences(before, listing(world.case, contents=False))
        if changes and not world.is_changeable:
            yield "changes the container", "\n".join(changes[:10])
        changes = differences(kept, world.kept())
        if changes:
            yield "changes what is outside", "\n".join(changes[:10])
        if outcome.late:
            yield "takes too long", f"{outcome.seconds:.1f} s"
        elif outcome.code < 0:
            yield f"is killed by signal {-outcome.code}", ""
        elif outcome.code not in task.codes:
            yield f"exit code {outcome.code}" + (f" after a success: {self.message(outcome)}" if task.after else ""), ""
        if outcome.written > WRITTEN_LIMIT:
            yield "writes too much", f"{outcome.written >> 20} MB"
        if outcome.memory > MEMORY_LIMIT:
            yield "needs too much memory", f"{outcome.memory >> 20} MB"
        left = [name for name in os.listdir(world.tmp) if name != b"kept"]
        if left:
            if not outcome.late and outcome.code >= 0:
                yield "leaves something in TMPDIR", repr(left)
            for name in left:
                remove(os.path.join(world.tmp, name))
        for name, data in (("output", outcome.output), ("errors", outcome.errors)):
            # JSON has these as they are: it is not for a terminal.
            pattern = CONTROL if b"--json" not in task.arguments or name == "errors" else JSON_CONTROL
            match = pattern.search(data.decode("utf-8", "replace"))
            if match and task.name not in ("defaults export", "defaults convert"):
                yield f"prints control characters ({name})", repr(data[max(0, match.start() - 60):match.start() + 60])
        if b"--json" in task.arguments and b"--all" not in task.arguments and not outcome.late and outcome.code >= 0:
            try:
                json.loads(outcome.output)
            except ValueError as error:
                yield "prints no JSON document", f"{error}"

    def save(self, number, task, outcome, reason):
        kind = f"{task.name}: {reason[0]}"
        self.found[kind] = self.found.get(kind, 0) + 1
        if self.found[kind] > SAVED:
            return
        os.makedirs(self.finds, exist_ok=True)
        name = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")[:80]
        path = os.path.join(self.finds, f"container-{self.seed}-{number}-{self.commands}-{name}")
        subprocess.run(["tar", "-S", "--xattrs", "-cf", path + ".tar", "-C", self.world.base, "case"],
                       stderr=subprocess.DEVNULL, timeout=60)
        command = " ".join(repr(os.fsdecode(argument)) for argument in task.arguments)
        text = (f"{kind}\n{reason[1]}\ncontainer {number}: --seed {self.seed} --only {number}\ncommand: drydock {command}\n"
                f"exit code {outcome.code}, {outcome.seconds:.1f} s, {outcome.written >> 20} MB written, "
                f"{outcome.memory >> 20} MB of memory\n")
        with open(path + ".txt", "w", errors="surrogateescape") as file:
            file.write(text + (outcome.output[-2000:] + b"\n" + outcome.errors[-4000:]).decode("utf-8", "surrogateescape"))
        with open(path + ".trace", "wb") as file:
            file.write(re.sub(rb"(?:\\x[0-9a-f]{2})+", lambda match: unhex(match[0]), outcome.trace))
        print(f"FIND container {number}: {text.encode('utf-8', 'backslashreplace').decode()}", flush=True)


# ---- the check of this program itself

# What a bad program does, and the reason that must be found. `$C` is the container, `$B` the directory above all others.
TOUCHES, OUTSIDE, INSIDE = "touches what it may not", "changes what is outside", "changes the container"
MISDEEDS = [
    ("cat $B/canary/file", TOUCHES), ("cat $C/link", TOUCHES), ("cat $C/folder/file", TOUCHES), ("rm -f $B/canary/nothing", TOUCHES),
    ("cd $B/canary; rm file", TOUCHES), ("mkdir $C/made", TOUCHES), (": < $C/fifo", TOUCHES), (": < /etc/hostname", TOUCHES),
    (": > /dev/zero", TOUCHES), ("rm $B/tmp/kept", OUTSIDE), (": > $B/start/made", OUTSIDE),
    ("mv $B/canary/file $B/canary/other", OUTSIDE), ("chmod 700 $B/canary/directory", OUTSIDE),
    ("touch -d 2001-01-01 $C/file", INSIDE), ("chmod 640 $C/file", INSIDE), ("chmod 711 $C", INSIDE), ("printf x >> $C/file", INSIDE),
    ("ln $C/file $B/out/other", INSIDE), ("kill -SEGV $$", "is killed by signal 11"), ("exit 77", "exit code 77"),
    ("sleep 60", "takes too long"), ("mkdir $B/tmp/drydock-left", "leaves something in TMPDIR"),
    ("printf '\\033[1m'", "prints control characters (output)"), ("exec head -c 260M /dev/zero > $B/out/big", "writes too much"),
    ("ls / $C $B/case", None),
]


def check(world, finds):
    """Fails when a misdeed goes unnoticed, or an honest program is found."""
    fuzzer, real = Fuzzer(world, 0, finds), world.program
    world.program = os.path.join(world.base, b"bad")
    missed = []
    for script, expected in MISDEEDS:
        world.clean()
        root = os.path.join(world.case, b"C")
        os.mkdir(root)
        with open(os.path.join(root, b"file"), "w") as file:
            file.write("x")
        os.symlink(os.path.join(world.canary, b"file"), os.path.join(root, b"link"))
        os.symlink(os.path.join(world.canary, b"directory"), os.path.join(root, b"folder"))
        os.mkfifo(os.path.join(root, b"fifo"))
        with open(world.program, "w") as file:
            file.write(f"#!/bin/sh\nB={os.fsdecode(world.base)} C=$B/case/C\n{script}\n")
        os.chmod(world.program, 0o700)
        before, kept = listing(world.case, contents=False), world.kept()
        outcome = world.run([], limit=1.5 if "fifo" in script or "sleep" in script else TIME_LIMIT)
        reasons = dict(fuzzer.reasons(Task("bad"), outcome, before, kept))
        # A shell starts other programs, and reads itself.
        for kind, lines in list(reasons.items()):
            if kind.startswith("touches"):
                del reasons[kind]
                if [line for line in lines.split("\n") if not line.startswith("execve") and "/bad'" not in line]:
                    reasons["touches what it may not"] = lines
        if expected not in reasons if expected else reasons:
            missed.append(f"`{script}`: expected {expected}, found {reasons}")
        remove(os.path.join(world.start, b"made"))
    os.unlink(world.program)
    world.clean()
    world.program = real
    if missed:
        sys.exit("containers.py does not notice what it should:\n  " + "\n  ".join(missed))
    print(f"{len(MISDEEDS) - 1} misdeeds of other programs were noticed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--only", type=int, help="examine this container alone")
    parser.add_argument("--first", type=int, default=0, help="begin with this container")
    parser.add_argument("--finds", default=os.path.join(REPOSITORY, ".build/fuzzing/finds"))
    parser.add_argument("--messages", action="store_true", help="print how often a command ended with which message")
    parser.add_argument("--forbid", help="a pattern of paths that are not allowed, to see that this program can fail")
    arguments = parser.parse_args()
    program = os.path.realpath(os.environ.get("DRYDOCK") or os.path.join(REPOSITORY, ".build/release/drydock"))
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not there: run Scripts/build, or set DRYDOCK")
    world = World(program, re.compile(os.fsencode(arguments.forbid)) if arguments.forbid else None)
    os.mkdir(os.path.join(world.made, b"db"))
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    fuzzer = Fuzzer(world, arguments.seed, arguments.finds)
    try:
        if arguments.only is None:
            check(world, arguments.finds)
            start = time.monotonic()
        print(f"seed {arguments.seed}", flush=True)
        if arguments.only is not None:
            fuzzer.container(arguments.only)
        else:
            number, said = arguments.first, start
            while time.monotonic() - start < arguments.seconds:
                fuzzer.container(number)
                number += 1
                if time.monotonic() - said > 60:
                    said = time.monotonic()
                    print(f"{fuzzer.containers} containers, {fuzzer.commands} commands, {sum(fuzzer.found.values())} finds", flush=True)
    finally:
        remove(world.base)
    by_code = {}
    for (name, code), count in fuzzer.codes.items():
        by_code.setdefault(name, {})[code] = count
    for name in sorted(by_code):
        print(f"  {name}: " + ", ".join(f"exit code {code}: {by_code[name][code]}" for code in sorted(by_code[name])))
    print(f"{fuzzer.containers} containers, {fuzzer.commands} commands, {time.monotonic() - start:.0f} s, seed {arguments.seed}; "
          f"the slowest took {fuzzer.slowest[0]} s ({fuzzer.slowest[1]})")
    if arguments.messages:
        for (name, code, message), count in sorted(fuzzer.messages.items()):
            print(f"  {count} {name} {code}: {message}")
    for kind in sorted(fuzzer.found):
        print(f"FOUND {fuzzer.found[kind]} times: {kind}")
    sys.exit(1 if fuzzer.found else 0)


if __name__ == "__main__":
    main()
