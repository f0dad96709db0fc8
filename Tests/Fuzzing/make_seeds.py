#!/usr/bin/env python3
"""Takes the committed archives apart into seeds for each target: make_seeds.py REPOSITORY DIRECTORY."""
import glob, os, plistlib, subprocess, sys

repository, target = sys.argv[1:]


def seed(kind, name, data):
    os.makedirs(f"{target}/{kind}", exist_ok=True)
    with open(f"{target}/{kind}/{name}", "wb") as file:
        file.write(data)


for path in glob.glob(repository + "/Tests/BackupRepositoryTests/HostileArchives/*.tar.zst"):
    name, data = os.path.basename(path).removesuffix(".tar.zst"), open(path, "rb").read()
    if name == "bomb":
        continue
    seed("archive", name, data)
    if (at := data.rfind(b"\x50\x2a\x4d\x18\x48\0\0\0")) >= 0:
        seed("tables", name, data[at + 80:])
        seed("tables", name + "-location", data[at:])
    plain = subprocess.run(["zstd", "-dcq", path], capture_output=True)
    if plain.returncode:
        continue
    tar = plain.stdout
    for kind in ("tar", "restore"):
        seed(kind, name, tar)
    seed("header", name, tar[512:1024].rstrip(b"\0"))
    if (at := tar.find(b"SQLite format 3\0")) >= 0:
        seed("manifest", name, tar[at:-1024])
for number, value in enumerate([{}, {"a": [1, 2.5, "t", b"d", True, "ü" * 20], "b": {"c": plistlib.UID(3)}}, [2**63]]):
    seed("plist", f"binary-{number}", plistlib.dumps(value, fmt=plistlib.FMT_BINARY))
for path in glob.glob(f"{repository}/Tests/FormatsTests/PropertyLists/*.[ps][lt]*"):
    name, data = os.path.basename(path), open(path, "rb").read()
    seed("plist", name, data)
    if name.startswith(("gnustep-openstep", "gnustep-typed", "openstep", "strings-utf8")):
        seed("openstep", name, data)
samples = os.path.join(repository, "Tests/FormatsTests/AndroidSettings")
for kind, ending in (("preferences", "xml"), ("datastore", "preferences_pb")):
    for path in sorted(glob.glob(f"{samples}/*.{ending}")):
        seed(kind, os.path.basename(path), open(path, "rb").read())
U = plistlib.UID
named = lambda name: {"$classname": name, "$classes": [name, "NSObject"]}
archived = {
    "list": [{"$class": U(2), "NS.objects": [U(3), U(4)]}, named("NSArray"), "a", {"$class": U(5), "NS.time": 5.5}, named("NSDate")],
    "dictionary": [{"$class": U(2), "NS.keys": [U(3), U(4)], "NS.objects": [U(4), U(0)]}, named("NSDictionary"), "k", 7],
    "class": [{"$class": U(2), "a": U(3), "c": U(1), "$$d": True}, named("A"), {"$class": U(4), "NS.uuidbytes": b"0123456789abcdef"}, named("NSUUID")],
    "decimal": [{"$class": U(2), "NS.length": 1, "NS.exponent": -2, "NS.negative": False, "NS.compact": True, "NS.mantissa.bo": 1, "NS.mantissa": b"\1" * 16}, named("NSDecimalNumber")],
    "url": [{"$class": U(2), "NS.base": U(0), "NS.relative": U(3)}, named("NSURL"), "https://example.com/"],
}
for name, objects in archived.items():
    value = {"$version": 100000, "$archiver": "NSKeyedArchiver", "$top": {"root": U(1)}, "$objects": ["$null", *objects]}
    seed("unarchive", name, plistlib.dumps(value, fmt=plistlib.FMT_BINARY))
    seed("decoded", name, plistlib.dumps(value, fmt=plistlib.FMT_BINARY))
seed("decoded", "json", b'{"profile": {"theme": "dark", "n": [1, null, 2.5e3, "\\u00e9"]}, "token": "made-up"}')
for path in glob.glob(repository + "/Tests/AgeEncryptionTests/Vectors/*"):
    name, (head, file) = os.path.basename(path), open(path, "rb").read().split(b"\n\n", 1)
    seed("age", name, file)
    if file.startswith(b"age-encryption.org/v1\n") and (at := file.find(b"---")) > 0:
        seed("stanzas", name, file[22:at])
    identities = [line[10:] for line in head.split(b"\n") if line.startswith(b"identity: ")]
    seed("keys", name, b"# made up\r\n" + b"\n".join(identities) + b"\n")
seed("keys", "recipient", b"#\nage1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj\n")
for name, chunks in {"empty": [(1, 0, 1)], "one": [(0, 0, 1)], "two": [(0, 0, 0), (9, 1, 1)], "three": [(0, 0, 0), (0, 1, 0), (0, 2, 1)]}.items():
    seed("chunks", name, bytes(sum(chunks, ())))
item = b'{"class": "genericPassword", "service": "s", "account": null, "accessible": "whenUnlocked", "value": "\\/w==", "created": "2026-11-20T10:15:00.5Z", "x": [-1.5e3, {"y": "\\ud83d\\ude00"}]}'
other = b'{"class": "internetPassword", "server": "h", "port": 443, "accessible": "always", "value": "", "synchronizable": true, "access_control": ["or"]}'
vault = b'{"format": 1, "device": "00112233445566778899aabbccddeeff", "recipients": ["age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"], "items": [%s], "later": true}'
for number, items in enumerate([b"", item, other, item + b"," + other, item + b"," + item]):
    seed("vault", str(number), vault % items)
sys.dont_write_bytecode = True
sys.path.insert(0, repository + "/Tests/DeviceBackupsTests")
import make_device_backup as backups
seed("keybag", "sample", backups.Keybag().bytes)
for name in ("plain-5", "stored-1", "encrypted-5"):
    seed("androidbackup", name, open(f"{repository}/Tests/DeviceBackupsTests/Samples/{name}.ab", "rb").read())
index = repository + "/Tests/DeviceBackupsTests/Samples/plain/Manifest.db"
seed("backupindex", "sample", open(index, "rb").read())
import sqlite3
for number, (record,) in enumerate(sqlite3.connect(f"file:{index}?immutable=1", uri=True).execute("SELECT file FROM Files")):
    seed("mbfile", str(number), record)
seed("keychain", "item", backups.der({"acct": "a", "agrp": "g", "pdmn": "ak", "sync": 1, "cdat": ("20261101101500Z",), "gena": b"\0", "v_Data": b"v"}))
for path in glob.glob(repository + "/Tests/MigrationEngineTests/RoomSamples/schemas/*.json"):
    seed("roomschema", os.path.basename(path), open(path, "rb").read())
for path in glob.glob(repository + "/Tests/Fuzzing/Finds/*/*"):
    seed(os.path.basename(os.path.dirname(path)), "find-" + os.path.basename(path), open(path, "rb").read())
