#!/usr/bin/env python3
"""Writes stores as Core Data lays them out in SQLite, for the tests of Drydock.

An independent writer: it shares no code with Drydock, and uses only Python's sqlite3, plistlib and zlib. The layout is
what public stores and articles show: https://fatbobman.com/en/posts/tables_and_fields_of_coredata/, and dumps of stores of
note apps. Names and values are made up. Run it in its directory: python3 make_stores.py
"""

import hashlib
import os
import plistlib
import shutil
import sqlite3
import zlib

# The SQLite types of attributes.
TYPES = {
    "integer": "INTEGER", "boolean": "INTEGER", "double": "FLOAT", "decimal": "DECIMAL", "date": "TIMESTAMP",
    "string": "VARCHAR", "uri": "VARCHAR", "uuid": "BLOB", "binary": "BLOB", "transformable": "BLOB",
}


def hash_of(entity, revision):
    return hashlib.sha256(f"{entity} {revision}".encode()).digest()


class Model:
    """Entities: {name: (parent or None, revision, {attribute: type}, {to-one relationship: destination})};
    joins: [(entity, relationship, inverse entity, inverse relationship, ordered)]."""

    def __init__(self, name, entities, joins=(), ordered=()):
        self.name, self.entities, self.joins, self.ordered = name, entities, joins, ordered
        self.numbers = {}
        for root in sorted(e for e in entities if entities[e][0] is None):
            self.number(root)
        self.hashes = {e: hash_of(e, entities[e][1]) for e in entities}

    def number(self, entity):
        """Depth first, by name: an entity comes before those that inherit from it."""
        self.numbers[entity] = len(self.numbers) + 1
        for child in sorted(e for e in self.entities if self.entities[e][0] == entity):
            self.number(child)

    def root(self, entity):
        while self.entities[entity][0]:
            entity = self.entities[entity][0]
        return entity

    def family(self, root):
        return [e for e in self.entities if self.root(e) == root]

    def create(self, db):
        for root in sorted({self.root(e) for e in self.entities}):
            attributes, relations = {}, {}
            for entity in self.family(root):
                attributes.update(self.entities[entity][2])
                relations.update(self.entities[entity][3])
            columns = ["Z_PK INTEGER PRIMARY KEY", "Z_ENT INTEGER", "Z_OPT INTEGER"]
            order = ["INTEGER", "", "DECIMAL", "FLOAT", "TIMESTAMP", "VARCHAR", "BLOB"]
            for kind in order:
                if kind == "":
                    for relation in sorted(relations):
                        columns.append(f"Z{relation.upper()} INTEGER")
                        if (root, relation) in self.ordered:
                            columns.append(f"Z_FOK_{relation.upper()} INTEGER")
                columns += [
                    f"Z{name.upper()} {kind}" for name in sorted(attributes) if kind and TYPES[attributes[name]] == kind]
            table = "Z" + root.upper()
            db.execute(f"CREATE TABLE {table} ( {', '.join(columns)} )")
            for relation in sorted(relations):
                db.execute(f"CREATE INDEX {table}_Z{relation.upper()}_INDEX ON {table} (Z{relation.upper()})")
            if len(self.family(root)) > 1:
                db.execute(f"CREATE INDEX {table}_Z_ENT_INDEX ON {table} (Z_ENT)")
        # Of a many-to-many relationship and its inverse, the one whose name is last gives the table its name.
        for entity, relation, other, inverse, ordered in self.joins:
            first = f"Z_{self.numbers[entity]}{inverse.upper()}"
            second = f"Z_{self.numbers[other]}{relation.upper()}"
            fok = f", Z_FOK_{self.numbers[other]}{relation.upper()} INTEGER" if ordered else ""
            table = f"Z_{self.numbers[entity]}{relation.upper()}"
            db.execute(
                f"CREATE TABLE {table} ( {first} INTEGER, {second} INTEGER{fok}, PRIMARY KEY ({first}, {second}) )")
            db.execute(f"CREATE INDEX {table}_{second}_INDEX ON {table} ({second}, {first})")
        db.execute(
            "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)")
        db.execute("CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)")
        db.execute("CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)")
        for entity, number in self.numbers.items():
            parent = self.entities[entity][0]
            db.execute(
                "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, ?, 0)",
                (number, entity, self.numbers[parent] if parent else 0))

    def insert(self, db, entity, key, **values):
        root = self.root(entity)
        names = ["Z_PK", "Z_ENT", "Z_OPT"] + list(values)
        marks = ", ".join("?" * len(names))
        db.execute(
            f"INSERT INTO Z{root.upper()} ({', '.join(names)}) VALUES ({marks})",
            [key, self.numbers[entity], 1] + list(values.values()))
        db.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = max(Z_MAX, ?) WHERE Z_NAME = ?", (key, root))

    def finish(self, db, extra, identifiers):
        digest = b"".join(n.encode() + self.hashes[n] for n in sorted(self.hashes))
        checksum = b"".join(self.hashes[n] for n in sorted(self.hashes))
        import base64
        metadata = {
            "NSStoreType": "SQLite", "NSPersistenceFrameworkVersion": 1414, "NSStoreModelVersionHashesVersion": 3,
            "NSStoreModelVersionHashes": self.hashes, "NSStoreModelVersionIdentifiers": identifiers,
            "NSStoreModelVersionHashesDigest": base64.b64encode(hashlib.sha512(digest).digest()).decode(),
            "NSStoreModelVersionChecksumKey": base64.b64encode(hashlib.sha256(checksum).digest()).decode(),
            "_NSAutoVacuumLevel": "2",
        }
        metadata.update(extra)
        plist = plistlib.dumps(metadata, fmt=plistlib.FMT_BINARY)
        db.execute(
            "INSERT INTO Z_METADATA VALUES (1, 'CE102358-7CB2-4928-BCCA-3FFA4F2D446C', ?)", (plist,))
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        db.execute(
            "INSERT INTO Z_MODELCACHE VALUES (?)",
            (packer.compress(("a copy of " + self.name).encode()) + packer.flush(),))


def history(db, numbers, changes):
    """Persistent history: which object each transaction changed."""
    db.execute(
        "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, "
        "ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB)")
    db.execute(
        "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHORTS INTEGER, "
        "ZTIMESTAMP FLOAT, ZQUERYGEN BLOB)")
    db.execute(
        "CREATE TABLE ATRANSACTIONSTRING (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR)")
    db.execute("CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID)")
    db.execute("INSERT INTO ATRANSACTION VALUES (1, 16002, 1, NULL, 782462928.5, NULL)")
    for key, (entity, object_key) in enumerate(changes, 1):
        db.execute("INSERT INTO ACHANGE VALUES (?, 16001, 1, 0, ?, ?, 1, NULL)", (key, numbers[entity], object_key))
    for number, name, largest in [
        (16001, "CHANGE", len(changes)), (16002, "TRANSACTION", 1), (16003, "TRANSACTIONSTRING", 0)]:
        db.execute("INSERT INTO Z_PRIMARYKEY VALUES (?, ?, 0, ?)", (number, name, largest))


def cloudkit(db, numbers, records):
    db.execute(
        "CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
        "ZENTITYID INTEGER, ZENTITYPK INTEGER, ZCKRECORDNAME VARCHAR)")
    for key, (entity, object_key) in enumerate(records, 1):
        db.execute(
            "INSERT INTO ANSCKRECORDMETADATA VALUES (?, 14001, 1, ?, ?, ?)",
            (key, numbers[entity], object_key, f"record {key}"))
    db.execute("INSERT INTO Z_PRIMARYKEY VALUES (14001, 'NSCKRecordMetadata', 0, ?)", (len(records),))


NOTE = {"title": "string", "body": "string", "created": "date", "pinned": "boolean", "rating": "integer"}

FIRST = Model("Notes", {
    "Attachment": (None, 1, {"name": "string", "data": "binary"}, {"note": "Note"}),
    "Folder": (None, 1, {"name": "string", "sort": "integer"}, {}),
    "Note": (None, 1, NOTE, {"folder": "Folder"}),
    "Photo": ("Attachment", 1, {"width": "integer"}, {}),
    "Sketch": ("Attachment", 1, {"strokes": "binary"}, {}),
    "Tag": (None, 1, {"name": "string"}, {}),
}, joins=[("Note", "tags", "Tag", "notes", False)], ordered=[("Note", "folder")])

# What the tests make of it: Note.pinned is renamed, Note.language is new, Tag is named Label, and Comment is new. The numbers
# of all entities from Comment on change.
SECOND = Model("Notes 2", {
    "Attachment": (None, 1, {"name": "string", "data": "binary"}, {"note": "Note"}),
    "Comment": (None, 1, {"text": "string", "written": "date"}, {}),
    "Folder": (None, 1, {"name": "string", "sort": "integer"}, {}),
    "Label": (None, 2, {"name": "string"}, {}),
    "Note": (
        None, 2, {"title": "string", "body": "string", "created": "date", "favourite": "boolean", "rating": "integer",
                  "language": "string"}, {"folder": "Folder"}),
    "Photo": ("Attachment", 1, {"width": "integer"}, {}),
    "Sketch": ("Attachment", 1, {"strokes": "binary"}, {}),
}, joins=[("Note", "tags", "Label", "notes", False)], ordered=[("Note", "folder")])

REFERENCE = "5D1B0F6A-6C1E-4E0B-9A57-0C1F5B1C2D3E"


def fill(model, db, label, pinned, join):
    """The same rows in either model."""
    model.insert(db, "Folder", 1, ZNAME="Inbox", ZSORT=1)
    model.insert(db, "Folder", 2, ZNAME="Archive", ZSORT=2)
    language = {"ZLANGUAGE": "en"} if "language" in model.entities["Note"][2] else {}
    for key in range(1, 6):
        values = {
            "ZTITLE": f"Note {key}", "ZBODY": None if key == 4 else "…" * key, "ZCREATED": 700000000.5 + key,
            pinned: key % 2, "ZRATING": key, "ZFOLDER": 1 + key % 2, "Z_FOK_FOLDER": 1024 * key}
        model.insert(db, "Note", key, **values, **language)
    model.insert(db, "Attachment", 1, ZNAME="a.txt", ZDATA=b"\x01plain", ZNOTE=1)
    model.insert(db, "Photo", 2, ZNAME="b.jpg", ZDATA=b"\x02" + REFERENCE.encode() + b"\0", ZNOTE=2, ZWIDTH=640)
    model.insert(db, "Sketch", 3, ZNAME="c", ZSTROKES=b"\x01\x00", ZNOTE=3)
    for key, name in enumerate(["home", "work", "later"], 1):
        model.insert(db, label, key, ZNAME=name)
    table, note_column, label_column = join(model)
    for note, tag in [(1, 1), (1, 2), (3, 2), (5, 3)]:
        db.execute(f"INSERT INTO {table} ({note_column}, {label_column}) VALUES (?, ?)", (note, tag))
    history(db, model.numbers, [("Folder", 1), ("Note", 1), ("Photo", 2), (label, 3)])


def join_first(model):
    note, tag = model.numbers["Note"], model.numbers["Tag"]
    return f"Z_{note}TAGS", f"Z_{note}NOTES", f"Z_{tag}TAGS"


def join_second(model):
    note, label = model.numbers["Note"], model.numbers["Label"]
    return f"Z_{note}TAGS", f"Z_{note}NOTES", f"Z_{label}TAGS"


def store(path, model, write, extra=None, identifiers=()):
    for suffix in ["", "-wal", "-shm"]:
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 1024")
    model.create(db)
    write(db)
    model.finish(db, extra or {}, list(identifiers))
    db.commit()
    db.execute("VACUUM")
    db.close()


def external(path, contents):
    directory = os.path.join(
        os.path.dirname(path), "." + os.path.basename(path).rsplit(".", 1)[0] + "_SUPPORT", "_EXTERNAL_DATA")
    shutil.rmtree(os.path.dirname(directory), ignore_errors=True)
    os.makedirs(directory)
    for name, data in contents.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)


APP = {"com.example.notes.lastSync": "2026-11-20", "accessToken": "8f14e45fceea167a5a36dedd4bea2543"}

os.chdir(os.path.dirname(os.path.abspath(__file__)))
store(
    "Notes.sqlite", FIRST, lambda db: fill(FIRST, db, "Tag", "ZPINNED", join_first), APP, ["Notes 3"])
external("Notes.sqlite", {REFERENCE: b"a large photo " * 20})


store(
    "Notes2.sqlite", SECOND, lambda db: fill(SECOND, db, "Label", "ZFAVOURITE", join_second), APP, ["Notes 3"])


SWIFT = Model("Trips", {"Trip": (None, 1, {"name": "string", "start": "date"}, {})})


def trips(db):
    SWIFT.insert(db, "Trip", 1, ZNAME="Rome", ZSTART=1.5)
    SWIFT.insert(db, "Trip", 2, ZNAME="Oslo", ZSTART=2.5)
    history(db, SWIFT.numbers, [("Trip", 1), ("Trip", 2)])
    cloudkit(db, SWIFT.numbers, [("Trip", 1)])


store("default.store", SWIFT, trips)

os.makedirs("Notes.momd", exist_ok=True)
with open("Notes.momd/VersionInfo.plist", "wb") as file:
    plistlib.dump({
        "NSManagedObjectModel_CurrentVersionName": "Notes 2",
        "NSManagedObjectModel_VersionHashes": {m.name: m.hashes for m in [FIRST, SECOND]},
    }, file)
