"""Runs an OpenSSH server on loopback with its own keys, in a private directory.

With the argument `read-only` or `full` it refuses every write, or files of more than 64 KiB; with `small-disk` its files are on a
disk of 1 MiB that only it sees. Prints `port`, `directory`
(for files; `key` and `known_hosts` are beside it) and `ready`; ends when standard input does. SIGUSR1 kills the server with
its sessions, and starts it again.
"""

import ctypes
import os
import subprocess
import sys

import lifetime

# Below the second level, bash runs the user's `.bashrc` for each connection, which may take longer than a request.
CONFIGURATION = """
SetEnv SHLVL=2
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/key.pub
PidFile none
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
MaxStartups 200
MaxSessions 50
LogLevel VERBOSE
Subsystem sftp {directory}/server
"""

# A file that may not grow is the same error to the client as a disk without space.
PROGRAMS = {
    "": "exec /usr/lib/openssh/sftp-server",
    "read-only": "exec /usr/lib/openssh/sftp-server -R",
    "small-disk": "exec /usr/lib/openssh/sftp-server",
    "full": "trap '' XFSZ; ulimit -f 128; exec /usr/lib/openssh/sftp-server",
}


def make_key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", path], check=True,
                   stdin=subprocess.DEVNULL)


def start(directory):
    port = lifetime.free_port()
    for name in ["host_key", "key", "other_key"]:
        make_key(f"{directory}/{name}")
    os.mkdir(f"{directory}/files")
    if sys.argv[1:] == ["small-disk"]:
        libc = ctypes.CDLL(None, use_errno=True)
        new_namespace, private_all = 0x20000, 0x4000 | 0x40000
        for failed in [libc.unshare(new_namespace), libc.mount(b"none", b"/", None, private_all, None),
                       libc.mount(b"tmpfs", f"{directory}/files".encode(), b"tmpfs", 0, b"size=1m")]:
            if failed:
                raise OSError(ctypes.get_errno(), "mount")
    with open(f"{directory}/server", "w") as file:
        file.write("#!/bin/sh\n" + PROGRAMS[sys.argv[1] if len(sys.argv) > 1 else ""] + "\n")
    os.chmod(f"{directory}/server", 0o755)
    with open(f"{directory}/host_key.pub") as file:
        host_key = file.read()
    with open(f"{directory}/known_hosts", "w") as file:
        file.write(f"[127.0.0.1]:{port} {host_key}")
    with open(f"{directory}/configuration", "w") as file:
        file.write(CONFIGURATION.format(port=port, directory=directory))
    if os.getuid() == 0:
        # The directory that sshd changes to before a login; a service makes it at its start.
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    process = serve(directory)
    lifetime.wait_for_port(port, [process])
    return [process], [f"port {port}", f"directory {directory}"]


def serve(directory):
    process = os.fork()
    if not process:
        lifetime.with_parent()
        # Listings have times of the server's zone: 11 hours behind.
        os.environ["TZ"] = "XXX11"
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv("/usr/sbin/sshd", ["/usr/sbin/sshd", "-D", "-f", f"{directory}/configuration", "-E", f"{directory}/log"])
    return process


lifetime.run(start, serve)
