#!/usr/bin/env python3
"""Writes the samples of device backups: make_device_backup.py DIRECTORY [iphone|android]

An independent writer of the formats that `Sources/DeviceBackups` reads, from descriptions of their bytes. All values are
made up. Needs python3-cryptography. The samples are committed: keys and salts are derived from names, so that each run
writes the same bytes. Rounds of key derivation are few, where devices use 10,000,000 and more.

A backup of Finder or iTunes is a directory:
  Info.plist, Status.plist  what is shown of it
  Manifest.plist            IsEncrypted, BackupKeyBag, ManifestKey, Applications
  Manifest.db               SQLite: Files(fileID, domain, relativePath, flags, file), Properties(key, value)
  ab/abcdef…                contents; the name is the SHA-1 of DOMAIN-PATH
`file` is a keyed archive (NSKeyedArchiver) of one MBFile.
Encrypted: the keybag's fields are TAG(4) LENGTH(u32 BE) VALUE. The keys of classes are wrapped (RFC 3394) with
PBKDF2-SHA1(PBKDF2-SHA256(password, DPSL, DPIC), SALT, ITER). A file's key: CLASS(u32 LE) WRAPPED(40). Contents and
Manifest.db are AES-256-CBC with an IV of zeros and PKCS #7 padding.
A keychain item is VERSION(u32 LE)=3 CLASS(u32 LE) LENGTH(u32 LE) WRAPPED, then AES-256-GCM with an EMPTY nonce of a DER SET of
SEQUENCEs {UTF8String, value}, then the tag.

A file of `adb backup` has the lines ANDROID BACKUP, version, compressed, encryption; encrypted also salt, checksum salt,
rounds, IV, key blob (hexadecimal); then a tar, compressed with zlib, encrypted with AES-256-CBC.

Other readers open the samples: iphone_backup_decrypt 0.11.2 and android-backup 0.2.0, both of PyPI.
"""
import hashlib, hmac, io, os, plistlib, shutil, sqlite3, struct, sys, tarfile, tempfile, zlib
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import aes_key_wrap

PASSWORD = b"correct horse"
DAY = 1_795_000_000  # 2026-11-18


def secret(name, count=32):
    """Bytes that only depend on a name."""
    return hashlib.shake_256(b"sample of " + name.encode()).digest(count)


def cbc(key, plain, iv=bytes(16)):
    pad = 16 - len(plain) % 16
    encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    return encryptor.update(plain + bytes([pad]) * pad) + encryptor.finalize()


# AES-256-GCM by NIST SP 800-38D, for any length of the nonce.


def multiply(x, y):
    product = 0
    for bit in range(127, -1, -1):
        if y >> bit & 1:
            product ^= x
        x = x >> 1 ^ (0xE1 << 120 if x & 1 else 0)
    return product


def ghash(h, data):
    y = 0
    for start in range(0, len(data), 16):
        y = multiply(y ^ int.from_bytes(data[start:start + 16], "big"), h)
    return y


def gcm(key, nonce, plain):
    ecb = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    block = lambda number: ecb.update(number.to_bytes(16, "big"))
    h = int.from_bytes(block(0), "big")
    padded = lambda data: data + bytes(-len(data) % 16)
    if len(nonce) == 12:
        start = int.from_bytes(nonce + b"\0\0\0\1", "big")
    else:
        start = ghash(h, padded(nonce) + bytes(8) + struct.pack(">Q", len(nonce) * 8))
    count = start
    cipher = b""
    for at in range(0, len(plain), 16):
        count = count >> 32 << 32 | (count + 1) & 0xFFFFFFFF
        cipher += bytes(a ^ b for a, b in zip(plain[at:at + 16], block(count)))
    sum = ghash(h, padded(cipher) + bytes(8) + struct.pack(">Q", len(cipher) * 8))
    return cipher + (sum ^ int.from_bytes(block(start), "big")).to_bytes(16, "big")


for count in (0, 1, 16, 33, 100):  # with the nonces that the library supports
    for nonce in (12, 16, 8, 21):
        k, n, p = secret("k"), secret("n", nonce), secret("p", count)
        assert gcm(k, n, p) == AESGCM(k).encrypt(n, p, None)


def der(value):
    def element(tag, content):
        if len(content) < 128:
            return bytes([tag, len(content)]) + content
        length = len(content).to_bytes(4, "big").lstrip(b"\0")
        return bytes([tag, 0x80 | len(length)]) + length + content

    if isinstance(value, bool):
        return element(1, b"\xff" if value else b"\0")
    if isinstance(value, int):
        return element(2, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
    if isinstance(value, bytes):
        return element(4, value)
    if isinstance(value, str):
        return element(0x0C, value.encode())
    if isinstance(value, tuple):  # a time
        return element(0x18, value[0].encode())
    if isinstance(value, dict):
        return element(0x31, b"".join(sorted(element(0x30, der(k) + der(v)) for k, v in value.items())))
    raise TypeError(value)


class Keybag:
    """The classes of a backup. Those from 9 to 11 are wrapped with a key of the device too."""

    def __init__(self, password=PASSWORD, rounds=(5, 3)):
        self.keys = {number: secret(f"class {number}") for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)}
        first = hashlib.pbkdf2_hmac("sha256", password, secret("DPSL", 20), rounds[0], 32)
        key = hashlib.pbkdf2_hmac("sha1", first, secret("SALT", 20), rounds[1], 32)
        field = lambda tag, value: tag + struct.pack(">I", len(value)) + value
        number = lambda tag, value: field(tag, struct.pack(">I", value))
        self.bytes = (number(b"VERS", 5) + number(b"TYPE", 1) + field(b"UUID", secret("keybag", 16))
                      + field(b"HMCK", secret("HMCK", 40)) + number(b"WRAP", 0) + field(b"SALT", secret("SALT", 20))
                      + number(b"ITER", rounds[1]) + number(b"DPWT", 1) + number(b"DPIC", rounds[0])
                      + field(b"DPSL", secret("DPSL", 20)))
        for n, own in self.keys.items():
            device = n in (9, 10, 11)
            wrapped = aes_key_wrap(key, secret(f"device {n}") if device else own)
            # The order of the fields differs between versions of iOS.
            parts = [number(b"CLAS", n), number(b"WRAP", 3 if device else 2), number(b"KTYP", 0), field(b"WPKY", wrapped)]
            self.bytes += field(b"UUID", secret(f"uuid {n}", 16)) + b"".join(parts[::-1] if n % 2 else parts)

    def wrap(self, number, key):
        return struct.pack("<I", number) + aes_key_wrap(self.keys[number], key)


def record(path, mode, size, modified, protection, target=None, key=None, attributes=None):
    """A keyed archive of one MBFile."""
    U = plistlib.UID
    objects = ["$null", None]

    def add(value):
        objects.append(value)
        return U(len(objects) - 1)

    named = lambda name, *above: {"$classname": name, "$classes": [name, *above, "NSObject"]}
    fields = {"LastModified": modified, "LastStatusChange": modified + 5, "Birth": modified - 9, "Mode": mode, "Size": size,
              "UserID": 501, "GroupID": 501, "InodeNumber": 4242, "Flags": 0, "ProtectionClass": protection,
              "RelativePath": add(path), "$class": add(named("MBFile"))}
    data = None
    for name, value in (("EncryptionKey", key), ("ExtendedAttributes", attributes)):
        if value is not None:
            data = data or add(named("NSMutableData", "NSData"))
            fields[name] = add({"NS.data": value, "$class": data})
    if target is not None:
        fields["Target"] = add(target)
    objects[1] = fields
    return plistlib.dumps({"$version": 100000, "$archiver": "NSKeyedArchiver", "$top": {"root": U(1)}, "$objects": objects},
                          fmt=plistlib.FMT_BINARY, sort_keys=True)


class IPhoneBackup:
    def __init__(self, directory, keybag=None):
        self.directory, self.keybag, self.rows = directory, keybag, []
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)

    def add(self, domain, path, content=None, flags=1, mode=0o644, modified=DAY, protection=3, target=None,
            attributes=None, size=None, id=None, key=None, blob=None):
        name = id or hashlib.sha1(f"{domain}-{path}".encode()).hexdigest()
        if content is not None:
            stored = content
            if self.keybag:
                own = secret(domain + path)
                key = key or self.keybag.wrap(protection, own)
                stored = cbc(own, content)
            os.makedirs(f"{self.directory}/{name[:2]}", exist_ok=True)
            with open(f"{self.directory}/{name[:2]}/{name}", "wb") as file:
                file.write(stored)
        kind = {1: 0o100000, 2: 0o040000, 4: 0o120000}.get(flags, 0)
        if attributes is not None:
            attributes = plistlib.dumps(attributes, fmt=plistlib.FMT_BINARY)
        length = size if size is not None else len(content or b"")
        blob = blob or record(path, kind | mode, length, modified, protection, target, key, attributes)
        self.rows.append((name, domain, path, flags, blob))

    def folder(self, domain, path, mode=0o755, modified=DAY):
        self.add(domain, path, flags=2, mode=mode, modified=modified, protection=0)

    def finish(self, schema=None, manifest={}):
        database = self.directory + "/Manifest.db"
        if os.path.exists(database):
            os.remove(database)
        db = sqlite3.connect(database)
        db.executescript(schema or """
            CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB);
            CREATE INDEX FilesDomainIdx ON Files(domain);
            CREATE INDEX FilesRelativePathIdx ON Files(relativePath);
            CREATE INDEX FilesFlagsIdx ON Files(flags);
            CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
            """)
        if not schema:
            db.executemany("INSERT INTO Files VALUES (?, ?, ?, ?, ?)", self.rows)
        db.commit()
        db.execute("VACUUM")
        db.close()
        values = {"IsEncrypted": self.keybag is not None, "Version": "10.0", "WasPasscodeSet": True,
                  "Lockdown": {"DeviceName": "Ada's iPhone", "ProductVersion": "18.1"},
                  "Applications": {"com.example.notes": {"CFBundleIdentifier": "com.example.notes",
                                                         "ContainerContentClass": "Data/Application",
                                                         "GroupContainers": {"group.example.shared": {}}}}}
        if self.keybag:
            key = secret("Manifest.db")
            plain = open(database, "rb").read()
            open(database, "wb").write(cbc(key, plain))
            values["BackupKeyBag"], values["ManifestKey"] = self.keybag.bytes, self.keybag.wrap(4, key)
        values.update(manifest)
        values = {k: v for k, v in values.items() if v is not None}
        time = plistlib.loads(b"<plist><date>2026-11-18T08:26:40Z</date></plist>")
        for name, content, form in (("Manifest.plist", values, plistlib.FMT_BINARY),
                                    ("Status.plist", {"IsFullBackup": True, "SnapshotState": "finished"}, plistlib.FMT_BINARY),
                                    ("Info.plist", {"Device Name": "Ada's iPhone", "Product Version": "18.1",
                                                    "Last Backup Date": time}, plistlib.FMT_XML)):
            with open(f"{self.directory}/{name}", "wb") as file:
                plistlib.dump(content, file, fmt=form, sort_keys=True)


APP, GROUP, SHARED = "AppDomain-com.example.notes", "AppDomainGroup-group.com.example.notes", "AppDomainGroup-group.example.shared"


def database(*statements):
    with tempfile.TemporaryDirectory() as directory:
        db = sqlite3.connect(directory + "/db")
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()
        return open(directory + "/db", "rb").read()


def item(keybag, number, attributes, version=3):
    key = secret(repr(sorted(attributes.items(), key=lambda pair: pair[0])))
    wrapped = keybag.wrap(number, key)[4:] if keybag else secret("device", 40)
    sealed = gcm(key, b"", der(attributes))
    return {"v_Data": struct.pack("<III", version, number, len(wrapped)) + wrapped + sealed,
            "v_PersistentRef": secret("reference", 20)}


def keychain(keybag):
    password = lambda number, pdmn, service, account, value, group="A1B2C3D4E5.com.example.notes", **more: item(
        keybag, number, {"acct": account, "svce": service, "agrp": group, "pdmn": pdmn, "sync": 0, "tomb": 0, "musr": b"",
                         "cdat": ("20261101101500Z",), "mdat": ("20261102101500.5Z",), "sha1": secret("sha1", 20),
                         "v_Data": value, **more})
    return plistlib.dumps({
        "genp": [
            password(6, "ak", "com.example.notes", "auth", b"made-up-token-of-ada", labl="Sign-in", gena=b"\x00\xff"),
            password(7, "ck", "com.example.notes", "sync", "pässword".encode(), sync=1),
            password(6, "ak", "shared", "widget", b"of the group", group="group.com.example.notes"),
            password(6, "ak", "com.example.other", "auth", b"of another app", group="A1B2C3D4E5.com.example.other"),
            password(7, "ck", "billing", "key", b"of a named access group", group="A1B2C3D4E5.com.example.billing"),
            # A class of this device only that the password opens, which no device writes.
            password(8, "dku", "com.example.notes", "local", b"stays"),
            item(keybag, 9, {"agrp": "A1B2C3D4E5.com.example.notes", "v_Data": b"for the device"}),
            item(keybag, 6, {"agrp": "A1B2C3D4E5.com.example.notes", "v_Data": b"with access control"}, version=6),
        ],
        "inet": [password(6, "ak", "", "ada", b"mail", srvr="mail.example.com", ptcl="imap", port=143, path="/")],
        "cert": [item(keybag, 6, {"agrp": "com.example.notes", "pdmn": "ak", "issr": b"\x30\x01\x80", "slnr": b"\x01\x02",
                                  "ctyp": 3, "v_Data": b"DER of a certificate"})],
        "keys": [item(keybag, 6, {"agrp": "com.example.notes", "pdmn": "ak", "klbl": secret("klbl", 20), "atag": b"com.example.key",
                                  "kcls": 1, "type": 42, "bsiz": 2048, "v_Data": b"DER of a key"})],
    }, fmt=plistlib.FMT_BINARY, sort_keys=True)


def sample(directory, keybag):
    backup = IPhoneBackup(directory, keybag)
    add = backup.add
    backup.folder(APP, "")
    for path in ("Documents", "Documents/Photos", "Library", "Library/Preferences", "Library/Application Support"):
        backup.folder(APP, path, modified=DAY + len(path))
    backup.folder(APP, "Documents/Empty", mode=0o700, modified=DAY - 100)
    settings = plistlib.dumps({"theme": "dark", "launches": 41}, fmt=plistlib.FMT_BINARY)
    add(APP, "Library/Preferences/com.example.notes.plist", settings, mode=0o600, modified=DAY + 1)
    notes = database("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)", "INSERT INTO note VALUES (1, 'made up')")
    add(APP, "Library/Application Support/notes.sqlite", notes, modified=DAY + 2)
    add(APP, "Documents/Photos/a.jpg", secret("photo", 20_001), protection=1, modified=DAY + 3,
        attributes={"com.example.tag": b"red", "com.apple.metadata:kMDItemWhereFroms": b"bplist00"})
    add(APP, "Documents/empty.txt", b"", modified=DAY + 4)
    add(APP, "Documents/block.bin", secret("block", 4096), protection=4)
    add(APP, "Documents/zwölf ü.txt", "größer\n".encode(), mode=0o444)
    add(APP, "Documents/link", flags=4, target="Photos/a.jpg", mode=0o755)
    backup.folder(GROUP, "")
    backup.folder(GROUP, "Library")
    backup.folder(GROUP, "Library/Preferences")
    add(GROUP, "Library/Preferences/group.com.example.notes.plist", plistlib.dumps({"widget": True}, fmt=plistlib.FMT_BINARY))
    add(SHARED, "shared.txt", b"of two apps\n")
    add("AppDomainGroup-group.other", "x.txt", b"of another app\n")
    add("AppDomainPlugin-com.example.notes.widget", "Documents/w.txt", b"of an extension\n")
    add("AppDomain-com.example.other", "Documents/o.txt", b"of another app\n")
    add("HomeDomain", "Library/SMS/sms.db", b"not of an app")
    add("KeychainDomain", "keychain-backup.plist", keychain(keybag))
    backup.finish()


# Android


def android(path, version=5, compressed=True, password=None, tar=None, rounds=7, cut=None):
    data = tar if tar is not None else android_tar()
    if compressed:
        data = zlib.compress(data, 9)
    lines = ["ANDROID BACKUP", str(version), str(int(compressed)), "AES-256" if password else "none"]
    if password:
        salt, check, iv, key, own = (secret(name, count) for name, count in (
            ("user salt", 64), ("checksum salt", 64), ("user IV", 16), ("master key", 32), ("master IV", 16)))
        pbkdf2 = lambda text, salt: hashlib.pbkdf2_hmac("sha1", text, salt, rounds, 32)
        # Java makes characters of signed bytes. Version 1 used their low 8 bits, later versions use UTF-8.
        text = key if version == 1 else "".join(chr(b if b < 128 else 0xFF00 | b) for b in key).encode()
        form = password if version > 1 else bytes(ord(c) & 0xFF for c in password.decode())
        blob = b"".join(bytes([len(part)]) + part for part in (own, key, pbkdf2(text, check)))
        lines += [salt.hex().upper(), check.hex().upper(), str(rounds), iv.hex().upper(),
                  cbc(pbkdf2(form, salt), blob, iv).hex().upper()]
        data = cbc(key, data, own)
    content = "".join(line + "\n" for line in lines).encode() + data
    with open(path, "wb") as file:
        file.write(content[:cut])


def android_tar(extra=(), bare=False):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:

        def add(name, content=None, mode=0o600, type=None, modified=DAY, link=""):
            info = tarfile.TarInfo(name)
            info.mode, info.mtime, info.uid, info.gid = mode, modified, 10123, 10123
            info.type = type or (tarfile.DIRTYPE if content is None else tarfile.REGTYPE)
            info.size, info.linkname = len(content or b""), link
            tar.addfile(info, io.BytesIO(content or b""))

        if not bare:
            add("apps/com.example.notes/_manifest", b"1\ncom.example.notes\n7\n35\n\n1\n1\nAB\n")
            add("apps/com.example.notes/a/base.apk", b"the app itself")
            add("apps/com.example.notes/sp", mode=0o771)
            add("apps/com.example.notes/sp/com.example.notes_preferences.xml", b"""<?xml version='1.0' encoding='utf-8' standalone='yes' ?>
<map>
    <string name="theme">dark</string>
</map>
""", mode=0o660, modified=DAY + 1)
            add("apps/com.example.notes/db", mode=0o771)
            add("apps/com.example.notes/db/notes.db", database("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)",
                                                              "INSERT INTO note VALUES (1, 'made up')"), mode=0o660)
            add("apps/com.example.notes/f", mode=0o771, modified=DAY + 7)
            add("apps/com.example.notes/f/photos", mode=0o700, modified=DAY + 8)
            add("apps/com.example.notes/f/photos/a.jpg", secret("photo", 20_001), modified=DAY + 9)
            add("apps/com.example.notes/f/empty", b"")
            add("apps/com.example.notes/r/app_webview/x.bin", b"in the root")
            add("apps/com.example.notes/nb/token", b"never backed up by Android")
            add("apps/com.example.notes/ef/export.txt", b"on shared storage")
            add("apps/com.example.notes/d_f/early.txt", b"before the first unlock")
            add("apps/com.example.notes/k/com.example.notes.data", b"key-value data")
            add("apps/com.example.other/_manifest", b"1\ncom.example.other\n")
            add("apps/com.example.other/f/o.txt", b"of another app")
            add("shared/0/DCIM/p.jpg", b"not of an app")
        for arguments in extra:
            add(**arguments)
    # Android ends a tar with two blocks of zeros, Python with more.
    data = stream.getvalue().rstrip(b"\0")
    return data + bytes(-len(data) % 512 + 1024)


def main(target, what=None):
    if what in (None, "iphone"):
        sample(target + "/plain", None)
        sample(target + "/encrypted", Keybag())
    if what in (None, "android"):
        android(target + "/plain-5.ab")
        android(target + "/stored-1.ab", version=1, compressed=False)
        android(target + "/encrypted-5.ab", password=PASSWORD)
        android(target + "/encrypted-1.ab", version=1, password="pässword".encode(), compressed=False)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    main(*sys.argv[1:])
