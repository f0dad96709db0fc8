#!/usr/bin/env python3
"""Writes exported schemas in the form of Room 2.6 (kotlinx-serialization leaves defaults out since 2.7: version 4), and databases
of these versions as an app has them, with Python's own SQLite module. All values are made up.

    make_rooms.py DIRECTORY
"""
import hashlib
import json
import os
import sqlite3
import sys

target = sys.argv[1]
SYNC = "CREATE TRIGGER IF NOT EXISTS room_fts_content_sync_note_fts_"


def field(name, affinity, not_null=False, default=None):
    result = {"fieldPath": name, "columnName": name, "affinity": affinity, "notNull": not_null}
    return result | ({} if default is None else {"defaultValue": default})


def table(name, fields, key, auto=False, indices=(), keys=()):
    parts = []
    for f in fields:
        one = auto and [f["columnName"]] == key
        parts.append(
            f"`{f['columnName']}` {f['affinity']}"
            + (" PRIMARY KEY AUTOINCREMENT NOT NULL" if one else " NOT NULL" if f["notNull"] else "")
            + (f" DEFAULT {f['defaultValue']}" if "defaultValue" in f else ""))
    if not auto:
        parts.append("PRIMARY KEY(" + ", ".join(f"`{k}`" for k in key) + ")")
    for k in keys:
        parts.append(
            f"FOREIGN KEY(`{k['columns'][0]}`) REFERENCES `{k['table']}`(`{k['referencedColumns'][0]}`) "
            f"ON UPDATE {k['onUpdate']} ON DELETE {k['onDelete']} ")
    return {
        "tableName": name,
        "createSql": "CREATE TABLE IF NOT EXISTS `${TABLE_NAME}` (" + ", ".join(parts) + ")",
        "fields": fields,
        "primaryKey": {"autoGenerate": auto, "columnNames": key},
        "indices": list(indices),
        "foreignKeys": list(keys),
    }


def index(table_name, columns, unique=False):
    name = f"index_{table_name}_" + "_".join(columns)
    listed = ", ".join(f"`{c}`" for c in columns)
    return {
        "name": name, "unique": unique, "columnNames": columns, "orders": [],
        "createSql": f"CREATE {'UNIQUE ' if unique else ''}INDEX IF NOT EXISTS `{name}` ON `${{TABLE_NAME}}` ({listed})",
    }


def full_text(columns):
    names = ", ".join(f"`{c}`" for c in columns)
    new = ", ".join(f"NEW.`{c}`" for c in columns)
    insert = f"INSERT INTO `note_fts`(`docid`, {names}) VALUES (NEW.`rowid`, {new}); END"
    delete = "DELETE FROM `note_fts` WHERE `docid`=OLD.`rowid`; END"
    return {
        "ftsVersion": "FTS4",
        "ftsOptions": {
            "tokenizer": "unicode61", "tokenizerArgs": [], "contentTable": "note", "languageIdColumnName": "",
            "matchInfo": "FTS4", "notIndexedColumns": [], "prefixSizes": [], "preferredOrder": "ASC"},
        "contentSyncTriggers": [
            SYNC + f"BEFORE_UPDATE BEFORE UPDATE ON `note` BEGIN {delete}",
            SYNC + f"BEFORE_DELETE BEFORE DELETE ON `note` BEGIN {delete}",
            SYNC + f"AFTER_UPDATE AFTER UPDATE ON `note` BEGIN {insert}",
            SYNC + f"AFTER_INSERT AFTER INSERT ON `note` BEGIN {insert}",
        ],
        "tableName": "note_fts",
        "createSql": "CREATE VIRTUAL TABLE IF NOT EXISTS `${TABLE_NAME}` USING FTS4("
        + ", ".join(f"`{c}` TEXT" for c in columns) + ", tokenize=unicode61, content=`note`)",
        "fields": [field(c, "TEXT") for c in columns],
        "primaryKey": {"autoGenerate": False, "columnNames": ["rowid"]},
        "indices": [], "foreignKeys": [],
    }


def view(query):
    return {"viewName": "titles", "createSql": "CREATE VIEW `${VIEW_NAME}` AS " + query}


def key(column, other, on_delete):
    return {"table": other, "onDelete": on_delete, "onUpdate": "NO ACTION", "columns": [column],
            "referencedColumns": ["id"]}


ID = field("id", "INTEGER", True)
folder = lambda name: table(name, [field("id", "TEXT", True), field("name", "TEXT", True)], ["id"])
tag = table("tag", [field("id", "INTEGER", True), field("label", "TEXT", True)], ["id"],
            indices=[index("tag", ["label"], True)])
note = lambda fields, **more: table("note", [ID, field("title", "TEXT", True), *fields], ["id"], True, **more)
pinned, by_title = field("pinned", "INTEGER", True, "0"), index("note", ["title"])
to_notebook = {"indices": [by_title, index("note", ["notebook_id"])], "keys": [key("notebook_id", "notebook", "SET NULL")]}
versions = {
    1: ([note([field("body", "TEXT")], indices=[by_title]), folder("folder"), full_text(["title", "body"])],
        [view("SELECT id, title FROM note")]),
    2: ([note([field("body", "TEXT"), pinned], indices=[by_title]), folder("folder"), tag, full_text(["title", "body"])],
        [view("SELECT id, title FROM note WHERE pinned = 0")]),
    3: ([note([field("text", "TEXT"), pinned, field("notebook_id", "TEXT")], **to_notebook), folder("notebook"), tag,
         full_text(["title", "text"])], [view("SELECT id, title FROM note WHERE pinned = 0")]),
    4: ([note([field("text", "TEXT", True, "''"), pinned, field("notebook_id", "TEXT"), field("score", "REAL")],
              **to_notebook), folder("notebook"), full_text(["title", "text"])], []),
}
rows = {
    1: ["INSERT INTO folder VALUES ('f1', 'Home')",
        "INSERT INTO note (id, title, body) VALUES (1, 'Milk', 'two bottles'), (7, 'Paint', NULL)"],
}


def without_defaults(value):
    """As Room 2.7 writes it: fields with their default are left out."""
    if isinstance(value, list):
        return [without_defaults(v) for v in value]
    if isinstance(value, dict):
        return {k: without_defaults(v) for k, v in value.items()
                if not (v is False or (k in ("indices", "foreignKeys", "views", "orders") and v == []))}
    return value


os.makedirs(target + "/schemas", exist_ok=True)
for version, (entities, views) in versions.items():
    digest = hashlib.md5(json.dumps([entities, views]).encode()).hexdigest()
    setup = ["CREATE TABLE IF NOT EXISTS room_master_table (id INTEGER PRIMARY KEY,identity_hash TEXT)",
             f"INSERT OR REPLACE INTO room_master_table (id,identity_hash) VALUES(42, '{digest}')"]
    database = {"version": version, "identityHash": digest, "entities": entities, "views": views, "setupQueries": setup}
    document = {"formatVersion": 1, "database": without_defaults(database) if version == 4 else database}
    with open(f"{target}/schemas/{version}.json", "w") as file:
        file.write(json.dumps(document, indent=2))
    if version not in rows and version != 4:
        continue
    path = f"{target}/notes-{version}.db"
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE android_metadata (locale TEXT)")
    for entity in entities:
        db.execute(entity["createSql"].replace("${TABLE_NAME}", entity["tableName"]))
        for one in entity["indices"]:
            db.execute(one["createSql"].replace("${TABLE_NAME}", entity["tableName"]))
        for trigger in entity.get("contentSyncTriggers", []):
            db.execute(trigger)
    for one in views:
        db.execute(one["createSql"].replace("${VIEW_NAME}", one["viewName"]))
    for statement in setup + rows.get(version, []):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()
