"""Makes containers as an attacker's app would leave them, for `containers.py`: databases that are valid or broken, with hostile
journals, logs and schemas, and around them links, FIFOs, sockets, sparse files, odd names, modes and times, and files that
parsers read.

Everything depends on the random numbers that the caller gives, so that a container can be made again.
"""
import io, json, os, plistlib, socket, sqlite3, stat, struct, subprocess, sys, tarfile, zipfile

# `os.makedirs` calls itself for each directory of a deep path.
sys.setrecursionlimit(10000)

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
PAGE_SIZES = [512, 1024, 4096, 4096, 4096, 8192, 65536]
LOCK_BYTE = 0x40000000

# ---- what the hostile names refer to


class Targets:
    """Paths outside of the container, each of which must stay as it is, unopened.

    - paths: absolute names of canaries.
    - directories: those from which a program may look for a relative name.
    """

    def __init__(self, paths, directories):
        self.paths, self.directories = paths, directories

    def name(self, rng, below=None):
        """A name for a canary: absolute, relative to one of the directories, or in an odd spelling."""
        path = rng.choice(self.paths)
        relative = os.path.relpath(path, below or rng.choice(self.directories))
        return rng.choice([
            path, path, path, relative, relative, b"../" * rng.randrange(1, 9) + path[1:], b"/" + path, b"/." + path,
            b"/proc/self/cwd/" + os.path.relpath(path, self.directories[0]), b"/proc/self/root" + path,
            b"file:" + path, b"file://" + path + b"?mode=rwc", path + b"\0" + path])


SYSTEM_FILES = [b"/etc/hostname", b"/etc/shadow", b"/dev/zero", b"/dev/tty", b"/dev/stdin", b"/proc/self/fd/0",
                b"/proc/version", b"/proc/self/mem", b"/", b"/etc", b"/root"]

ODD_NAMES = [b"-rf", b"--help", b"%s%n%d", b"new\nline", b"\xff\xfe\x80", "café".encode(), "cafe\u0301".encode(),
             b"a" * 255, " ".encode(), b"\x1b[31mred", "\u202egnp.exe".encode(), b"a:b", b"a\\b", b"...", b"*", b"$(true)",
             b"file:kept?mode=rwc", b":memory:", b"x.db?vfs=unix-none", b"it's", b'"quoted"', b"tab\there", b"CON",
             "\u0430pp.sqlite".encode(), b"x.sqlite-journal-journal", b"-wal", b"-journal", b"x.sqlite-mj00000000",
             b"\x7f\x01", "a\u0085b".encode(), b".drydock", b".drydock-0123456789abcdef", b"._x.sqlite", b"__MACOSX", b".DS_Store"]


def varied(rng, data, most=8):
    """The data, sometimes with changed, missing or added bytes."""
    data = bytearray(data)
    how = rng.random()
    if how < 0.5 and data:
        for _ in range(rng.randrange(1, most + 1)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])
    elif how < 0.65 and data:
        del data[rng.randrange(len(data)):]
    elif how < 0.75:
        data += rng.randbytes(rng.choice([1, 511, 512, 4096]))
    return bytes(data)


# ---- databases

# Replacements for `CREATE TABLE t(a, b)`. Values that would be computed must not be, or not without bounds.
HOSTILE_TABLES = [
    "CREATE TABLE t(a, b, c AS (load_extension('{name}')))",
    "CREATE TABLE t(a, b, c AS (zeroblob(100000000)))",
    "CREATE TABLE t(a, b, c AS (hex(randomblob(20000000))))",
    "CREATE TABLE t(a, b, c AS (printf('%.*c', 100000000, 'x')))",
    "CREATE TABLE t(a, b, CHECK (load_extension('{name}') IS NULL))",
    "CREATE TABLE t(a, b, CHECK (length(hex(zeroblob(50000000))) > 0))",
    "CREATE TABLE t(a, b, c AS (a || b) STORED, d AS (c || c))",
    "CREATE TABLE t(a, b, c AS (readfile('{name}')))",
    "CREATE TABLE t(a, b, c AS (writefile('{name}', 'x')))",
    "CREATE TABLE t(a DEFAULT (load_extension('{name}')), b COLLATE app_order)",
    "CREATE TABLE t(a COLLATE nothing PRIMARY KEY, b) WITHOUT ROWID",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, FOREIGN KEY (b) REFERENCES t(a))",
    "CREATE TABLE t(a, b",
    "CREATE TABLE t(a, b) AS",
    "CREATE TABLE t(a, a)",
    "CREATE VIRTUAL TABLE t USING nothing(a, b)",
    "ATTACH '{name}' AS t",
    "",
    "CREATE TABLE t(a,b)" + " " * 100000,
    "CREATE TABLE t(a, b\x1b[31m, c AS ('\x1b]0;title\x07'))",
]
HOSTILE_OBJECTS = [
    "CREATE VIEW v AS SELECT load_extension('{name}') FROM t",
    "CREATE VIEW v AS WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "CREATE VIEW v AS SELECT * FROM v",
    "CREATE VIEW v AS SELECT readfile('{name}'), writefile('{name}', 'x'), edit('x', '{name}')",
    "CREATE VIEW sqlite_schema AS SELECT 1",
    "CREATE VIEW v AS SELECT * FROM sqlite_dbpage",
    "CREATE VIEW v AS SELECT * FROM pragma_database_list, pragma_journal_mode('wal')",
    "CREATE TRIGGER r AFTER UPDATE ON t BEGIN SELECT load_extension('{name}'); END",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO t SELECT * FROM t; END",
    "CREATE TRIGGER r AFTER DELETE ON t BEGIN SELECT writefile('{name}', 'x'); END",
    "CREATE TRIGGER r BEFORE INSERT ON t BEGIN ATTACH '{name}' AS x; END",
    "CREATE TRIGGER r BEFORE UPDATE ON t BEGIN DELETE FROM t; SELECT RAISE(IGNORE); END",
    "CREATE TRIGGER r AFTER UPDATE ON t BEGIN UPDATE t SET a = a + 1; END",
    "CREATE VIRTUAL TABLE v USING fts5(a, content='t')",
    "CREATE VIRTUAL TABLE v USING fts5(a, content='sqlite_schema')",
    "CREATE VIRTUAL TABLE v USING fts5(a, content='nothing', content_rowid='x')",
    "CREATE VIRTUAL TABLE v USING fts5(a, tokenize='nothing')",
    "CREATE VIRTUAL TABLE v USING fts5(a, prefix='1 2 3', detail='none')",
    "CREATE VIRTUAL TABLE v USING fts4(a, content='t')",
    "CREATE VIRTUAL TABLE v USING fts3(a, tokenize=icu '{name}')",
    "CREATE VIRTUAL TABLE v USING rtree(id, x0, x1)",
    "CREATE VIRTUAL TABLE v USING dbstat('main')",
    "CREATE VIRTUAL TABLE v USING sqlite_dbpage",
    "CREATE VIRTUAL TABLE v USING csv(filename='{name}')",
    "CREATE VIRTUAL TABLE v USING zipfile('{name}')",
    "CREATE VIRTUAL TABLE v USING fsdir('{name}')",
    "CREATE VIRTUAL TABLE v USING nothing('{name}')",
    "CREATE INDEX i ON t(load_extension('{name}'))",
    "CREATE INDEX i ON t(hex(zeroblob(20000000)))",
    "CREATE INDEX i ON t(a) WHERE load_extension('{name}')",
    "CREATE UNIQUE INDEX i ON t(a COLLATE nothing, b)",
    "CREATE TABLE \"new\nline'\"\"\x1b[31m\"(\"%s\", \"\", \"\u202e\")",
    "CREATE TABLE \"\"(x)",
    "CREATE TABLE sqlite_stat1(tbl, idx, stat)",
    "CREATE TABLE sqlite_sequence(name, seq)",
    "CREATE TABLE w(" + ", ".join(f"c{n}" for n in range(2000)) + ")",
    "CREATE TABLE s(a INTEGER, b TEXT) STRICT, WITHOUT ROWID",
]
# Tables that Drydock interprets; `{plist}` is a hostile property list.
KNOWN_TABLES = [
    ["CREATE TABLE Z_METADATA(Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
     "CREATE TABLE Z_PRIMARYKEY(Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
     "INSERT INTO Z_METADATA VALUES(1, 'x', {plist})", "INSERT INTO Z_PRIMARYKEY VALUES(1, 'Note', 1, 99999999999)",
     "CREATE TABLE ZNOTE(Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTEXT VARCHAR)",
     "CREATE TABLE Z_MODELCACHE(Z_CONTENT BLOB)", "INSERT INTO Z_MODELCACHE VALUES({plist})"],
    ["CREATE TABLE room_master_table(id INTEGER PRIMARY KEY, identity_hash TEXT)",
     "INSERT INTO room_master_table VALUES(42, {text})", "PRAGMA user_version = 2147483647"],
    ["CREATE TABLE grdb_migrations(identifier TEXT NOT NULL PRIMARY KEY)", "INSERT INTO grdb_migrations VALUES({text})"],
    ["CREATE TABLE schema_migrations(version TEXT PRIMARY KEY)", "INSERT INTO schema_migrations VALUES({text})"],
]


def run(db, sql):
    """Runs a statement that this SQLite may not know."""
    try:
        db.execute(sql).fetchall()
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError):
        pass


def database(rng, targets, scratch, wal=False):
    """The bytes of a main file and its page size."""
    path = os.path.join(scratch, b"made")
    for name in os.listdir(scratch):
        os.unlink(os.path.join(scratch, name))
    size = rng.choice(PAGE_SIZES)
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in [f"page_size={size}", "journal_mode=off", "synchronous=off", f"auto_vacuum={rng.choice([0, 0, 1, 2])}",
                   f"encoding='{rng.choice(['UTF-8', 'UTF-8', 'UTF-8', 'UTF-16le', 'UTF-16be'])}'"]:
        run(db, f"PRAGMA {pragma}")
    run(db, f"PRAGMA user_version={rng.choice([0, 0, 0, 0, 0, 1, 2, -1, 2147483647])}")
    run(db, rng.choice(["CREATE TABLE t(a, b)", "CREATE TABLE t(a, b)", "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)",
                        "CREATE TABLE t(a TEXT PRIMARY KEY, b) WITHOUT ROWID"]))
    for number in range(rng.choice([0, 1, 3, 20])):
        value = rng.choice([number, "text", "x" * rng.choice([10, 5000]), None, 1e308, b"\0\xff", "\x1b[31m", "a\udcffb"])
        try:
            db.execute("INSERT INTO t VALUES(?, ?)", (number, value))
        except (sqlite3.Error, UnicodeError):
            pass
    name = os.fsdecode(targets.name(rng)).split("\0")[0].replace("'", "''")
    fill = lambda sql: sql.replace("{name}", name)
    if rng.random() < 0.3:
        for sql in rng.choice(KNOWN_TABLES):
            blob, text = property_list(rng, targets), rng.choice(["v1", "x" * 100, "\x1b[31m"])
            run(db, sql.replace("{plist}", f"x'{blob.hex()}'").replace("{text}", f"'{text}'"))
    for sql in rng.sample(HOSTILE_OBJECTS, rng.choice([0, 0, 1, 1, 2, 4])):
        if rng.random() < 0.5 and "VIRTUAL" not in sql:
            # What SQLite refuses, or would compute: it is written into the schema as it is.
            kind = sql.split()[1].lower().replace("unique", "index")
            run(db, "PRAGMA writable_schema=on")
            try:
                db.execute("INSERT INTO sqlite_schema VALUES(?, ?, 't', ?, ?)",
                           (kind, rng.choice(["v", "r", "i"]), rng.choice([0, 0, 2, 1, 99, -1, 2**31]), fill(sql)))
            except (sqlite3.Error, UnicodeError):
                pass
        elif "zeroblob" not in sql:
            run(db, fill(sql))
    run(db, "INSERT INTO v(a) SELECT 'words and words' FROM t LIMIT 2")
    if rng.random() < 0.2:
        run(db, f"UPDATE v_data SET block = randomblob({rng.choice([0, 10, 3000])}) WHERE id = {rng.choice([1, 10])}")
    if rng.random() < 0.35:
        run(db, "PRAGMA writable_schema=on")
        try:
            db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 't'", (fill(rng.choice(HOSTILE_TABLES)),))
            if rng.random() < 0.2:
                db.execute(f"UPDATE sqlite_schema SET rootpage = {rng.choice([0, 1, 3, -1, 4000000000, 9])}")
        except (sqlite3.Error, UnicodeError):
            pass
    db.close()
    with open(path, "rb") as file:
        data = bytearray(file.read())
    if wal and len(data) >= 100:
        data[18:20] = b"\2\2"
    return bytes(data), size


def broken(rng, data, size):
    """A database with damage that SQLite or a reader of its format might follow."""
    data = bytearray(data)
    how = rng.randrange(12)
    if not data:
        return rng.choice([b"", b"SQLite format 3\0", b"SQLite format 3\0" + bytes(496)])
    if how == 0:
        return varied(rng, data, 20)
    if how == 1:
        return rng.randbytes(size * rng.choice([1, 2, 5]))  # as if encrypted
    if how == 2:
        return rng.randbytes(16) + bytes(data[16:])  # SQLCipher's salt
    if how == 3:
        return bytes(data[:rng.randrange(len(data))])
    if how == 4:
        return bytes(data) + rng.choice([b"x", bytes(512), rng.randbytes(size), bytes(data)])
    if how == 5 and len(data) > size:  # a page that refers to another, or to itself
        at = size * rng.randrange(len(data) // size) + rng.choice([0, 8, 12, rng.randrange(size - 4)])
        data[at:at + 4] = struct.pack(">I", rng.choice([1, 2, 3, 0, 2**31, LOCK_BYTE // size + 1]))
        return bytes(data)
    if how == 6 and len(data) > size:  # an interior page with itself as its child
        at = size * rng.randrange(1, len(data) // size)
        data[at:at + 14] = struct.pack(">BHHHBIH", rng.choice([2, 5]), 0, 1, 20, 0, at // size + 1, 20)
        data[at + 20:at + 28] = struct.pack(">I", at // size + 1) + rng.randbytes(4)
        return bytes(data)
    fields = {16: ">H", 18: "B", 19: "B", 20: "B", 21: "B", 24: ">I", 28: ">I", 32: ">I", 36: ">I", 40: ">I", 44: ">I", 48: ">I",
              52: ">I", 56: ">I", 60: ">I", 64: ">I", 92: ">I", 96: ">I", 100: "B", 103: ">H", 105: ">H"}
    for offset in rng.sample(sorted(fields), rng.choice([1, 1, 2, 4])):
        form = fields[offset]
        top = {"B": 255, ">H": 65535, ">I": 2**32 - 1}[form]
        value = min(top, rng.choice([0, 1, 2, 3, 5, 255, 512, top, top // 2, rng.randrange(top)]))
        if offset + struct.calcsize(form) <= len(data):
            struct.pack_into(form, data, offset, value)
    return bytes(data)


def super_journal_record(rng, name, size):
    """The end of a journal that names a super-journal (https://www.sqlite.org/fileformat2.html#the_rollback_journal)."""
    total = rng.choice([sum(name), sum(name), sum(name), sum(name) - sum(256 for byte in name if byte > 127), 0, 1]) % 2**32
    length = rng.choice([len(name)] * 5 + [0, 1, 511, 512, 513, 2**31, 2**32 - 1])
    magic = rng.choice([JOURNAL_MAGIC] * 6 + [JOURNAL_MAGIC[:7] + b"\0"])
    return struct.pack(">I", rng.choice([LOCK_BYTE // size + 1, 0, 1, 2**32 - 1])) + name + struct.pack(">II", length, total) + magic


def journal(rng, targets, data, size, below):
    """A rollback journal that is hot to SQLite, of one or several segments."""
    result = b""
    pages = max(1, len(data) // size)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        sector = rng.choice([512, 512, 512, 4096, 0, 1, 28, 32, 100, 65536, 2**16 + 1, 2**31, 2**32 - 1])
        step = sector if 28 <= sector <= 65536 else 512
        count = rng.choice([0, 1, 2, 4])
        nonce = rng.randrange(2**32)
        stated = rng.choice([count, count, 0, 2**32 - 1, 2**31, 100])
        total = rng.choice([pages, pages, pages, pages + 5, 0, 1, 2**20, 2**31 - 1, 2**32 - 1, LOCK_BYTE // size + 1])
        stored = rng.choice([size, size, size, 0, 512, 65536, 1, 131072, 2**31])
        magic = rng.choice([JOURNAL_MAGIC] * 9 + [bytes(8), JOURNAL_MAGIC[:4] + bytes(4)])
        part = (magic + struct.pack(">5I", stated, nonce, total, sector, stored)).ljust(step, b"\0")
        for _ in range(count):
            number = rng.choice([1, 1, 2, pages, pages + 1, 0, 2**31, 2**32 - 1, LOCK_BYTE // size + 1])
            start = (number - 1) * size
            page = data[start:start + size] if 0 <= start < len(data) and rng.random() < 0.6 else rng.randbytes(size)
            page = page.ljust(size, b"\0")
            checksum = (nonce + sum(page[at] for at in range(size - 200, 0, -200))) % 2**32
            part += struct.pack(">I", number) + page + struct.pack(">I", checksum if rng.random() < 0.8 else 0)
        result += part.ljust(-(-len(part) // step) * step, b"\0")
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        name = targets.name(rng, below)
        name = rng.choice([name] * 6 + [b"", b"x" * 512, name + b"\0", b"main.sqlite", b"/" * 300 + name, rng.randbytes(20)])
        result += super_journal_record(rng, name, size)
    if rng.random() < 0.1:
        return varied(rng, result)
    return result + rng.choice([b""] * 5 + [b"\0", JOURNAL_MAGIC, bytes(512), rng.randbytes(17)])


def log_sum(data, state, big):
    """The checksum of a log (https://www.sqlite.org/fileformat2.html#wal_file_checksum_algorithm)."""
    first, second = state
    words = struct.unpack((">" if big else "<") + f"{len(data) // 4}I", data)
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & 0xffffffff
        second = (second + words[at + 1] + first) & 0xffffffff
    return first, second


def log(rng, data, size):
    """A write-ahead log with right checksums, for the most part, and hostile numbers."""
    big = rng.random() < 0.5
    pages = max(1, len(data) // size)
    stated = rng.choice([size] * 8 + [512, 65536, 0, 1, 3, 2**31])
    header = struct.pack(">4I", 0x377f0682 + big, rng.choice([3007000] * 9 + [3007001]), stated, rng.choice([0, 1, 2**32 - 1]))
    salts = rng.randbytes(8)
    state = log_sum(header + salts, (0, 0), big)
    result = header + salts + struct.pack(">II", *state)
    for _ in range(rng.choice([0, 1, 2, 3, 6]) if size < 65536 else 1):
        number = rng.choice([1, 1, 2, pages, pages + 1, pages + 2, 0, 2**31, 2**32 - 1, LOCK_BYTE // size + 1])
        commit = rng.choice([0, pages, pages, pages + 1, pages + 2, 1, 2**31 - 1, 2**32 - 1, LOCK_BYTE // size])
        start = (number - 1) * size
        page = data[start:start + size] if 0 <= start < len(data) and rng.random() < 0.7 else rng.randbytes(size)
        page = page.ljust(size, b"\0")
        head = struct.pack(">II", number, commit)
        state = log_sum(head + page, state, big)
        sums = struct.pack(">II", *state) if rng.random() < 0.95 else rng.randbytes(8)
        result += head + (salts if rng.random() < 0.95 else rng.randbytes(8)) + sums + page
    how = rng.random()
    return result if how < 0.7 else result[:rng.randrange(len(result))] if how < 0.85 else varied(rng, result)


def shared_memory(rng, size):
    """The index of a log, which a reader maps."""
    header = struct.pack("=IIIBBHIIIIIIII", 3007000, 0, rng.randrange(2**32), 1, rng.randrange(2), size & 0xffff,
                         rng.choice([0, 1, 5, 2**32 - 1]), rng.choice([1, 2**32 - 1]), *(rng.randrange(2**32) for _ in range(6)))
    body = header * 2 + struct.pack("=8I", *(rng.choice([0, 1, 2**32 - 1]) for _ in range(8)))
    length = rng.choice([32768, 32768, 0, 1, 100, 136, 4096, 32767, 65536])
    return rng.choice([body.ljust(length, b"\0")[:length], rng.randbytes(length)])


# ---- files that parsers read


def property_list(rng, targets):
    """A property list of any form, or what looks like one."""
    name = targets.name(rng).split(b"\0")[0]
    value = {"theme": "dark", "n": [1, 2.5, {"x": b"data"}], "auth_token": "ghp_" + "a" * 36, "dataSchemaVersion": 1}
    how = rng.randrange(10)
    if how == 0:
        return varied(rng, plistlib.dumps(value, fmt=plistlib.FMT_BINARY))
    if how == 1:
        return varied(rng, plistlib.dumps(value))
    if how == 2:
        return (b'<?xml version="1.0"?><!DOCTYPE plist [<!ENTITY x SYSTEM "file://' + name + b'">]><plist version="1.0">'
                b"<dict><key>k</key><string>&x;</string></dict></plist>")
    if how == 3:
        entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
        return f'<!DOCTYPE plist [<!ENTITY e0 "x">{entities}]><plist><string>&e9;</string></plist>'.encode()
    if how == 4:
        return b"<plist>" + b"<array>" * rng.choice([100, 20000]) + b"</plist>"
    if how == 5:
        # A list that contains itself, then one whose shared parts expand.
        if rng.random() < 0.5:
            return b"bplist00\xa1\x00\x08" + bytes(6) + b"\x01\x01" + struct.pack(">QQQ", 1, 0, 10)
        objects = [b"\xaf\x10\x10" + bytes([n + 1]) * 16 for n in range(12)] + [b"\x51x"]
        offsets, body = [], b"bplist00"
        for item in objects:
            offsets.append(len(body))
            body += item
        return body + struct.pack(f">{len(offsets)}H", *offsets) + bytes(6) + b"\2\1" + struct.pack(">QQQ", len(offsets), 0, len(body))
    if how == 6:
        return b"{ k = " + b"(" * rng.choice([10, 50000]) + b"1" + b")" * 10 + b"; }"
    if how == 7:
        keyed = {"$version": 100000, "$archiver": "NSKeyedArchiver", "$top": {"root": plistlib.UID(1)},
                 "$objects": ["$null", {"$class": plistlib.UID(2), "NS.objects": [plistlib.UID(1)]},
                              {"$classname": "NSArray", "$classes": ["NSArray"]}]}
        return varied(rng, plistlib.dumps(keyed, fmt=plistlib.FMT_BINARY))
    return plistlib.dumps(value, fmt=rng.choice([plistlib.FMT_BINARY, plistlib.FMT_XML]))


def preferences(rng, targets):
    """Settings of Android."""
    name = targets.name(rng).split(b"\0")[0]
    return rng.choice([
        b'<map><string name="theme">dark</string><int name="n" value="5" /></map>',
        b'<!DOCTYPE map [<!ENTITY x SYSTEM "file://' + name + b'">]><map><string name="k">&x;</string></map>',
        b'<!DOCTYPE map SYSTEM "' + name + b'"><map/>',
        b'<map xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="' + name + b'"/></map>',
        b"<map>" * rng.choice([10, 20000]),
        b'<map><int name="n" value="99999999999999999999"/><set name="s"><string>\xff</string></set></map>',
        varied(rng, b'<map><string name="__androidx_security_crypto_encrypted_prefs_key_keyset__">00</string></map>')])


def history(rng):
    """The record of migrations, or what looks like one."""
    record = {"number": rng.choice([1, 0, -1, 2**63]), "name": "\x1b[31mx", "checksum": "0" * 64, "time": "2026-01-01T00:00:00Z",
              "tool": "x", "origin": "applied", "milliseconds": 1, "transaction": "../../x"}
    return rng.choice([
        json.dumps({"format": rng.choice([1, 2, 99]), "version": 1, "migrations": [record] * rng.choice([1, 1000])}).encode(),
        b"[" * rng.choice([100, 200000]), b"{}", b"null", rng.randbytes(100), b'{"a":' * 5000, b"\xef\xbb\xbf{}"])


def picture(rng):
    """An image or document as the warnings about excluded files read them."""
    exif = b"Exif\0\0" + rng.choice([b"MM\0*", b"II*\0"]) + rng.randbytes(rng.choice([4, 40, 400]))
    jpeg = b"\xff\xd8\xff\xe1" + struct.pack(">H", rng.choice([len(exif) + 2, 0, 65535])) + exif + rng.randbytes(100)
    heic = struct.pack(">I", rng.choice([24, 0, 1, 2**32 - 1])) + b"ftypheic" + rng.randbytes(200)
    return rng.choice([jpeg, heic, b"II*\0" + rng.randbytes(300), b"%PDF-1.7" + rng.randbytes(50), b"PK\3\4" + rng.randbytes(60)]).ljust(
        rng.choice([100, 210000]), b"\0")


def data_store(rng):
    """A Preferences DataStore, which is a protocol buffer."""
    return rng.choice([b"\x0a\x0b\x0a\x05theme\x12\x02\x18\x05", b"\x0a" + b"\xff" * 9 + b"\1", b"\x0a\x02" * 1000, rng.randbytes(60)])


COMPANIONS = {
    b"default.realm": lambda rng, targets: b"T-DB" + rng.randbytes(rng.choice([20, 4096])),
    b"default.realm.lock": lambda rng, targets: rng.randbytes(1200),
    b"default.realm.management/access_control.write.cv": None,
    b"default.realm.note": None,
    b"mmkv/mmkv.default": lambda rng, targets: struct.pack("<I", rng.choice([0, 10, 2**32 - 1])) + rng.randbytes(100),
    b"mmkv/mmkv.default.crc": lambda rng, targets: rng.randbytes(40),
    b"leveldb/CURRENT": lambda rng, targets: targets.name(rng) + b"\n",
    b"leveldb/LOCK": lambda rng, targets: b"",
    b"leveldb/MANIFEST-000001": lambda rng, targets: rng.randbytes(200),
    b"leveldb/000003.log": lambda rng, targets: rng.randbytes(40000),
    b"x.lock": lambda rng, targets: b"",
    b"CACHEDIR.TAG": lambda rng, targets: b"Signature: 8a477f597d28d172789f06886806bc55",
    b".nomedia": lambda rng, targets: b"",
    b"archive.tar.zst": lambda rng, targets: b"\x28\xb5\x2f\xfd" + rng.randbytes(100),
}
# Where files that Drydock interprets lie, by layout.
PLACES = {
    "ios": {b"Library/Preferences/com.example.hostile.plist": property_list, b"Library/Preferences/other.plist": property_list,
            b".com.apple.mobile_container_manager.metadata.plist": property_list,
            b"Library/Application Support/.drydock/history.json": lambda rng, targets: history(rng),
            b"Library/Vault/vault.age": lambda rng, targets: b"age-encryption.org/v1\n-> X25519 " + rng.randbytes(80),
            b"Library/Caches/photo.jpg": lambda rng, targets: picture(rng), b"tmp/report.pdf": lambda rng, targets: picture(rng),
            b"Library/Caches/photo.heic": lambda rng, targets: picture(rng), b"Documents/state.json": lambda rng, targets: history(rng),
            b"Library/SyncedPreferences/x.plist": property_list},
    "android": {b"shared_prefs/com.example.hostile_preferences.xml": preferences, b"shared_prefs/x.xml.bak": preferences,
                b"shared_prefs/x.xml": preferences, b"files/datastore/settings.preferences_pb": lambda rng, targets: data_store(rng),
                b"files/.drydock/history.json": lambda rng, targets: history(rng), b"cache/photo.jpg": lambda rng, targets: picture(rng),
                b"files/vault.age": lambda rng, targets: rng.randbytes(100), b"code_cache/x": lambda rng, targets: b"x"},
    "generic": {b".drydock/history.json": lambda rng, targets: history(rng), b"vault.age": lambda rng, targets: rng.randbytes(100),
                b"state.json": lambda rng, targets: history(rng), b"drydock.yaml": lambda rng, targets: b"app: [" * 500,
                b"Info.plist": property_list},
}
FOLDERS = {"ios": [b"Documents", b"Library/Application Support", b"Library/Caches", b"tmp", b"Documents/a"],
           "android": [b"databases", b"files", b"no_backup", b"cache"], "generic": [b"", b"data", b"a/b/c"]}


# ---- the tree


class Builder:
    """Writes one container."""

    def __init__(self, rng, root, targets, scratch):
        self.rng, self.root, self.targets, self.scratch = rng, root, targets, scratch
        self.layout = rng.choice(["ios", "android", "generic"])
        self.written = []  # relative paths
        self.databases = []  # of these, main files
        os.mkdir(root)
        for folder in [b"Documents", b"Library"] if self.layout == "ios" else [b"shared_prefs"] if self.layout == "android" else []:
            os.mkdir(os.path.join(root, folder))

    def full(self, path):
        return os.path.join(self.root, path)

    def ready(self, path):
        """Makes the directories above a path; false where something else is in the way."""
        try:
            above = os.path.dirname(self.full(path))
            os.makedirs(above, exist_ok=True)
            # Nothing is written through a link, which may lead out.
            return os.path.realpath(above) == os.path.normpath(above) and not os.path.lexists(self.full(path))
        except OSError:
            return False

    def write(self, path, data):
        if not self.ready(path):
            return
        try:
            with open(self.full(path), "xb") as file:
                file.write(data)
        except OSError:
            return
        self.written.append(path)

    def special(self, path, kinds=None):
        """Something that is not an ordinary file, at the path."""
        rng, full = self.rng, self.full(path)
        if not self.ready(path):
            return
        kind = rng.choice(kinds or ["link", "link", "link", "fifo", "socket", "hard", "directory", "device", "sparse", "system", "loop"])
        try:
            if kind == "link":
                os.symlink(self.targets.name(rng, os.path.dirname(full)).split(b"\0")[0], full)
            elif kind == "system":
                os.symlink(rng.choice(SYSTEM_FILES), full)
            elif kind == "loop":
                os.symlink(rng.choice([os.path.basename(path), b".", b"..", b"../" * 40, self.root]), full)
            elif kind == "fifo":
                os.mkfifo(full)
            elif kind == "hard":
                other = [self.full(name) for name in self.written] + self.targets.paths
                os.link(rng.choice(other), full, follow_symlinks=False)
            elif kind == "directory":
                os.mkdir(full)
            elif kind == "device":
                os.mknod(full, stat.S_IFCHR | 0o600, os.makedev(*rng.choice([(1, 5), (1, 3), (5, 0), (9, 99)])))
            elif kind == "socket":
                self.socket(full)
            elif kind == "sparse":
                # Every byte of a hole is hashed: larger ones take longer, and no more is found.
                with open(full, "xb") as file:
                    file.truncate(rng.choice([1, 4097, 10**6, 3 * 10**8]))
                    if rng.random() < 0.5:
                        file.write(b"start")
        except (OSError, ValueError):
            return
        self.written.append(path)

    @staticmethod
    def socket(full):
        # A socket's name is short: it is relative to the directory.
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(os.path.dirname(full))
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(os.path.basename(full))
        finally:
            os.fchdir(here)
            os.close(here)

    @staticmethod
    def is_own(full):
        """Whether it is a file with no other name."""
        return os.path.isfile(full) and not os.path.islink(full) and os.stat(full).st_nlink == 1

    def maybe(self, path, data, chance=0.12):
        """A file with the data, or sometimes something else in its place."""
        if self.rng.random() < chance:
            self.special(path)
        else:
            self.write(path, data)

    def database(self, path=None):
        rng = self.rng
        folder = rng.choice(FOLDERS[self.layout])
        name = path or rng.choice([b"main.sqlite", b"main.sqlite", b"x.db", b"noext", b"picture.jpg", rng.choice(ODD_NAMES)])
        path = path or os.path.join(folder, name)
        wal = rng.random() < 0.45
        data, size = database(rng, self.targets, self.scratch, wal)
        whole = data
        if rng.random() < 0.3:
            data = broken(rng, data, size)
        if rng.random() < 0.05:
            data = b""
        self.maybe(path, data, 0.08)
        self.databases.append(path)
        below = os.path.dirname(self.full(path))
        if rng.random() < (0.25 if wal else 0.7):
            self.maybe(path + b"-journal", journal(rng, self.targets, whole, size, below), 0.1)
        if rng.random() < (0.8 if wal else 0.15):
            self.maybe(path + b"-wal", log(rng, whole, size), 0.1)
        if rng.random() < (0.6 if wal else 0.15):
            self.maybe(path + b"-shm", shared_memory(rng, size), 0.2)
        if rng.random() < 0.25:
            names = [self.targets.name(rng).split(b"\0")[0], self.full(path) + b"-journal"]
            rng.shuffle(names)
            self.maybe(path + b"-mj%08X" % rng.randrange(2**32), b"\0".join(names) + b"\0")
        if rng.random() < 0.1:
            self.maybe(os.path.join(folder, b"." + name.rsplit(b".", 1)[0] + b"_SUPPORT", b"_EXTERNAL_DATA", b"x"), b"x")
        sidecar = self.full(path) + rng.choice([b"-journal", b"-wal", b"-shm"])
        if rng.random() < 0.05 and self.is_own(sidecar):
            # A hole that would be copied, or counted as content.
            os.truncate(sidecar, rng.choice([2 * 10**8, 10**6]))
        if rng.random() < 0.08 and self.is_own(self.full(path)):
            # A database of a few pages, of which the rest is a hole; or one that says so.
            with open(self.full(path), "r+b") as file:
                pages = rng.choice([100, 3 * 10**8 // size])
                file.truncate(pages * size)
                file.seek(28)
                file.write(struct.pack(">I", rng.choice([pages, pages, pages - 1, 2**28, 2**32 - 1])))

    def metadata(self):
        """Modes, times, owners and attributes that are seldom seen."""
        rng = self.rng
        for path in rng.sample(self.written, min(len(self.written), rng.randrange(6))):
            full = self.full(path)
            try:
                what = rng.randrange(5)
                if os.lstat(full).st_nlink > 1:
                    # It may be a canary, which must not change now.
                    continue
                if what == 0 and not os.path.islink(full):
                    os.chmod(full, rng.choice([0, 0o200, 0o444, 0o777, 0o4755, 0o2755, 0o7777]))
                elif what == 1 and os.getuid() == 0:
                    os.chown(full, rng.choice([0, 1000, 65534, 4294967294]), rng.choice([0, 1000]), follow_symlinks=False)
                elif what == 2:
                    when = rng.choice([0, -1, -10**10, 2**31, 2**33, 1]) * 10**9 + rng.choice([0, 1, 999999999])
                    os.utime(full, ns=(when, when), follow_symlinks=False)
                elif what == 3:
                    name = rng.choice(["user.com.apple.metadata:com_apple_backup_excludeItem", "user.xdg.robots.backup", "user.\x1b[31m",
                                       "user.com.apple.MobileBackup", "user." + "n" * 200, "user.drydock"])
                    os.setxattr(full, name, rng.choice([b"", b"false", bytes(8), rng.randbytes(900)]), follow_symlinks=False)
            except OSError:
                pass

    def build(self):
        rng = self.rng
        for _ in range(rng.choice([1, 1, 2, 3])):
            self.database()
        if rng.random() < 0.3:
            # A database that the migrations know, and move.
            if rng.random() < 0.3:
                self.special(b"moved.sqlite", ["link", "link", "system", "loop", "hard"])
            else:
                self.database(b"moved.sqlite")
        if rng.random() < 0.06:
            self.special(rng.choice([b"main.sqlite", b"Documents/main.sqlite", b"databases/main.sqlite", b"data/main.sqlite"]), ["link"])
        for path, make in PLACES[self.layout].items():
            # With a history or vault that cannot be read, most commands go no further.
            if rng.random() < (0.08 if b"history" in path or b"vault" in path else 0.35):
                self.maybe(path, make(rng, self.targets))
        folder = rng.choice(FOLDERS[self.layout])
        for path, make in COMPANIONS.items():
            if rng.random() < 0.15:
                if make:
                    self.maybe(os.path.join(folder, path), make(rng, self.targets), 0.3)
                else:
                    self.special(os.path.join(folder, path), ["fifo"])
        for _ in range(rng.choice([0, 1, 3, 6])):
            name = os.path.join(rng.choice(FOLDERS[self.layout]), rng.choice(ODD_NAMES))
            self.maybe(name, rng.choice([b"", b"x", rng.randbytes(300), b"SQLite format 3\0", bytes(512)]), 0.5)
        for _ in range(rng.choice([0, 0, 1, 2])):
            self.special(os.path.join(rng.choice(FOLDERS[self.layout]), b"s%d" % rng.randrange(100)))
        if rng.random() < 0.02:
            self.maybe(b"deep/" + b"d/" * rng.choice([100, 100, 505, 520]) + b"f", b"x")
        if rng.random() < 0.1:
            # A whole directory is elsewhere.
            self.special(rng.choice([b"Library", b"Documents/a", b"files", b"databases", b"data", b".drydock"]), ["link", "system"])
        self.metadata()


def changed_copy(rng, root, target, databases):
    """Copies a container, with other rows in its databases, so that a comparison has to read them; false where there is none."""
    if subprocess.run(["cp", "-a", "--sparse=always", "--", root, target], stderr=subprocess.DEVNULL).returncode or not databases:
        return False
    for path in databases:
        try:
            with open(os.path.join(target, os.path.relpath(path, root)), "r+b") as file:
                data = file.read(1 << 20)
                data = data[:60] + struct.pack(">I", rng.choice([0, 1, 7])) + data[64:]
                for old, new in [(b"text", b"teXt"), (b"words", b"wordz"), (b"xxxx", b"xyxy")]:
                    if rng.random() < 0.7:
                        at = data.rfind(old)
                        data = data[:at] + new + data[at + len(old):] if at > 100 else data
                file.seek(0)
                file.write(data)
        except OSError:
            pass
    return True


# ---- the same as a file


def packed(rng, root, target):
    """Packs a container as an archive; false where no packer can."""
    above, name = os.path.split(root)
    how = rng.choice(["gnu", "posix", "bsdtar", "python", "zip", "gz", "zst"])
    if how in ("python", "zip"):
        for folder, folders, files in os.walk(root):
            for file in files:
                status = os.lstat(os.path.join(folder, file))
                if status.st_size > 10**7 or not status.st_mode & 0o400:
                    return False
    try:
        if how == "zip":
            with zipfile.ZipFile(os.fsdecode(target), "w") as file:
                for folder, folders, files in os.walk(root):
                    for item in folders + files:
                        full = os.path.join(folder, item)
                        status = os.lstat(full)
                        info = zipfile.ZipInfo(os.fsencode(os.path.relpath(full, above)).decode("utf-8", "replace"))
                        info.create_system, info.external_attr = 3, status.st_mode << 16
                        if stat.S_ISLNK(status.st_mode):
                            file.writestr(info, os.readlink(full))
                        elif stat.S_ISREG(status.st_mode):
                            with open(full, "rb") as content:
                                file.writestr(info, content.read())
                        elif stat.S_ISFIFO(status.st_mode) and rng.random() < 0.5:
                            file.writestr(info, b"")
        elif how == "python":
            with tarfile.open(os.fsdecode(target), "w", format=rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])) as file:
                file.add(os.fsdecode(root), arcname=os.fsdecode(name))
                if rng.random() < 0.3:
                    # A member below a link, outside, twice, or a hard link to somewhere else.
                    info = tarfile.TarInfo(os.fsdecode(name) + rng.choice(["/../x", "/link/x", "/main.sqlite", "//x", "/."]))
                    info.type = rng.choice([tarfile.REGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE])
                    info.linkname = os.fsdecode(rng.choice([b"/etc/hostname", b"../../canary/file", name + b"/main.sqlite"]))
                    file.addfile(info, io.BytesIO())
        else:
            flags = {"gnu": ["tar", "--format=gnu", "-S"], "posix": ["tar", "--format=posix", "-S", "--xattrs"],
                     "bsdtar": ["bsdtar", "--format=pax"], "gz": ["tar", "-S", "-z"], "zst": ["tar", "-S", "--zstd"]}[how]
            subprocess.run([*flags, "-cf", target, "-C", above, b"./" + name], stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=20)
    except (OSError, ValueError, subprocess.TimeoutExpired, zipfile.LargeZipFile, struct.error):
        pass
    if not os.path.exists(target):
        return False
    if rng.random() < 0.1:
        with open(target, "rb") as file:
            data = file.read()
        with open(target, "wb") as file:
            file.write(varied(rng, data))
    return True
