#!/usr/bin/env python3
"""An app that writes to its container, and ends without closing its database, as apps do.

usage: app.py create CONTAINER | edit CONTAINER NUMBER | overwrite CONTAINER | group DIRECTORY
"""
import os
import plistlib
import random
import sqlite3
import sys


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def settings(path, values):
    write(path, plistlib.dumps(values, fmt=plistlib.FMT_BINARY))


def open_database(root):
    database = sqlite3.connect(os.path.join(root, "Documents/notes.sqlite"))
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA wal_autocheckpoint = 0")
    database.execute("PRAGMA synchronous = FULL")
    return database


def add_tasks(database, titles):
    database.executemany("INSERT INTO task (title) VALUES (?)", [(title,) for title in titles])
    database.commit()


def create(root):
    data = random.Random(1)
    settings(
        os.path.join(root, "Library/Preferences/com.example.notes.plist"),
        {"dark_mode": True, "user_name": "Ada", "auth_token": "the-secret-token", "dataSchemaVersion": 0})
    for number in range(6):
        write(os.path.join(root, f"Documents/Photos/IMG_{number}.jpg"), data.randbytes(20_000 + 3_000 * number))
    # Larger than what a snapshot stores by its blocks.
    write(os.path.join(root, "Documents/large.bin"), data.randbytes(1_300_000))
    for number in range(12):
        write(os.path.join(root, f"Documents/Texts/{number}.txt"), f"Text {number}\n".encode() * (20 * number))
    write(os.path.join(root, "Documents/fixed.txt"), b"old " * 1000)
    os.setxattr(os.path.join(root, "Documents/fixed.txt"), "user.colour", b"red")
    os.symlink("Texts/3.txt", os.path.join(root, "Documents/link"))
    os.makedirs(os.path.join(root, "Library/Empty"), mode=0o700)
    # A database in a rollback mode.
    path = os.path.join(root, "Library/Application Support/index.sqlite")
    os.makedirs(os.path.dirname(path))
    index = sqlite3.connect(path)
    index.execute("CREATE TABLE word (word TEXT, place INTEGER)")
    index.executemany("INSERT INTO word VALUES (?, ?)", [(f"word {number}", number) for number in range(500)])
    index.commit()
    # The log has a new transaction at its beginning, and old ones behind it: the next commits do not change its size.
    database = open_database(root)
    database.execute("CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT NOT NULL)")
    add_tasks(database, [f"task {number} {'.' * 300}" for number in range(300)])
    database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    add_tasks(database, ["the last one"])
    os._exit(0)


def edit(root, number):
    """What an app does between two snapshots."""
    data = random.Random(number)
    write(os.path.join(root, f"Documents/Texts/{number}.txt"), f"Edited {number}\n".encode() * 50)
    write(os.path.join(root, f"Documents/Photos/NEW_{number}.jpg"), data.randbytes(30_000))
    photo = os.path.join(root, f"Documents/Photos/IMG_{number % 6}.jpg")
    if os.path.exists(photo):
        os.remove(photo)
    with open(os.path.join(root, "Documents/large.bin"), "r+b") as file:
        file.seek(100_000 * number)
        file.write(data.randbytes(5000))
    add_tasks(open_database(root), [f"edited {number} {text}" for text in range(20)])
    os._exit(0)


def overwrite(root):
    """New content where there was old: it is on the disk when this ends, and the times of the files need not be."""
    for name, content, offset in (("fixed.txt", b"new " * 1000, 0), ("large.bin", b"new " * 1000, 700_000)):
        file = os.open(os.path.join(root, "Documents", name), os.O_WRONLY)
        os.pwrite(file, content, offset)
        os.fdatasync(file)
    add_tasks(open_database(root), ["a new one"])
    os._exit(0)


def group(root):
    """The directory that the app shares with its widget."""
    settings(os.path.join(root, "Library/Preferences/group.notes.plist"), {"theme": "none"})
    write(os.path.join(root, "shared.txt"), b"shared\n" * 100)


if __name__ == "__main__":
    os.umask(0o022)
    command, root = sys.argv[1:3]
    {"create": create, "edit": edit, "overwrite": overwrite, "group": group}[command](root, *map(int, sys.argv[3:]))
