#!/usr/bin/env python3
"""Writes the hostile archives beside it, and table.tsv with what each must be refused with.

Run it again after a change of the format. It shares no code with Drydock but the manifest's CREATE statements.
"""
import hashlib, os, re, sqlite3, struct, subprocess, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = open(HERE + "/../../../Sources/ArchiveManifest/ManifestFile.swift").read()
SCHEMA = [re.sub(r"^    ", "", s, flags=re.M).strip("\n") for s in re.findall(r'"""\n(.*?)\n    """', SCHEMA, re.S)]
LEVEL = "-19"
ID, TIME, BLOCK = "00112233445566778899aabbccddeeff", 1700000000, 512
CAPTURED = 1795169700  # the time of the header
HEADER = """{
  "app" : "com.example.lab",
  "archive" : "%s",
  "format" : 2,
  "instance" : "box",
  "kind" : "full",
  "layout" : "generic",
  "time" : "2026-11-20T10:15:00Z",
  "tool" : "make.py"
}
""" % ID


# The tar stream

def block(name, kind, size=0, mode=0o644, link=b"", mtime=TIME, uid=0, magic=b"ustar\x0000", checksum=None):
    """A ustar header; numbers may be given as bytes."""
    def octal(value, width):
        return value.ljust(width, b"\0") if isinstance(value, bytes) else b"%0*o " % (width - 1, value)
    head = name[:100].ljust(100, b"\0") + octal(mode, 8) + octal(uid, 8) + octal(0, 8) + octal(size, 12)
    head += octal(mtime, 12) + b" " * 8 + kind + link[:100].ljust(100, b"\0") + magic.ljust(8, b"\0")
    head += b"\0" * 64 + octal(0, 8) + octal(0, 8)
    head = head.ljust(BLOCK, b"\0")
    total = sum(head) if checksum is None else checksum
    return head[:148] + b"%06o\0 " % total + head[156:]


def padded(data):
    return data + b"\0" * (-len(data) % BLOCK)


def record(key, value):
    body = b" " + key + b"=" + value + b"\n"
    length = len(body)
    while len(b"%d" % length) + len(body) != length:
        length = len(b"%d" % length) + len(body)
    return b"%d" % length + body


def pax(*records, kind=b"x"):
    data = b"".join(record(k, v) for k, v in records)
    return block(b"PaxHeader/x", kind, len(data)) + padded(data)


def file(name, data=b"", **more):
    return block(name, b"0", len(data), **more) + padded(data)


# The manifest

class Box:
    """A good archive in parts, to be spoilt: `tar` pieces, manifest `entries`, and what is done to the rest."""

    def __init__(self):
        self.header = HEADER.encode()
        self.parts = []  # (path or None, bytes before content, content)
        self.entries = []  # rows, with the content's path for its offset
        self.sql, self.edit_manifest, self.end = "", None, b"\0" * 1024
        self.after_manifest, self.before_header, self.own_mode, self.padding = b"", b"", 0o644, padded
        self.directory(b"")
        self.file(b"file", b"content\n")
        self.link(b"link", b"../outside")
        self.directory(b"sub")
        self.file(b"sub/file", b"more\n")

    def name(self, path):
        return b"container" + (b"/" + path if path else b"")

    def row(self, path, kind, mode, size=0, sha=None, target=None, hard=None):
        self.entries.append([path, kind, mode, 0, 0, TIME * 10**9, size, sha, target, hard, "", 1, 1, 1])

    def directory(self, path):
        self.parts.append((path, block(self.name(path) + b"/", b"5", mode=0o755), b""))
        self.row(path, "directory", 0o755)

    def file(self, path, data):
        self.parts.append((path, block(self.name(path), b"0", len(data)), data))
        self.row(path, "file", 0o644, len(data), hashlib.sha256(data).digest())

    def link(self, path, target):
        self.parts.append((path, block(self.name(path), b"2", mode=0o777, link=target), b""))
        self.row(path, "symbolic-link", 0o777, target=target)

    def add(self, data):
        """Raw tar bytes behind the good members."""
        self.parts.append((None, data, b""))

    def manifest(self, offsets):
        with tempfile.TemporaryDirectory() as directory:
            db = sqlite3.connect(directory + "/m")
            db.execute("PRAGMA page_size=4096")
            for statement in SCHEMA:
                db.execute(statement)
            snapshot = hashlib.sha256()
            for path, kind, mode, *_, size, sha, target, hard, flags, _, _, _ in self.entries:
                for field in (path, kind.encode(), b"%o" % mode, b"%d" % size, sha or b"", target or b"", hard or b"",
                              flags.encode()):
                    snapshot.update(struct.pack(">Q", len(field)) + field)
            text = lambda path: path if path is None else path.decode()
            for number, row in enumerate(self.entries, 1):
                path, hard = text(row[0]), text(row[9])
                db.execute("INSERT INTO entry VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                           [number, path, *row[1:9], hard, *row[10:]])
                if row[6] and hard is None:
                    db.execute("INSERT INTO extent VALUES (?,0,0,?,?)", [number, offsets.get(row[0], 512), row[6]])
            db.executemany("INSERT INTO property VALUES (?,?)",
                           [("format", 2), ("archive", ID), ("snapshot", snapshot.hexdigest())])
            db.commit()
            db.executescript(self.sql)
            db.commit()
            db.close()
            data = open(directory + "/m", "rb").read()
        return self.edit_manifest(bytearray(data)) if self.edit_manifest else data

    def tar(self):
        tar, offsets = self.before_header + file(b"drydock.json", self.header, mtime=CAPTURED, mode=self.own_mode), {}
        for path, head, content in self.parts:
            tar += head
            if path is not None:
                offsets[path] = len(tar)
            tar += self.padding(content)
        data = bytes(self.manifest(offsets))
        tar += block(b"manifest.sqlite", b"0", len(data), mtime=CAPTURED)
        self.place = (len(tar), len(data), hashlib.sha256(data).digest())
        return tar + padded(data) + self.after_manifest + self.end

    def archive(self):
        return seal(self.tar(), self.place)


# The container of frames

def compress(data, *options):
    with tempfile.NamedTemporaryFile() as source:
        source.write(data)
        source.flush()
        return subprocess.run(["zstd", "-q", LEVEL, "-c", *options, source.name], check=True, capture_output=True).stdout


def location(place, version=1, reserved=0, magic=b"drydock\0", check=None):
    body = struct.pack("<II8sIIQQ32s", 0x184D2A50, 72, magic, version, reserved, *place)
    return body + (check or hashlib.sha256(body).digest()[:8])


def table(entries, descriptor=0x80, count=None, size=None, magic=0x184D2A5E):
    body = b"".join(struct.pack("<III", *e) for e in entries)
    size = len(body) + 9 if size is None else size
    return struct.pack("<II", magic, size) + body + struct.pack(
        "<IBI", len(entries) if count is None else count, descriptor, 0x8F92EAB1)


def parts(tar, frame_size=4 << 20):
    pieces = [tar[at:at + frame_size] for at in range(0, len(tar), frame_size)]
    frames = [compress(piece) for piece in pieces]
    return frames, [[len(f), len(p), struct.unpack("<I", f[-4:])[0]] for f, p in zip(frames, pieces)]


NOTHING = [80, 0, 0x51D8E999]


def seal(tar, place, frame_size=4 << 20):
    frames, entries = parts(tar, frame_size)
    return b"".join(frames) + location(place) + table(entries + [NOTHING])


# The cases: name -> (code, where it is noticed, whether a restore refuses it, function)
CASES = {}


def case(code, noticed, restore="refused"):
    def register(function):
        CASES[function.__name__.replace("_", "-")] = (code, noticed, restore, function)
        return function
    return register


def member(name, code, data, restore="refused", noticed="data"):
    """Raw tar bytes behind the good members; a restore reads only what the manifest names."""
    def make():
        box = Box()
        box.add(data)
        return box.archive()
    CASES[name] = (code, noticed, restore, make)


def manifest(name, sql="", edit=None, code="damaged", noticed="open", restore="refused"):
    def make():
        box = Box()
        box.sql, box.edit_manifest = sql, edit
        return box.archive()
    CASES[name] = (code, noticed, restore, make)


@case("none", "never", "fine")
def good():
    return Box().archive()


@case("none", "never", "fine")
def good_in_small_frames():
    box = Box()
    tar = box.tar()
    return seal(tar, box.place, 7000)


LONG = b"container/" + b"n" * 70_000
PAX_NAME = lambda name: pax((b"path", name)) + file(b"container/x", b"x\n")
member("name-absolute", "unsafeName", file(b"/tmp/drydock-hostile", b"x\n"))
member("name-absolute-pax", "unsafeName", PAX_NAME(b"/tmp/drydock-hostile"))
member("name-parent", "unsafeName", file(b"container/../../outside/file", b"x\n"))
member("name-parent-last", "unsafeName", block(b"container/..", b"5"))
member("name-dot", "unsafeName", file(b"container/./x", b"x\n"))
member("name-empty", "unsafeName", file(b"", b"x\n"))
member("name-empty-component", "unsafeName", file(b"container//x", b"x\n"))
member("name-nul", "damaged", PAX_NAME(b"container/a\0b"))
member("name-long", "limit", PAX_NAME(LONG))
member("name-deep", "limit", PAX_NAME(b"container" + b"/d" * 600))
member("name-elsewhere", "damaged", file(b"elsewhere/x", b"x\n"))
member("name-file-as-directory", "damaged", file(b"container/x/", b""))
member("link-then-below", "damaged",
       block(b"container/out", b"2", link=b"../outside") + file(b"container/out/file", b"x\n"))
member("link-earlier-below", "unsafeName", file(b"container/link/file", b"x\n"))
member("link-without-target", "damaged", block(b"container/x", b"2"))
member("hardlink-outside", "unsafeName", block(b"container/x", b"1", link=b"../outside/file"))
member("hardlink-absolute", "unsafeName", block(b"container/x", b"1", link=b"/etc/passwd"))
member("hardlink-later", "unsafeName", block(b"container/x", b"1", link=b"container/y") + file(b"container/y", b"y\n"))
member("hardlink-directory", "unsafeName", block(b"container/x", b"1", link=b"container/sub"))
member("hardlink-content", "damaged", block(b"container/x", b"1", 2, link=b"container/file") + padded(b"x\n"))
member("twice-file", "unsafeName", file(b"container/file", b"other!!\n"))
member("twice-directory", "unsafeName", block(b"container/sub/", b"5", mode=0o755))
member("twice-without-slash", "unsafeName", block(b"container/sub", b"5", mode=0o755))
member("twice-header", "unsafeName", file(b"drydock.json", b"{}"))
member("twice-manifest", "damaged", file(b"manifest.sqlite", b"x"))
member("file-where-directory", "unsafeName", file(b"container/sub", b"x\n"))
member("directory-where-file", "unsafeName", block(b"container/file/", b"5"))
member("below-file", "unsafeName", file(b"container/file/x", b"x\n"))
member("device-character", "damaged", block(b"container/x", b"3"))
member("device-block", "damaged", block(b"container/x", b"4"))
member("fifo", "damaged", block(b"container/x", b"6"))
member("contiguous", "damaged", block(b"container/x", b"7", 2) + padded(b"x\n"))
member("unknown-type", "damaged", block(b"container/x", b"Z", 2) + padded(b"x\n"))
member("old-type", "damaged", block(b"container/x", b"\0", 2) + padded(b"x\n"))
member("v7-header", "damaged", file(b"container/x", b"x\n", magic=b""))
member("gnu-magic", "damaged", file(b"container/x", b"x\n", magic=b"ustar  \0"))
member("gnu-long-name", "damaged", block(b"././@LongLink", b"L", 12, magic=b"ustar  \0") + padded(b"container/x\0")
       + file(b"y", b"x\n", magic=b"ustar  \0"))
member("gnu-sparse", "damaged", block(b"container/x", b"S", 0, magic=b"ustar  \0"))
member("gnu-multi-volume", "damaged", block(b"container/x", b"M", 2, magic=b"ustar  \0") + padded(b"x\n"))
member("gnu-volume-label", "damaged", block(b"label", b"V", magic=b"ustar  \0"))
member("gnu-dumpdir", "damaged", block(b"container/x", b"D", 2, magic=b"ustar  \0") + padded(b"x\n"))
member("pax-global", "damaged", pax((b"mtime", b"1"), kind=b"g") + file(b"container/x", b"x\n"))
member("pax-sparse", "damaged", pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
       (b"GNU.sparse.name", b"container/x"), (b"GNU.sparse.realsize", b"9999999")) + file(b"y", padded(b"1\n0\n2\n") + b"x\n"))
member("pax-acl", "damaged", pax((b"SCHILY.acl.access", b"user::rwx,group::rwx,other::rwx")) + file(b"container/x"))
member("pax-flags", "damaged", pax((b"SCHILY.fflags", b"immutable")) + file(b"container/x"))
member("pax-twice", "damaged", pax((b"path", b"container/a"), (b"path", b"container/b")) + file(b"container/x"))
member("pax-two-headers", "damaged", pax((b"path", b"container/a")) + pax((b"mtime", b"1")) + file(b"container/x"))
member("pax-size", "damaged", pax((b"size", b"1024")) + file(b"container/x", b"x\n"))
member("pax-size-huge", "truncated", pax((b"size", b"9223372036854775000")) + file(b"container/x", b"x\n"))
member("pax-size-negative", "damaged", pax((b"size", b"-512")) + file(b"container/x", b"x\n"))
member("pax-malformed", "damaged", block(b"PaxHeader/x", b"x", 20) + padded(b"99 path=container/x\n") + file(b"y"))
member("pax-huge", "damaged", pax((b"SCHILY.xattr.user.x", b"\0" * (2 << 20))) + file(b"container/x"))
member("pax-alone", "damaged", pax((b"path", b"container/x")) )
member("pax-time-huge", "damaged", pax((b"mtime", b"9" * 30)) + file(b"container/x"))
member("pax-owner-huge", "damaged", pax((b"uid", b"99999999999")) + file(b"container/x"))
member("size-base-256", "damaged", file(b"container/x", b"x\n")[:0] +
       block(b"container/x", b"0", b"\x80" + b"\0" * 10 + b"\x02") + padded(b"x\n"))
member("size-base-256-negative", "damaged", block(b"container/x", b"0", b"\xff" * 12))
member("size-base-256-huge", "damaged", block(b"container/x", b"0", b"\x80" + b"\xff" * 11))
member("size-beyond-end", "truncated", block(b"container/x", b"0", 0o77777777777))
member("content-in-directory", "damaged", block(b"container/x/", b"5", 2) + padded(b"x\n"))
member("checksum-wrong", "damaged", file(b"container/x", b"x\n", checksum=1))
member("extra-member", "damaged", file(b"container/zzz", b"x\n"))
member("garbage-between", "damaged", b"\x07" * BLOCK)
member("end-in-the-middle", "damaged", b"\0" * 1024)


@case("truncated", "data", "refused")
def end_missing():
    box = Box()
    box.end = b""
    return box.archive()


@case("truncated", "data", "refused")
def end_of_one_block():
    box = Box()
    box.end = b"\0" * 512
    return box.archive()


@case("damaged", "data", "refused")
def more_after_end():
    box = Box()
    box.end = b"\0" * 1024 + file(b"container/x", b"x\n") + b"\0" * 1024
    return box.archive()


@case("damaged", "data", "refused")
def manifest_not_last():
    box = Box()
    box.after_manifest = file(b"container/x", b"x\n")
    return box.archive()


@case("damaged", "open")
def header_not_first():
    box = Box()
    box.before_header = file(b"container", b"x")
    return box.archive()


@case("damaged", "open")
def header_bomb():
    box = Box()
    box.header = b" " * (2 << 20)
    return box.archive()


@case("damaged", "open")
def header_nested():
    box = Box()
    box.header = b"[" * 100_000
    return box.archive()


@case("damaged", "open")
def header_time_far():
    box = Box()
    box.header = box.header.replace(b"2026-", b"2744-")
    return box.archive()


@case("newerFormat", "open")
def header_newer():
    box = Box()
    box.header = box.header.replace(b'"format" : 2', b'"format" : 99')
    return box.archive()


@case("damaged", "open")
def header_other_archive():
    box = Box()
    box.header = box.header.replace(b"0011", b"ffff")
    return box.archive()


@case("damaged", "data")
def header_set_user_id():
    box = Box()
    box.own_mode = 0o4755
    return box.archive()


@case("damaged", "data")
def padding():
    box = Box()
    box.padding = lambda data: padded(data).replace(b"\n\0\0", b"\n\0x")
    return box.archive()


@case("damaged", "data")
def garbage_in_header():
    box = Box()
    path, head, data = box.parts[1]
    head = head[:482] + b"x" + head[483:]
    box.parts[1] = (path, head[:148] + b"%06o\0 " % (sum(head[:148]) + 256 + sum(head[156:])) + head[156:], data)
    return box.archive()


@case("damaged", "data")
def attribute_form():
    box = Box()
    path, head, data = box.parts[1]
    box.parts[1] = (path, pax((b"SCHILY.xattr.user.%61", b"y")) + head, data)
    box.sql = "INSERT INTO attribute VALUES (2, 'user.a', x'79')"
    return box.archive()


# The manifest against the tar
for column, value in [("mode", "511"), ("modified", "modified + 1"), ('user', "7"), ('"group"', "7")]:
    manifest("entry-" + column.strip('"'), f"UPDATE entry SET {column} = {value} WHERE path = 'file'", noticed="data",
             restore="refused")
CASES["entry-mode"] = ("damaged", "structure", "refused", CASES["entry-mode"][3])  # part of the snapshot id
for column, value in [("sha256", "zeroblob(32)"), ("link_target", "x'41'"), ("hard_link", "'sub/file'"), ("size", "7"),
                      ("kind", "'directory'"), ("path", "'filf'"), ("mode", "-1"), ("size", "-1"), ("kind", "'fifo'"),
                      ("path", "'../file'"), ("path", "'/file'"), ("path", "'./file'"), ("path", "'a//b'")]:
    label = re.sub(r"\W+", "-", value.replace("..", "up").replace("./", "dot-").replace("'/", "root-")).strip("-")
    manifest(f"entry-{column}-{label}", f"UPDATE entry SET {column} = {value} WHERE path = 'file'", noticed="structure")
CASES["entry-path-filf"] = ("damaged", "structure", "refused", CASES["entry-path-filf"][3])
manifest("entry-path-with-nul", "UPDATE entry SET path = 'file' || char(0) || 'x' WHERE path = 'file'",
         noticed="structure")
manifest("entry-path-not-utf8", "UPDATE entry SET path = CAST(x'fffe' AS TEXT) WHERE path = 'file'", noticed="structure")
manifest("entry-path-as-blob", "UPDATE entry SET path = CAST(path AS BLOB) WHERE path = 'file'", noticed="structure")
manifest("entry-path-deep", "UPDATE entry SET path = 'sub' || replace(hex(zeroblob(300)), '00', '/d') || replace("
         "hex(zeroblob(300)), '00', '/d') WHERE path = 'sub/file'", noticed="structure")
manifest("attribute-extra", "INSERT INTO attribute VALUES (2, 'user.x', x'79')", noticed="data", restore="refused")
manifest("extent-offset", "UPDATE extent SET offset = offset - 512 WHERE entry = 2", noticed="data")
manifest("extent-unaligned", "UPDATE extent SET offset = offset + 1", noticed="structure")
manifest("extent-outside", "UPDATE extent SET offset = 1 << 60", noticed="structure")
manifest("extent-negative", "UPDATE extent SET offset = -512", noticed="structure")
manifest("extent-length", "UPDATE extent SET length = length - 1 WHERE entry = 2", noticed="structure")
manifest("extent-pieces", "UPDATE extent SET length = 4 WHERE entry = 2; INSERT INTO extent SELECT 2, 4, 0, offset, 4 "
         "FROM extent WHERE entry = 2", noticed="structure")
manifest("extent-gap", "UPDATE extent SET length = 4 WHERE entry = 2; INSERT INTO extent SELECT 2, 5, 0, offset + 4, 4 "
         "FROM extent WHERE entry = 2", noticed="structure")
manifest("entry-number", "UPDATE entry SET number = 99 WHERE number = 5; UPDATE extent SET entry = 99 WHERE entry = 5",
         noticed="structure")
manifest("block", "INSERT INTO block VALUES (512, 4096, zeroblob(16))", code="none", noticed="never", restore="fine")
manifest("required", "INSERT INTO required VALUES (1, 'ffffffffffffffffffffffffffffffff')")
manifest("extent-shared", "UPDATE extent SET offset = (SELECT min(offset) FROM extent)", noticed="structure")
manifest("extent-of-other-archive", "UPDATE extent SET archive = 1", noticed="structure")
manifest("extent-missing", "DELETE FROM extent", noticed="structure")
manifest("snapshot-id", "UPDATE property SET value = 'x' WHERE name = 'snapshot'", noticed="structure", restore="refused")
manifest("archive-id", "UPDATE property SET value = 'x' WHERE name = 'archive'")
manifest("superseded", "INSERT INTO superseded VALUES (1, 'file', 1)", noticed="data", restore="fine")
manifest("entries-missing", "DELETE FROM entry WHERE path = 'sub/file'; DELETE FROM extent WHERE entry = 5",
         noticed="structure", restore="refused")

# The manifest as a hostile database
manifest("sql-view", "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT n FROM r")
manifest("sql-trigger", "CREATE TRIGGER t AFTER INSERT ON entry BEGIN SELECT load_extension('x'); END")
manifest("sql-extra-table", "CREATE TABLE more(a, b AS (zeroblob(1000000000)))")
manifest("sql-extra-index", "CREATE INDEX i ON entry(size)")
manifest("sql-expression-index", "CREATE INDEX i ON entry(abs(size))")
manifest("sql-virtual-table", "CREATE VIRTUAL TABLE v USING fts5(a)")
manifest("sql-sequence", "CREATE TABLE s(a INTEGER PRIMARY KEY AUTOINCREMENT)")
manifest("sql-statistics", "ANALYZE")
manifest("sql-table-missing", "DROP TABLE required; VACUUM")
SCHEMA_EDIT = "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET %s; PRAGMA writable_schema=OFF;"
manifest("sql-generated-column", SCHEMA_EDIT % "sql = replace(sql, 'inode INTEGER NOT NULL', "
         "'inode INTEGER AS (length(zeroblob(1 << 30)))') WHERE name = 'entry'")
manifest("sql-view-for-table", SCHEMA_EDIT % "type = 'view', rootpage = 0, "
         "sql = 'CREATE VIEW entry AS SELECT * FROM entry' WHERE name = 'entry'")
manifest("sql-shared-root", SCHEMA_EDIT % "rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'extent') "
         "WHERE name = 'required'")
manifest("sql-root-outside", SCHEMA_EDIT % "rootpage = 9999 WHERE name = 'required'")
manifest("sql-root-of-schema", SCHEMA_EDIT % "rootpage = 1 WHERE name = 'required'")
manifest("sql-not-strict", SCHEMA_EDIT % "sql = replace(sql, 'STRICT', '') WHERE name = 'entry'")
manifest("sqlite-utf16", edit=lambda m: m[:56] + b"\0\0\0\2" + m[60:])
manifest("sqlite-wal-mode", edit=lambda m: m[:18] + b"\2\2" + m[20:])
manifest("sqlite-page-size", edit=lambda m: m[:16] + b"\2\0" + m[18:])
manifest("sqlite-reserved", edit=lambda m: m[:20] + b"\x20" + m[21:])
manifest("sqlite-page-count", edit=lambda m: m[:28] + b"\x7f\xff\xff\xff" + m[32:])
manifest("sqlite-free-list", edit=lambda m: m[:32] + b"\0\0\0\2\0\0\0\1" + m[40:])
manifest("sqlite-vacuum", edit=lambda m: m[:52] + b"\0\0\0\2" + m[56:])
manifest("sqlite-cut", edit=lambda m: m[:-4096])
manifest("sqlite-longer", edit=lambda m: m + b"\0" * 4096)
manifest("sqlite-magic", edit=lambda m: b"X" + m[1:])
manifest("sqlite-empty", edit=lambda m: b"")
manifest("sqlite-noise", edit=lambda m: m[:100] + hashlib.sha256(b"x").digest() * 128)


def root_page(m, name):
    with tempfile.NamedTemporaryFile() as f:
        f.write(m)
        f.flush()
        db = sqlite3.connect(f.name)
        return db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [name]).fetchone()[0]


def page_edit(name, make):
    def edit(m):
        number = root_page(bytes(m), name)
        at = (number - 1) * 4096
        m[at:at + 4096] = make(number, bytes(m[at:at + 4096]), bytes(m))
        return m
    return edit


def interior(children):
    """An interior page of a table whose children are these, with ever larger keys."""
    cells, pointers, at = b"", b"", 4096
    for key, child in enumerate(children[:-1], 1):
        cell = struct.pack(">I", child) + bytes([key % 128])
        at -= len(cell)
        cells, pointers = cell + cells, pointers + struct.pack(">H", at)
    head = struct.pack(">BHHHBI", 5, 0, len(children) - 1, at, 0, children[-1]) + pointers
    return head + b"\0" * (4096 - len(head) - len(cells)) + cells


manifest("tree-cycle", edit=page_edit("excluded", lambda n, p, m: interior([n, n])))
manifest("tree-many-parents", edit=page_edit("excluded", lambda n, p, m: interior([root_page(m, "entry")] * 100)))
manifest("tree-corrupt-cell", edit=page_edit("entry", lambda n, p, m: p[:8] + b"\xff\xff" + p[10:]))
manifest("tree-cell-count", edit=page_edit("entry", lambda n, p, m: p[:3] + b"\xff\xff" + p[5:]))
manifest("tree-page-kind", edit=page_edit("entry", lambda n, p, m: b"\x02" + p[1:]))
manifest("tree-index-lies", edit=page_edit("sqlite_autoindex_property_1", lambda n, p, m: p.replace(b"snap", b"snaq")))


def overflow_cycle(m):
    number = root_page(bytes(m), "property")
    at = (number - 1) * 4096
    cell = b"\x87\xff\xff\x7f" + b"\x01" + b"\x03" + b"x" * 480 + struct.pack(">I", number)
    page = struct.pack(">BHHHB", 13, 0, 1, 4096 - len(cell), 0) + struct.pack(">H", 4096 - len(cell))
    m[at:at + 4096] = page + b"\0" * (4096 - len(page) - len(cell)) + cell
    return m


manifest("tree-overflow-cycle", edit=overflow_cycle)


# Bombs
def equal_frames(count):
    """So many frames of 4 MiB of one letter, of which each is 150 bytes. Zeros would be holes."""
    frame = compress(b"A" * (4 << 20))
    return [frame] * count, [[len(frame), 4 << 20, struct.unpack("<I", frame[-4:])[0]]] * count


@case("limit", "data")
def bomb():
    box = Box()
    size = 260 * (4 << 20)
    tar = box.tar()
    box.file(b"text", b"")
    box.parts.pop()
    box.entries[-1][6:8] = [size, bytes(32)]
    row = box.entries.pop()
    box.entries.append(row)
    head = file(b"drydock.json", box.header, mtime=CAPTURED)
    offsets, body = {}, head
    for path, h, content in box.parts:
        body += h
        offsets[path] = len(body)
        body += padded(content)
    body += block(b"container/text", b"0", size)
    offsets[b"text"] = len(body)
    data = bytes(box.manifest(offsets))
    tail = block(b"manifest.sqlite", b"0", len(data), mtime=CAPTURED)
    place = (len(body) + size + len(tail), len(data), hashlib.sha256(data).digest())
    first, e1 = parts(body)
    letters, e2 = equal_frames(260)
    last, e3 = parts(tail + padded(data) + bytes(1024))
    return b"".join(first + letters + last) + location(place) + table(e1 + e2 + e3 + [NOTHING])


# The file
GOOD = Box()
TAR = GOOD.tar()
PLACE = GOOD.place
FRAMES, ENTRIES = parts(TAR, 30_000)
DATA = b"".join(FRAMES)


def whole(name, code, noticed, data, restore="refused"):
    CASES[name] = (code, noticed, restore, lambda: data)


def lying(name, code, noticed, change=None, restore="refused", **more):
    entries = [list(e) for e in ENTRIES] + [list(NOTHING)]
    if change:
        change(entries)
    whole(name, code, noticed, DATA + location(PLACE) + table(entries, **more), restore)


def put(index, column, value):
    def change(entries):
        entries[index][column] = value if value >= 0 else entries[index][column] + value
    return change


FULL = DATA + location(PLACE) + table(ENTRIES + [NOTHING])
whole("empty", "truncated", "open", b"")
whole("three-bytes", "truncated", "open", FULL[:3])
whole("zeros", "notAnArchive", "open", bytes(1000))
whole("text", "notAnArchive", "open", b"this is no archive, it is text\n" * 9)
whole("zstd-of-text", "notAnArchive", "open", compress(b"hello\n", "--no-check"))
whole("tar-zst-of-another", "notAnArchive", "open", compress(file(b"x", b"y") + bytes(1024), "--no-check"))
whole("age", "damaged", "open", b"age-encryption.org/v1\n-> X25519 abc\nabc\n--- abc\n")
whole("age-armored", "encrypted", "open", b"-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n")
whole("cut-at-frame", "truncated", "open", FRAMES[0])
whole("cut-in-frame", "truncated", "open", DATA[:-9])
whole("cut-before-location", "truncated", "open", DATA)
whole("cut-before-table", "truncated", "open", DATA + location(PLACE))
whole("cut-in-table", "truncated", "open", FULL[:-5])
whole("garbage-after", "truncated", "open", FULL + b"garbage")
whole("archive-after", "damaged", "open", FULL + FULL)
whole("skippable-first", "notAnArchive", "open", struct.pack("<II", 0x184D2A51, 4) + b"data" + FULL)
whole("skippable-between", "damaged", "open",
      DATA + struct.pack("<II", 0x184D2A51, 4) + b"data" + location(PLACE) + table(ENTRIES + [NOTHING]))
whole("skippable-listed", "limit", "open", DATA + struct.pack("<II", 0x184D2A51, 4) + b"data" + location(PLACE)
      + table(ENTRIES + [[12, 0, NOTHING[2]], NOTHING]))
lying("table-descriptor", "newerFormat", "open", descriptor=0x00)
lying("table-count-less", "damaged", "open", count=len(ENTRIES))
lying("table-count-more", "damaged", "open", count=1 << 20)
lying("table-count-most", "damaged", "open", count=0xFFFFFFFF)
lying("table-size", "damaged", "open", size=9)
lying("table-magic", "damaged", "open", magic=0x184D2A5F)
lying("table-frame-4-gib", "limit", "open", put(0, 1, 0xFFFFFFFF))
lying("table-frame-5-mib", "limit", "open", put(0, 1, 5 << 20))
lying("table-frame-empty", "limit", "open", put(0, 1, 0))
lying("table-frame-shorter", "damaged", "open", put(0, 1, -512))
lying("table-frame-compressed", "damaged", "open", put(0, 0, -1))
lying("table-frame-compressed-huge", "damaged", "open", put(0, 0, 0xFFFFFFFF))
lying("table-checksum", "damaged", "open", put(0, 2, 1))
lying("table-checksum-last-frame", "damaged", "open", put(len(ENTRIES) - 1, 2, 1))
lying("table-frames-swapped", "notAnArchive", "open", lambda e: e.reverse())
lying("table-without-location", "notAnArchive", "open", lambda e: e.pop())
lying("table-empty", "damaged", "open", lambda e: e.clear())
for name, code, frame in [
        ("location-check", "damaged", location(PLACE, check=b"12345678")),
        ("location-version", "newerFormat", location(PLACE, version=2)),
        ("location-reserved", "newerFormat", location(PLACE, reserved=1)),
        ("location-magic", "notAnArchive", location(PLACE, magic=b"another\0")),
        ("location-offset", "damaged", location((PLACE[0] + 512, *PLACE[1:]))),
        ("location-outside", "damaged", location((1 << 40, *PLACE[1:]))),
        ("location-overflow", "damaged", location(((1 << 64) - 1, (1 << 64) - 1, PLACE[2]))),
        ("location-length", "damaged", location((PLACE[0], PLACE[1] - 1, PLACE[2]))),
        ("location-hash", "damaged", location((*PLACE[:2], bytes(32)))),
        ("location-of-header", "damaged", location((512, len(HEADER), hashlib.sha256(HEADER.encode()).digest())))]:
    whole(name, code, "open", DATA + frame + table(ENTRIES + [NOTHING]))


def reframed(name, frame, plain, checksum=None, code="damaged"):
    entry = [len(frame), plain, struct.unpack("<I", frame[-4:])[0] if checksum is None else checksum]
    whole(name, code, "open", frame + location(PLACE) + table([entry, NOTHING]))


ONE = compress(TAR)
BODY = ONE[5 + (2 if ONE[4] >> 6 == 1 else 4):]  # single segment: descriptor, then the size
reframed("frame-without-checksum", compress(TAR, "--no-check"), len(TAR), ENTRIES[0][2])
reframed("frame-without-size", compress(TAR, "--no-content-size"), len(TAR))
reframed("frame-window-of-2-gib", ONE[:4] + bytes([0x84, 21 << 3]) + struct.pack("<I", len(TAR)) + BODY, len(TAR),
         code="limit")
reframed("frame-window-of-9-mib", ONE[:4] + bytes([0x84, 0x69]) + struct.pack("<I", len(TAR)) + BODY, len(TAR),
         code="limit")
reframed("frame-with-dictionary", ONE[:4] + bytes([0xA5, 7]) + struct.pack("<I", len(TAR)) + BODY, len(TAR))
reframed("frame-two-in-one", compress(TAR[:1024]) + compress(TAR[1024:]), len(TAR))
reframed("frame-flipped", ONE[:60] + bytes([ONE[60] ^ 1]) + ONE[61:], len(TAR))


if __name__ == "__main__":
    for old in os.listdir(HERE):
        if old.endswith(".tar.zst"):
            os.remove(HERE + "/" + old)
    with open(HERE + "/table.tsv", "w") as out:
        out.write("# archive\tcode\tnoticed when\ta restore\n")
        for name, (code, noticed, restore, make) in sorted(CASES.items()):
            open(f"{HERE}/{name}.tar.zst", "wb").write(make())
            out.write(f"{name}\t{code}\t{noticed}\t{restore}\n")
