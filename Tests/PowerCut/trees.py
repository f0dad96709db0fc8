"""The content of a container, as a value that is compared and stored as JSON."""
import hashlib
import os
import shutil
import sqlite3
import stat
import tempfile

LOGS = ("-wal", "-shm", "-journal")
# Drydock's own state, in a container that is changed in place.
STATE = ".drydock-state"


def listing(root):
    """Each path with its kind, mode, time, attributes and content; a database by its rows. None if there is no directory."""
    if not os.path.isdir(root):
        return None
    found = {".": entry(root, is_root=True)}
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name != STATE]
        names = set(directories + files)
        for name in names:
            path = os.path.join(directory, name)
            # A log is a part of its database.
            if any(name.endswith(log) and name[: -len(log)] in names for log in LOGS):
                continue
            found[os.path.relpath(path, root)] = entry(path)
    return found


def entry(path, is_root=False):
    status = os.lstat(path)
    attributes = {
        name: os.getxattr(path, name, follow_symlinks=False).hex()
        for name in sorted(os.listxattr(path, follow_symlinks=False)) if name.startswith("user.")}
    values = {"mode": f"{stat.S_IMODE(status.st_mode):o}", "attributes": attributes}
    # The guide "Transactions" says that a kill in the first moment of a journaled replacement leaves the root with a new time.
    if not is_root:
        values["time"] = status.st_mtime_ns
    if stat.S_ISDIR(status.st_mode):
        return {"kind": "directory", **values}
    if stat.S_ISLNK(status.st_mode):
        return {"kind": "link", "target": os.readlink(path), **values}
    with open(path, "rb") as file:
        content = file.read()
    if content.startswith(b"SQLite format 3\0"):
        # An app that opens a database may move its time.
        del values["time"]
        return {"kind": "database", "tables": tables(path), **values}
    return {"kind": "file", "size": len(content), "hash": hashlib.sha256(content).hexdigest(), **values}


def tables(path):
    """The number of rows and a hash of each table. A copy is opened: SQLite would change the log of the original."""
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, "copy")
        for suffix in ("",) + LOGS[::2]:
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, copy + suffix)
        database = sqlite3.connect(copy)
        try:
            database.text_factory = bytes
            check = database.execute("PRAGMA integrity_check").fetchone()[0]
            found = {"check": check.decode()}
            schema = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
            for name, sql in schema:
                rows = database.execute(f'SELECT * FROM "{name.decode()}" ORDER BY rowid').fetchall()
                found[name.decode()] = [len(rows), hashlib.sha256(repr((sql, rows)).encode()).hexdigest()]
            return found
        except sqlite3.DatabaseError as error:
            return {"check": str(error)}
        finally:
            database.close()


def differences(now, wanted, limit=6):
    """What differs, in words; empty if nothing does."""
    if now is None or wanted is None:
        return [] if now is wanted else ["there is no container" if now is None else "there is a container"]
    found = []
    for path in sorted(set(now) | set(wanted)):
        if path not in now:
            found.append(f"{path} is missing")
        elif path not in wanted:
            found.append(f"{path} is there")
        elif now[path] != wanted[path]:
            keys = [key for key in {**wanted[path], **now[path]} if now[path].get(key) != wanted[path].get(key)]
            found += [f"{path}: {key} {now[path].get(key)}, not {wanted[path].get(key)}" for key in keys]
    return found[:limit] + ([f"and {len(found) - limit} more"] if len(found) > limit else [])


def content_only(tree):
    """Without what differs when a command runs again: times, and the history of migrations."""
    if tree is None:
        return None
    return {
        path: {key: value for key, value in values.items() if key != "time"}
        for path, values in tree.items() if not path.endswith(".drydock/history.json")}
