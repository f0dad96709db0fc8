"""A machine whose power can be cut: file systems on a disk that logs, the program, and its boot session.

Everything is mounted in a mount namespace of this process, and goes with it.
"""
import ctypes
import os
import subprocess
import sys
import threading
import time
import uuid
from typing import NamedTuple

HERE = os.path.dirname(os.path.realpath(__file__))
BOOT_ID = "/proc/sys/kernel/random/boot_id"
NEW_NAMESPACE = 0x00020000
# After each of these calls a slow program waits so many microseconds, so that others write between any two.
SLOW_CALLS = (
    "rename,renameat,renameat2,linkat,symlinkat,unlinkat,mkdirat,utimensat,fchmod,fchmodat,fchownat,fsetxattr,ftruncate,"
    "pwrite64,copy_file_range,fallocate")
SLOWNESS = 3000
libc = ctypes.CDLL(None, use_errno=True)


class FileSystem(NamedTuple):
    megabytes: int
    make: list
    options: str = ""


# With blocks of 4096 bytes, as on larger disks. Without noauto_da_alloc the kernel writes the content of a file before a rename
# that replaces another file, for programs that forget to sync it.
FILE_SYSTEMS = {
    "ext4": FileSystem(64, ["mkfs.ext4", "-q", "-b", "4096", "-N", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
                       "noauto_da_alloc"),
    "ext3": FileSystem(64, ["mkfs.ext3", "-q", "-b", "4096", "-N", "4096"]),
    "xfs": FileSystem(300, ["mkfs.xfs", "-q"]),
    "btrfs": FileSystem(128, ["mkfs.btrfs", "-q"]),
}


class NotMounted(Exception):
    """The kernel refuses the file system."""


def enter_namespace():
    if libc.unshare(NEW_NAMESPACE) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run_tool("mount", "--make-rprivate", "/")


def run_tool(*arguments):
    result = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {result.stdout.decode(errors='replace').strip()}")
    return result.stdout.decode().strip()


class Machine:
    """A disk at `root`, and what is beside it: a directory for temporary files, the app's migrations, an archive."""

    def __init__(self, directory, program, without=""):
        self.program, self.directory = program, directory
        self.root = self.make("disk")
        self.beside, self.temporary = self.make("beside"), self.make("temporary")
        self.fuse, self.boot = self.make("fuse"), os.path.join(directory, "boot")
        self.apps = os.path.join(self.root, "Apps")
        self.container, self.shared = os.path.join(self.apps, "Notes"), os.path.join(self.root, "Shared/notes")
        self.repository = os.path.join(self.root, "Backups")
        # What makes the harness fail: system calls of the program that do nothing, and a restart that nobody notices.
        words = list(filter(None, without.split(",")))
        self.without, self.has_reboots = [word for word in words if word != "reboot"], "reboot" not in words
        self.is_slow = False
        self.marks = {}
        self.loop = self.recorder = self.log = None
        self.start()
        run_tool("mount", "--bind", self.boot, BOOT_ID)

    def make(self, name):
        path = os.path.join(self.directory, name)
        os.makedirs(path, exist_ok=True)
        return path

    def start(self):
        """A new boot session: what the program has learnt of files may be wrong since."""
        if self.has_reboots or not os.path.exists(self.boot):
            with open(self.boot, "w") as file:
                file.write(f"{uuid.uuid4()}\n")

    # The program

    def drydock(self, *arguments, variables=None, injected=False):
        environment = {
            "PATH": os.environ["PATH"], "TMPDIR": self.temporary, "HOME": self.temporary, "DRYDOCK_CACHE": "none",
            **(variables or {})}
        return subprocess.run(
            (self.injection() if injected else []) + [self.program, *arguments], cwd=self.beside, env=environment, timeout=120,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    def injection(self):
        """What runs the program with other system calls."""
        effects = [(",".join(self.without), "retval=0")] if self.without else []
        effects += [(SLOW_CALLS, f"delay_exit={SLOWNESS}")] if self.is_slow else []
        if not effects:
            return []
        options = ["-e", "trace=" + ",".join(calls for calls, _ in effects)]
        for calls, effect in effects:
            options += ["-e", f"inject={calls}:{effect}"]
        return ["strace", "-f", "-qq", "-o", "/dev/null", "--seccomp-bpf", *options]

    def require(self, *arguments, **options):
        result = self.drydock(*arguments, **options)
        if result.returncode != 0:
            raise RuntimeError(self.failure(arguments, result))
        return result.stdout

    def failure(self, arguments, result):
        """What a command that failed has said."""
        said = f"drydock {' '.join(arguments)} exits with {result.returncode}: {(result.stderr or result.stdout).strip()}"
        return said.replace(self.directory + "/", "")

    def app(self, *arguments):
        run_tool(sys.executable, os.path.join(HERE, "app.py"), *arguments)

    # The disk

    def mount(self, image, system):
        options = ",".join(filter(None, ["loop" if os.path.isfile(image) else "", system.options]))
        try:
            run_tool("mount", *(["-o", options] if options else []), image, self.root)
        except RuntimeError as error:
            raise NotMounted(str(error))

    def unmount(self, kind=""):
        run_tool("umount", self.root)
        if kind == "btrfs":
            # The kernel would take the next image for an older state of this disk.
            subprocess.run(["btrfs", "device", "scan", "--forget"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def connect(self, image, log):
        """Makes the image a disk that logs, `self.loop`."""
        self.log, self.marks = log, {}
        open(log, "wb").close()
        self.recorder = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "recorder.py"), self.fuse, image, log])
        while not os.path.exists(os.path.join(self.fuse, "disk")):
            if self.recorder.poll() is not None:
                raise RuntimeError("the disk that logs does not start")
            time.sleep(0.005)
        self.loop = run_tool("losetup", "--find", "--show", os.path.join(self.fuse, "disk"))

    def disconnect(self):
        run_tool("losetup", "--detach", self.loop)
        for attempt in range(100):
            # The loop device lets go of the file a moment later.
            if subprocess.run(["umount", self.fuse], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.02)
        self.recorder.wait(10)
        self.loop = self.recorder = None

    def mark(self, name):
        """Notes how much the disk has got by now."""
        self.marks[name] = os.stat(self.log).st_size


class Writer(threading.Thread):
    """What else happens on a disk: other programs, and the kernel, which writes what is old enough.

    `commits` are syncs of another file: with its journal a file system then writes the names and sizes of all files, before the
    content of some. `writeback` writes everything.
    """

    def __init__(self, machine, kind, random):
        super().__init__()
        self.kind, self.random = kind, random
        self.file = os.open(os.path.join(machine.root, "other"), os.O_RDWR | os.O_CREAT)
        self.ended = threading.Event()

    def __enter__(self):
        if self.kind:
            self.start()

    def run(self):
        while not self.ended.wait(self.random.random() * 0.01):
            if self.kind == "commits":
                os.write(self.file, b"x")
                os.fsync(self.file)
            else:
                libc.syncfs(self.file)

    def __exit__(self, *_):
        self.ended.set()
        if self.kind:
            self.join()
        os.close(self.file)
