"""Runs moto's S3 on loopback, which knows conditional writes. It verifies no signature.

It is installed from PyPI into the build directory, once. Prints `endpoint URL` and `ready`; ends when standard input does.
"""

import fcntl
import os
import subprocess
import venv

import lifetime

VERSION = "5.1.4"
BUILD = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, ".build")


def install():
    """The directory of the environment; processes that need it at the same time wait for the one that makes it."""
    home = os.path.join(os.path.realpath(BUILD), f"moto-{VERSION}")
    os.makedirs(home, exist_ok=True)
    with open(f"{home}/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(f"{home}/complete"):
            venv.create(home, clear=False, with_pip=True)
            # What S3 needs: all that the server may need takes three times as long. Python compiles what it imports.
            subprocess.run([f"{home}/bin/pip", "install", "--quiet", "--no-compile",
                            f"moto[s3]=={VERSION}", "flask", "flask-cors"],
                           check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            open(f"{home}/complete", "w").close()
    return home


def start(directory):
    home = install()
    port = lifetime.free_port()
    process = os.fork()
    if not process:
        lifetime.with_parent()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open(f"{directory}/log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.execv(f"{home}/bin/moto_server", ["moto_server", "-H", "127.0.0.1", "-p", str(port)])
    lifetime.wait_for_port(port, [process])
    return [process], [f"endpoint http://127.0.0.1:{port}"]


lifetime.run(start)
