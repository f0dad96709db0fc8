#!/usr/bin/env python3
"""Writes databases of old versions, as `generateSqlDelightSchema` does, and as users have them: make_databases.py DIRECTORY"""
import os
import sqlite3
import sys

target = sys.argv[1]
FIRST = "CREATE TABLE book (id INTEGER NOT NULL PRIMARY KEY, title TEXT NOT NULL)"
SECOND = ["ALTER TABLE book ADD COLUMN done INTEGER NOT NULL DEFAULT 0", "CREATE INDEX book_title ON book(title)"]
databases = {
    "sources/1.db": [FIRST, "PRAGMA user_version = 1"],
    "sources/2.db": [FIRST, *SECOND, "PRAGMA user_version = 2"],
    # What only users of an early build have: a trigger and a column.
    "drifted.db": [
        FIRST, "ALTER TABLE book ADD COLUMN shelf TEXT",
        "CREATE TRIGGER book_log AFTER INSERT ON book BEGIN SELECT 1; END",
        "INSERT INTO book (id, title) VALUES (1, 'One')", "PRAGMA user_version = 1"],
}
for name, statements in databases.items():
    path = target + "/" + name
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 1024")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()
