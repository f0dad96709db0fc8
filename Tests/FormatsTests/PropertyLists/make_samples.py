#!/usr/bin/env python3
"""Writes the property lists in this directory with programs other than Drydock: Python's plistlib, the package
openstep-plist (PyPI), GNUstep's plser (Debian: gnustep-base-runtime) and plistutil (Debian: libplist-utils). All have the
same made-up settings; forms without numbers have them as text.

Run it in this directory: pip install openstep-plist==0.5.2 && python3 make_samples.py
"""
import datetime
import os
import plistlib
import subprocess
import tempfile

import openstep_plist

VALUES = {
    "title": 'Zoë "quoted" \\ back\nline\ttab',
    "emoji": "\U0001f6a2 日本",
    "empty": "",
    "word": "plain_1",
    "with-dash.and space": "a b",
    "path": "a/b:c$d",
    "true-text": "YES",
    "blob": b"\x00\x01\x02\xff",
    "nothing": b"",
    "list": ["a", "", ["x"], {"k": "v"}],
    "none": [],
    "dict": {"inner": {"deep": "1"}, "a": {}},
}
TYPED = VALUES | {
    "count": 42,
    "negative": -9223372036854775808,
    "ratio": 0.1,
    "on": True,
    "off": False,
    "when": datetime.datetime(2026, 11, 20, 10, 15, 0),
}


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)


def plser(data, form):
    """The output of GNUstep's plser for an XML property list."""
    with tempfile.TemporaryDirectory() as home:
        path = os.path.join(home, "in.plist")
        write(path, data)
        environment = {"HOME": home, "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
        return subprocess.run(
            ["plser", path, "-Format", f"NSPropertyList{form}"], env=environment, check=True, capture_output=True
        ).stdout


plain_xml = plistlib.dumps(VALUES)
typed_xml = plistlib.dumps(TYPED)
write("gnustep-openstep.plist", plser(plain_xml, "OpenStepFormat"))
write("gnustep-typed.plist", plser(typed_xml, "GNUstepFormat"))
write("gnustep-xml.plist", plser(typed_xml, "XMLFormat_v1_0"))
write("gnustep-binary.plist", plser(typed_xml, "BinaryFormat_v1_0"))
write("openstep-plist.plist", openstep_plist.dumps(VALUES, indent=2).encode())
write("openstep-plist-utf8.plist", openstep_plist.dumps(VALUES, indent=2, unicode_escape=False).encode())

write("plistlib-binary.plist", plistlib.dumps(TYPED, fmt=plistlib.FMT_BINARY))
write("plistlib-utf8.plist", typed_xml)
write("plistlib-utf8-mark.plist", b"\xef\xbb\xbf" + typed_xml)
utf16 = typed_xml.decode().replace("UTF-8", "UTF-16")
write("plistlib-utf16le-mark.plist", b"\xff\xfe" + utf16.encode("utf-16-le"))
write("plistlib-utf16be-mark.plist", b"\xfe\xff" + utf16.encode("utf-16-be"))
write("plistlib-utf16le.plist", utf16.encode("utf-16-le"))
write("plistlib-utf16be.plist", utf16.encode("utf-16-be"))

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "in.plist")
    write(path, plistlib.dumps(TYPED, fmt=plistlib.FMT_BINARY))
    subprocess.run(["plistutil", "-i", path, "-o", "libplist-xml.plist", "-f", "xml"], check=True)
    write(path, typed_xml)
    subprocess.run(["plistutil", "-i", path, "-o", "libplist-binary.plist", "-f", "bin"], check=True)

# A strings file as Xcode 3 to 15 wrote it: UTF-16 with a mark. The layout is in Apple's "Internationalization and
# Localization Guide".
strings = "/* The button in the editor. */\n" + "".join(
    f'"{key}" = "{value}";\n' for key, value in {"Done": "Terminé", "emoji": "\U0001f6a2", "a \\\"b\\\"": "c\\nd"}.items()
)
write("strings-utf16le.strings", b"\xff\xfe" + strings.encode("utf-16-le"))
write("strings-utf8.strings", (strings + "// without quotes, and without a value\nbare = word;\nalone;\n").encode())
