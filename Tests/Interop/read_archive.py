#!/usr/bin/env python3
"""Restores a full Drydock archive: read_archive.py ARCHIVE NEW-DIRECTORY

Written from the format document (Archives.md) alone. It needs Python 3 and the program zstd, and trusts no number before it is checked.
"""
import hashlib, os, re, sqlite3, struct, subprocess, sys, tarfile, tempfile

archive, target = (os.fsencode(a) for a in sys.argv[1:])
data = open(archive, "rb").read()

def need(condition, what):
    if not condition:
        sys.exit(f"{os.fsdecode(archive)}: {what}")

sha256 = lambda data: hashlib.sha256(data).digest()

# The end: seek table, then the manifest's location.
count, descriptor, magic = struct.unpack("<IBI", data[-9:].rjust(9, b"\0"))
start = len(data) - (8 + 12 * count + 9)
need(magic == 0x8F92EAB1 and descriptor == 0x80 and start >= 80, "no seek table: cut, or no archive")
need(data[start:start + 8] == struct.pack("<II", 0x184D2A5E, 12 * count + 9), "the seek table is damaged")
frames = list(struct.iter_unpack("<III", data[start + 8:-9]))
need(frames[-1:] == [(80, 0, 0x51D8E999)] and sum(f[0] for f in frames) == start, "the seek table does not add up")
place = data[start - 80:start]
need(place[:24] == struct.pack("<II8sII", 0x184D2A50, 72, b"drydock\0", 1, 0), "the location frame is of another kind")
need(sha256(place[:72])[:8] == place[72:], "the location frame is damaged")
offset, length, digest = struct.unpack("<QQ32s", place[24:72])

# The tar stream, into a file without a name.
tar = tempfile.TemporaryFile()
for at, (packed, plain, _) in zip([sum(f[0] for f in frames[:i]) for i in range(len(frames) - 1)], frames):
    need(0 < plain <= 4 << 20, "a frame of an impossible size")
    frame = subprocess.run(["zstd", "-dcq"], input=data[at:at + packed], capture_output=True)
    need(frame.returncode == 0 and len(frame.stdout) == plain, f"the frame at byte {at} is damaged")
    tar.write(frame.stdout)

def exclusion_flags(rows, own):  # the last field of an entry in the snapshot id
    bare = {name.removeprefix(b"user."): value for name, value in rows}
    old = any(bare.get(b"com.apple.MobileBackup", b""))
    apple = old or b"com.apple.metadata:com_apple_backup_excludeItem" in bare
    robots = not apple and dict(rows).get(b"user.xdg.robots.backup", b"").split() == [b"false"]
    return b",".join([b"apple-attribute"] * apple + [b"robots-attribute"] * robots + [own] * bool(own))

def blocks(data, size):  # what the hash of a database or large file is of
    hashes = [sha256(data[at:at + size])[:16] for at in range(0, len(data), size)]
    return b"drydock blocks" + struct.pack(">QQ", size, len(data)) + b"".join(hashes)

def read(offset, length):
    tar.seek(offset)
    found = tar.read(length)
    need(len(found) == length, "content lies outside of the archive")
    return found

scratch = tempfile.NamedTemporaryFile()
scratch.write(read(offset, length))
scratch.flush()
need(sha256(read(offset, length)) == digest, "the manifest is damaged")
manifest = sqlite3.connect(f"file:{scratch.name}?mode=ro", uri=True)
manifest.execute("PRAGMA trusted_schema = OFF")
manifest.text_factory = bytes
properties = dict(manifest.execute("SELECT CAST(name AS TEXT), value FROM property"))
need(properties[b"format"] == 2, "another format")

# What the tar says, by path. (A text path and a blob come as the same bytes.)
members = {}
for m in tarfile.open(fileobj=(tar.seek(0), tar)[1], encoding="utf-8", errors="surrogateescape"):
    name = os.fsencode(m.name)
    need(name in (b"drydock.json", b"manifest.sqlite") or re.match(rb"container(/|$)", name), "an unknown member")
    members[name] = m

COLUMNS = 'path, kind, mode, user, "group", modified, e.size, sha256, link_target, hard_link, flags, x.offset'
QUERY = f"SELECT number, {COLUMNS} FROM entry e LEFT JOIN extent x ON x.entry = number ORDER BY number"
snapshot, later = hashlib.sha256(), []
for number, path, kind, mode, user, group, time, size, sha, link, hard, flags, offset in manifest.execute(QUERY):
    rows = manifest.execute("SELECT name, value FROM attribute WHERE entry = ?", [number]).fetchall()
    flags = exclusion_flags(rows, flags)
    for field in (path, kind, b"%o" % mode, b"%d" % size, sha or b"", link or b"", hard or b"", flags):
        snapshot.update(struct.pack(">Q", len(field)) + field)
    need(path == b"" or not {b"", b".", b".."} & set(path.split(b"/")), f"an unsafe path {path}")
    place, m = os.path.join(target, path).rstrip(b"/"), members.pop(b"container" + (path and b"/" + path), None)
    need(m and m.mode == mode and (m.uid, m.gid) == (user, group), f"{path} in the tar is not as the manifest has it")
    if kind == b"directory":
        os.mkdir(place)  # parents come first, and everything is new: no link is ever followed
    elif kind == b"symbolic-link":
        os.symlink(link, place)
    elif hard is not None:
        os.link(os.path.join(target, hard), place)
    else:
        content = read(offset, size) if size else b""
        hashed = content[:24] + bytes(4) + content[28:92] + bytes(8) + content[100:] if kind == b"database" else content
        if kind == b"database" and content:
            page = struct.unpack(">H", content[16:18])[0]
            hashed = blocks(hashed, 65536 if page == 1 else page)
        elif size > 1 << 20:
            hashed = blocks(content, 32768)
        need(sha256(hashed) == sha and m.offset_data == (offset or m.offset_data), f"the content of {path} is damaged")
        with open(place, "xb") as file:
            file.write(content)
    later.append((path, place, kind, mode, user, group, time, rows))
need(set(members) == {b"drydock.json", b"manifest.sqlite"}, "the tar has members that the manifest does not have")
need(snapshot.hexdigest().encode() == properties[b"snapshot"], "the snapshot id is another")
for path, place, kind, mode, user, group, time, rows in reversed(later):  # directories after what is in them
    if os.geteuid() == 0:
        os.chown(place, user, group, follow_symlinks=False)
    for name, value in rows:
        os.setxattr(place, name, value, follow_symlinks=False)
    if kind != b"symbolic-link":
        os.chmod(place, mode)
    os.utime(place, ns=(time, time), follow_symlinks=False)
