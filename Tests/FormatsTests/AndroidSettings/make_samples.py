"""Writes and reads Android's settings files, independently of Drydock.

    make_samples.py make             writes the samples beside this script
    make_samples.py read FILE        prints the settings of a file as JSON: {"key": ["type", value]}

DataStore files are written and read by Google's `protobuf`; its schema is that of androidx (preferences.proto).
SharedPreferences are written in the layout of Android's FastXmlSerializer and read by Python's expat.
"""

import base64
import json
import os
import struct
import sys
import xml.etree.ElementTree as ElementTree

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = descriptor_pb2.FieldDescriptorProto


def messages(with_future_fields=False):
    """The message classes PreferenceMap and Value; a future version may have more fields than today's."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"preferences{with_future_fields}.proto", package=f"store{with_future_fields}", syntax="proto3")
    package = "." + file.package
    strings = file.message_type.add(name="StringSet")
    strings.field.add(name="strings", number=1, type=TYPES.TYPE_STRING, label=TYPES.LABEL_REPEATED)
    value = file.message_type.add(name="Value")
    value.oneof_decl.add(name="value")
    kinds = [
        ("boolean", 1, TYPES.TYPE_BOOL), ("float", 2, TYPES.TYPE_FLOAT), ("integer", 3, TYPES.TYPE_INT32),
        ("long", 4, TYPES.TYPE_INT64), ("string", 5, TYPES.TYPE_STRING), ("string_set", 6, TYPES.TYPE_MESSAGE),
        ("double", 7, TYPES.TYPE_DOUBLE), ("bytes", 8, TYPES.TYPE_BYTES),
    ]
    if with_future_fields:
        kinds.append(("point", 12, TYPES.TYPE_STRING))
    for name, number, kind in kinds:
        field = value.field.add(name=name, number=number, type=kind, label=TYPES.LABEL_OPTIONAL, oneof_index=0)
        if kind == TYPES.TYPE_MESSAGE:
            field.type_name = package + ".StringSet"
    top = file.message_type.add(name="PreferenceMap")
    entry = top.nested_type.add(name="PreferencesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=TYPES.TYPE_STRING, label=TYPES.LABEL_OPTIONAL)
    entry.field.add(
        name="value", number=2, type=TYPES.TYPE_MESSAGE, type_name=package + ".Value", label=TYPES.LABEL_OPTIONAL)
    top.field.add(
        name="preferences", number=1, type=TYPES.TYPE_MESSAGE, label=TYPES.LABEL_REPEATED,
        type_name=package + ".PreferenceMap.PreferencesEntry")
    if with_future_fields:
        top.field.add(name="written_by", number=9, type=TYPES.TYPE_STRING, label=TYPES.LABEL_OPTIONAL)
        value.field.add(name="note", number=20, type=TYPES.TYPE_STRING, label=TYPES.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    found = pool.Add(file) or pool.FindFileByName(file.name)
    if hasattr(message_factory, "GetMessageClass"):
        make = message_factory.GetMessageClass
    else:
        make = message_factory.MessageFactory(pool).GetPrototype
    return make(found.message_types_by_name["PreferenceMap"])


def data_store():
    store = messages()()
    entries = store.preferences
    entries["on"].boolean = True
    entries["off"].boolean = False
    entries["ratio"].float = 0.1
    entries["int"].integer = -2147483648
    entries["zero"].integer = 0
    entries["long"].long = 9007199254740993
    entries["long_small"].long = 5
    entries["name"].string = "Jörg <a> & \"b\"\n\U0001f600"
    entries["empty"].string = ""
    entries["tags"].string_set.strings.extend(["red", "blue", ""])
    entries["no_tags"].string_set.SetInParent()
    entries["exact"].double = 0.1
    entries["blob"].bytes = bytes([0, 255, 128])
    return store.SerializeToString(deterministic=True)


def future_data_store():
    store = messages(with_future_fields=True)()
    store.written_by = "a later version"
    store.preferences["theme"].string = "dark"
    store.preferences["theme"].note = "kept"
    store.preferences["place"].point = "1,2"
    return store.SerializeToString(deterministic=True)


def escaped(text):
    table = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    return "".join(table.get(c, f"&#{ord(c)};" if ord(c) < 32 else c) for c in text)


def shared_preferences(entries):
    """The layout of android.util.FastXmlSerializer with indentation, as XmlUtils.writeMapXml uses it."""
    lines = ["<?xml version='1.0' encoding='utf-8' standalone='yes' ?>", "<map>"]
    for name, kind, value in entries:
        start = f'    <{kind} name="{escaped(name)}"'
        if kind == "string":
            lines.append(f"{start}>{escaped(value)}</string>")
        elif kind == "set" and value:
            lines += [start + ">", *[f"        <string>{escaped(v)}</string>" for v in value], "    </set>"]
        elif kind in ("set", "null"):
            lines.append(start + " />")
        else:
            lines.append(f'{start} value="{value}" />')
    return ("\n".join(lines + ["</map>"]) + "\n").encode()


SAMPLE = [
    ("blue \"&\" <red>", "string", "in a name"),
    ("empty", "string", ""),
    ("int", "int", -2147483648),
    ("large", "float", "1.0E10"),
    ("long", "long", 9007199254740993),
    ("long_small", "long", 5),
    ("lines", "string", "one\ntwo\tthree\r\x01 <&>\"' Jörg \U0001f600"),
    ("no_tags", "set", []),
    ("none", "null", None),
    ("off", "boolean", "false"),
    ("on", "boolean", "true"),
    ("ratio", "float", "0.1"),
    ("small", "float", "1.0E-5"),
    ("tags", "set", ["", "blue & green", "red"]),
    ("whole", "float", "16777.0"),
]


def read(path):
    found = {}
    if path.endswith(".preferences_pb"):
        store = messages()()
        store.ParseFromString(open(path, "rb").read())
        for key, value in store.preferences.items():
            kind = value.WhichOneof("value")
            content = getattr(value, kind) if kind else None
            if kind == "string_set":
                content = sorted(content.strings)
            elif kind == "bytes":
                content = base64.b64encode(content).decode()
            elif kind == "float":
                content = struct.pack(">f", content).hex()
            found[key] = [kind, content]
        return found
    source = open(path, "rb").read()
    # XML 1.0 has no control characters, which Android's serializer writes as references nevertheless.
    for number in [n for n in range(32) if n not in (9, 10, 13)]:
        source = source.replace(f"&#{number};".encode(), f"\\u{number:04x}".encode())
    for element in ElementTree.fromstring(source):
        kind, value = element.tag, element.get("value")
        if kind == "string":
            value = element.text or ""
        elif kind == "set":
            value = sorted(child.text or "" for child in element)
        elif kind == "float":
            value = struct.pack(">f", float(value)).hex()
        found[element.get("name")] = [kind, value]
    return found


def make():
    samples = {
        "sample.preferences_pb": data_store(),
        "future.preferences_pb": future_data_store(),
        "sample.xml": shared_preferences(sorted(SAMPLE, key=lambda entry: entry[0].encode())),
        "unordered.xml": shared_preferences(SAMPLE),
        "encrypted.xml": shared_preferences([
            ("__androidx_security_crypto_encrypted_prefs_key_keyset__", "string", "12a901c2f4be00ff" * 8),
            ("__androidx_security_crypto_encrypted_prefs_value_keyset__", "string", "1288018d47a1" * 8),
            ("AQUx8tYb3mAdeUpNameOfASetting==", "string", "AVp7dGhpcyBpcyBtYWRlIHVw"),
        ]),
    }
    for name, content in samples.items():
        with open(os.path.join(HERE, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make()
    else:
        json.dump(read(sys.argv[2]), sys.stdout, ensure_ascii=True, sort_keys=True)
