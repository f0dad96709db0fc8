"""Runs an OpenStack Swift with S3's interface on loopback: one replica, in a private directory.

Prints `endpoint URL`, then `ready`; ends when standard input does. SIGUSR1 kills the proxy server, to which clients
speak, and starts it again. Nothing in /etc is read or written.
"""

import os
import pwd

import lifetime

COMMON = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {directory}
devices = {directory}/devices
user = {user}
mount_check = false
disable_fallocate = true
workers = 0
log_level = ERROR
"""

STORAGE = """
[pipeline:main]
pipeline = {kind}-server

[app:{kind}-server]
use = egg:swift#{kind}
"""

PROXY = """
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats s3api tempauth copy slo dlo versioned_writes proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true

[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcache}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
max_bucket_listing = 100
[filter:tempauth]
use = egg:swift#tempauth
user_drydock_tests = testing .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:versioned_writes]
use = egg:swift#versioned_writes
"""

SWIFT = """[swift-hash]
swift_hash_path_suffix = tests
swift_hash_path_prefix = tests

[storage-policy:0]
name = only
default = yes
"""


def serve(directory, kind):
    process = os.fork()
    if process:
        return process
    lifetime.with_parent()
    # Standard input belongs to the process that waits for its end.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(f"{directory}/{kind}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        from swift.common import utils

        utils.set_swift_dir(directory)
        from swift.common.storage_policy import reload_storage_policies

        reload_storage_policies()
        from swift.common.wsgi import run_wsgi

        run_wsgi(f"{directory}/{kind}.conf", f"{kind}-server")
    finally:
        os._exit(1)


def serve_cache(port, user):
    """The account server's accounts are made through it."""
    process = os.fork()
    if process:
        return process
    lifetime.with_parent()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execvp("memcached", ["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-u", user, "-m", "16"])


def start(directory):
    from swift.common.ring.builder import RingBuilder

    memcache = lifetime.free_port()
    ports = {kind: lifetime.free_port() for kind in ["account", "container", "object", "proxy"]}
    user = pwd.getpwuid(os.getuid()).pw_name
    os.makedirs(f"{directory}/devices/disk")
    with open(f"{directory}/swift.conf", "w") as file:
        file.write(SWIFT)
    for kind, port in ports.items():
        with open(f"{directory}/{kind}.conf", "w") as file:
            text = COMMON + (PROXY if kind == "proxy" else STORAGE)
            file.write(text.format(port=port, directory=directory, user=user, kind=kind, memcache=memcache))
        if kind != "proxy":
            builder = RingBuilder(4, 1, 0)
            builder.add_dev(
                dict(id=0, region=1, zone=1, ip="127.0.0.1", port=port, replication_ip="127.0.0.1",
                     replication_port=port, device="disk", weight=1.0))
            builder.rebalance()
            builder.get_ring().save(f"{directory}/{kind}.ring.gz")
    processes = [serve_cache(memcache, user)] + [serve(directory, kind) for kind in ports]
    try:
        for port in [memcache, *ports.values()]:
            lifetime.wait_for_port(port, processes)
    except SystemExit:
        for kind in ports:
            if os.path.exists(f"{directory}/{kind}.log"):
                os.write(2, open(f"{directory}/{kind}.log", "rb").read())
        raise
    return processes, [f"endpoint http://127.0.0.1:{ports['proxy']}"]


lifetime.run(start, lambda directory: serve(directory, "proxy"))
