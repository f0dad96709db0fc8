"""What the servers of the tests have in common: they live as long as the test process, in a private directory."""

import ctypes
import itertools
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import time


def with_parent():
    """Ends this process when its parent ends, even when that is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


# Other ports for each process: two servers that start at the same time do not choose the same one.
PORTS = itertools.count(os.getpid() * 8)


def free_port():
    """Below the ports that the system gives to clients: one of those could take it while its server is restarted."""
    while True:
        port = 10_000 + next(PORTS) % 22_768
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def wait_for_port(port, processes):
    for _ in range(3000):
        for process in processes:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                raise SystemExit(f"a server ended with status {status} before it was ready")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit(f"no server on port {port}")


def kill(process):
    """Kills a process with all that it has started; a server's sessions outlive it otherwise."""
    with open(f"/proc/{process}/task/{process}/children") as file:
        children = file.read().split()
    os.kill(process, signal.SIGKILL)
    for child in children:
        try:
            kill(int(child))
        except (FileNotFoundError, ProcessLookupError):
            pass


def run(start, front=None):
    """Calls `start(directory)`, which returns child processes and lines to print; ends with standard input.

    SIGUSR1 kills the last of the processes, to which clients speak, with all connections. `front(directory)` starts it again
    a moment later, until it answers at the port at the end of the first line; why it did not is on standard error.
    """
    directory = tempfile.mkdtemp(prefix="drydock-server-")
    processes = []

    def end():
        try:
            kill(processes[-1])
            os.waitpid(processes[-1], 0)
        except (FileNotFoundError, ProcessLookupError, ChildProcessError) as error:
            print(f"the server had ended: {error}", file=sys.stderr, flush=True)

    def restart(*_):
        answers = False
        while not answers:
            end()
            time.sleep(0.1)
            processes[-1] = front(directory)
            try:
                wait_for_port(int(re.search(r"\d+$", lines[0]).group()), processes[-1:])
                answers = True
            except SystemExit as error:
                print(error, file=sys.stderr, flush=True)
        print("restarted", flush=True)

    try:
        processes, lines = start(directory)
        if front:
            signal.signal(signal.SIGUSR1, restart)
        for line in lines:
            print(line, flush=True)
        print("ready", flush=True)
        sys.stdin.buffer.read()
    finally:
        for process in processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        shutil.rmtree(directory, ignore_errors=True)
