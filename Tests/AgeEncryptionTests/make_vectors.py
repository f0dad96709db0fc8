#!/usr/bin/env python3
"""Writes the test vectors, from the specification alone: make_vectors.py DIRECTORY

It shares no code with what is tested: the primitives are those of python3-cryptography. A vector is a file in the form
of the C2SP testkit: lines `key: value` (expect, payload: SHA-256 of the content, identity, passphrase, comment), an
empty line, and the age file. `age:` says what the age program 1.1 does where that differs. All keys are made up.
"""
import base64, hashlib, hmac, os, sys
from cryptography.hazmat.primitives import hashes, serialization as ser
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

target = sys.argv[1]
FILE_KEY, TEXT = b"NOT A SECRET KEY", b"Ahoy, drydock!"
PASSPHRASE = "made-up passphrase"


def rnd(label, n):
    return hashlib.shake_256(label.encode()).digest(n)


def b64(data):
    return base64.b64encode(data).decode().rstrip("=")


def hkdf(key, salt, info):
    return HKDF(hashes.SHA256(), 32, salt, info).derive(key)


def public(secret):
    key = X25519PrivateKey.from_private_bytes(secret).public_key()
    return key.public_bytes(ser.Encoding.Raw, ser.PublicFormat.Raw)


def bech32(name, data):
    bits = "".join(f"{b:08b}" for b in data)
    values = [int(bits[i:i + 5].ljust(5, "0"), 2) for i in range(0, len(bits), 5)]

    def polymod(vs):
        c = 1
        for v in vs:
            top, c = c >> 25, (c & 0x1FFFFFF) << 5 ^ v
            for i, g in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
                c ^= g if top >> i & 1 else 0
        return c
    head = [ord(c) >> 5 for c in name] + [0] + [ord(c) & 31 for c in name]
    check = polymod(head + values + [0] * 6) ^ 1
    values += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return name + "1" + "".join("qpzry9x8gf2tvdw0s3jn54khce6mua7l"[v] for v in values)


ME, OTHER = rnd("me", 32), rnd("other", 32)


def body(data):
    text = b64(data)
    lines = [text[i:i + 64] for i in range(0, len(text), 64)]
    if not lines or len(lines[-1]) == 64:
        lines.append("")
    return "\n".join(lines) + "\n"


def wrap(key, file_key=FILE_KEY):
    return ChaCha20Poly1305(key).encrypt(bytes(12), file_key, None)


def x25519(secret=ME, label="share", file_key=FILE_KEY, share=None, type="X25519"):
    if share is None:
        ephemeral = rnd(label, 32)
        share = public(ephemeral)
        shared = X25519PrivateKey.from_private_bytes(ephemeral).exchange(
            X25519PublicKey.from_public_bytes(public(secret)))
    else:
        shared = bytes(32)  # what a weak share gives with every key
    key = hkdf(shared, share + public(secret), b"age-encryption.org/v1/X25519")
    return f"-> {type} {b64(share)}\n" + body(wrap(key, file_key))


def scrypt(factor="10", real=10, label="salt", file_key=FILE_KEY, type="scrypt", salt=None, passphrase=PASSPHRASE):
    salt = rnd(label, 16) if salt is None else salt
    key = hashlib.scrypt(passphrase.encode(), salt=b"age-encryption.org/v1/scrypt" + salt, n=1 << real, r=8, p=1,
                         dklen=32, maxmem=1 << 30)
    return f"-> {type} {b64(salt)} {factor}\n" + body(wrap(key, file_key))


def mac(text):
    return hmac.new(hkdf(FILE_KEY, b"", b"header"), text, hashlib.sha256).digest()


def closed(stanzas, version="age-encryption.org/v1\n", end=lambda code: f"--- {b64(code)}\n"):
    text = (version + stanzas + "---").encode("latin-1")
    return text[:-3] + end(mac(text)).encode()


NONCE = rnd("nonce", 16)


def chunk(plain=TEXT, number=0, last=True):
    return ChaCha20Poly1305(hkdf(FILE_KEY, NONCE, b"payload")).encrypt(
        number.to_bytes(11, "big") + bytes([last]), plain, None)


def vector(name, expect, file, identity=ME, passphrase=None, comment=None, age=None, plain=TEXT):
    lines = [f"expect: {expect}"]
    if expect == "success":
        lines.append(f"payload: {hashlib.sha256(plain).hexdigest()}")
    if passphrase:
        lines.append(f"passphrase: {passphrase}")
    for one in [] if passphrase else [identity] if isinstance(identity, bytes) else identity:
        lines.append("identity: " + bech32("age-secret-key-", one).upper())
    if age:
        lines.append(f"age: {age}")
    if comment:
        lines.append(f"comment: {comment}")
    with open(os.path.join(target, name), "wb") as out:
        out.write(("\n".join(lines) + "\n\n").encode() + file)


def header(name, expect, stanzas, **more):
    settings = {k: more.pop(k) for k in ("version", "end") if k in more}
    vector(name, expect, closed(stanzas, **settings) + NONCE + chunk(), **more)


def loose(text):
    """The same base64 with a bit set that belongs to no byte."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return text[:-1] + alphabet[alphabet.index(text[-1]) + 1]


def edit(stanza, line, change):
    lines = stanza.split("\n")
    lines[line] = change(lines[line])
    return "\n".join(lines)


os.makedirs(target, exist_ok=True)
one, two, unknown = x25519(), x25519(OTHER, "other share"), "-> x.example/unknown a b\n" + body(b"?" * 32)
share, salt = b64(public(rnd("share", 32))), b64(rnd("salt", 16))
H, OK, NO = "header failure", "success", "no match"

# What must be read.
header("x25519", OK, one)
header("x25519_second_of_two", OK, two + one)
header("x25519_second_identity", OK, one, identity=[OTHER, ME])
header("x25519_many", OK, "".join(x25519(OTHER, f"share {i}") for i in range(40)) + one)
header("unknown_beside", OK, unknown + one + "-> grease!\n" + body(b"") + "-> q\n" + body(b"q" * 200))
header("unknown_body_48", OK, "-> q\n" + body(b"q" * 48) + one)
header("unknown_every_character", OK, "-> " + "".join(map(chr, range(33, 127))) + " ->\n\n" + one)
header("scrypt", OK, scrypt(), passphrase=PASSPHRASE)
header("scrypt_factor_1", OK, scrypt("1", 1), passphrase=PASSPHRASE)
vector("payload_empty", OK, closed(one) + NONCE + chunk(b""), plain=b"")

# Well made, and for somebody else.
header("x25519_other_identity", NO, one, identity=OTHER)
header("x25519_bad_tag", NO, edit(one, 1, lambda b: "AAAA" + b[4:]))
header("x25519_lower_case", NO, x25519(type="x25519"))
header("unknown_only", NO, unknown)
header("scrypt_other_passphrase", NO, scrypt(), passphrase="some other passphrase")
header("scrypt_bad_tag", NO, edit(scrypt(), 1, lambda b: "AAAA" + b[4:]), passphrase=PASSPHRASE)
header("scrypt_upper_case", NO, scrypt(type="Scrypt"), passphrase=PASSPHRASE)
header("scrypt_other_factor", NO, scrypt("11"), passphrase=PASSPHRASE)
header("scrypt_for_an_identity", NO, scrypt(), age=H)

# A key fits, and the text is not what was authenticated.
good = closed(one)
M = "HMAC failure"
header("mac_wrong", M, one, end=lambda c: f"--- {b64(bytes(32))}\n")
vector("mac_stanza_added", M, good.replace(b"--- ", unknown.encode() + b"--- ") + NONCE + chunk())
vector("mac_stanza_removed", M, closed(unknown + one).replace(unknown.encode(), b"") + NONCE + chunk())
vector("mac_argument_changed", M, closed(unknown + one).replace(b"unknown a b", b"unknown a c") + NONCE + chunk())

# Headers that break the rules.
vector("empty", H, b"")
header("version_2", H, one, version="age-encryption.org/v2\n")
header("version_upper_case", H, one, version="Age-encryption.org/v1\n")
header("version_space", H, one, version="age-encryption.org/v1 \n")
header("version_blank_before", H, one, version="\nage-encryption.org/v1\n")
vector("version_alone", H, b"age-encryption.org/v1")
header("crlf", H, one.replace("\n", "\r\n"))
header("crlf_version", H, one, version="age-encryption.org/v1\r\n")
header("no_stanza", H, "", age="no match")
for name, end in {
    "missing": lambda c: "", "no_space": lambda c: f"---{b64(c)}\n", "two_spaces": lambda c: f"---  {b64(c)}\n",
    "space_behind": lambda c: f"--- {b64(c)} \n", "padded": lambda c: f"--- {b64(c)}=\n",
    "not_canonical": lambda c: f"--- {loose(b64(c))}\n", "short": lambda c: f"--- {b64(c[:31])}\n",
    "long": lambda c: f"--- {b64(c + b'!')}\n", "crlf": lambda c: f"--- {b64(c)}\r\n", "alone": lambda c: "---\n",
    "no_line_feed": lambda c: f"--- {b64(c)}", "four_dashes": lambda c: f"---- {b64(c)}\n",
}.items():
    header(f"mac_{name}", H, one, end=end)
for name, text in {
    "bad_start": "-- q\n\n", "no_space": "->q\n\n", "no_type": "->\n\n", "no_type_space": "-> \n\n",
    "two_spaces": "-> q  r\n\n", "space_behind": "-> q \n\n", "tab": "-> q\tr\n\n", "nul": "-> q\0\n\n",
    "not_ascii": "-> q\xe4\n\n", "delete": "-> q\x7f\n\n", "carriage_return": "-> q\r\n\n", "no_body": "-> q\n",
    "blank_line_before": "\n-> q\n\n", "body_space": "-> q\nAA AA\n", "body_padded": "-> q\nAA==\n",
    "body_not_canonical": "-> q\nAB\n", "body_five": "-> q\nAAAAA\n", "body_url_alphabet": "-> q\n_-_-\n",
    "body_carriage_return": "-> q\nAAAA\r\n", "body_nul": "-> q\nAA\0A\n", "body_long_line": "-> q\n" + "A" * 65 + "\n\n",
    "body_very_long_line": "-> q\n" + "A" * 68 + "\n", "body_two_short_lines": "-> q\nAAAA\nAAAA\n",
    "body_no_short_line": "-> q\n" + "A" * 64 + "\n", "body_vertical_tab": "-> q\nAAAA\v\n",
}.items():
    header(f"stanza_{name}", H, text + one)

for name, args in {
    "no_argument": "X25519", "two_arguments": f"X25519 {share} {share}", "padded_share": f"X25519 {share}=",
    "not_canonical_share": f"X25519 {loose(share)}", "short_share": f"X25519 {b64(public(rnd('share', 32))[:31])}",
    "long_share": f"X25519 {b64(public(rnd('share', 32)) + b'!')}",
}.items():
    header(f"x25519_{name}", H, edit(one, 0, lambda _: "-> " + args))
header("x25519_long_file_key", H, x25519(file_key=FILE_KEY + b"!"))
header("x25519_short_file_key", H, x25519(file_key=FILE_KEY[:-1]))
header("x25519_no_body", H, edit(one, 1, lambda _: ""))
header("x25519_malformed_beside", H, two + edit(one, 0, lambda _: "-> X25519"))
P = 2**255 - 19
LOW = 325606250916557431795983626356110631294008115727848805560023387167927233504
LOW2 = 39382357235489614581723060781553021112529911719440698176882885853963445705823
for name, point in {"0": 0, "1": 1, "order_8": LOW, "other_order_8": LOW2, "p_minus_1": P - 1, "p": P, "p_plus_1": P + 1,
                    "high_bit": 1 << 255}.items():
    header(f"x25519_weak_share_{name}", H, x25519(share=point.to_bytes(32, "little")))
header("x25519_weak_share_before", H, x25519(share=bytes(32)) + one)

for name, factor in {"0": "0", "leading_zero": "010", "plus": "+10", "minus": "-10", "hexadecimal": "0xa", "letter": "10a",
                     "letter_before": "a10", "overflow": str(2**64 + 10), "23": "23", "99": "99", "point": "10.0",
                     "arabic": "\u0661\u0660".encode().decode("latin-1")}.items():
    header(f"scrypt_factor_{name}", H, scrypt(factor), passphrase=PASSPHRASE)
for name, args in {
    "no_arguments": "scrypt", "no_factor": f"scrypt {salt}", "three_arguments": f"scrypt {salt} 10 10",
    "padded_salt": f"scrypt {salt}== 10", "not_canonical_salt": f"scrypt {loose(salt)} 10",
}.items():
    header(f"scrypt_{name}", H, edit(scrypt(), 0, lambda _: "-> " + args), passphrase=PASSPHRASE)
header("scrypt_short_salt", H, scrypt(salt=rnd("salt", 15)), passphrase=PASSPHRASE)
header("scrypt_long_salt", H, scrypt(salt=rnd("salt", 17)), passphrase=PASSPHRASE)
header("scrypt_long_file_key", H, scrypt(file_key=FILE_KEY + b"!"), passphrase=PASSPHRASE)
header("scrypt_twice", H, scrypt() + scrypt(label="another salt"), passphrase=PASSPHRASE)
header("scrypt_before_x25519", H, scrypt() + one, age=OK)
header("scrypt_behind_x25519", H, one + scrypt(), age=OK)
header("scrypt_before_unknown", H, scrypt() + unknown, passphrase=PASSPHRASE)
vector("nonce_missing", H, good)
vector("nonce_short", H, good + NONCE[:15])

# Payloads that break the rules. (Those of several chunks are made by the tests themselves.)
B = "payload failure"
sealed = chunk()
for name, content in {
    "no_chunk": b"", "no_tag": sealed[:10], "tag_missing": sealed[:-16], "cut": sealed[:-1], "bad_tag":
    sealed[:-1] + bytes([sealed[-1] ^ 1]), "bad_content": bytes([sealed[0] ^ 128]) + sealed[1:], "not_last": chunk(last=False),
    "second_first": chunk(number=1), "byte_behind": sealed + b"!", "line_feed_behind": sealed + b"\n",
    "chunk_behind": sealed + chunk(number=1), "empty_not_last": chunk(b"", last=False), "other_nonce":
    ChaCha20Poly1305(hkdf(FILE_KEY, b"", b"payload")).encrypt(bytes(11) + b"\1", TEXT, None),
}.items():
    vector(f"payload_{name}", B, good + NONCE + content)

# Armor.
file = good + NONCE + chunk()
FULL = b"." * (48 - len(good + NONCE + chunk(b"")) % 48)
BEGIN, END = "-----BEGIN AGE ENCRYPTED FILE-----\n", "-----END AGE ENCRYPTED FILE-----\n"


def lines(data):
    text = base64.b64encode(data).decode()
    return [text[i:i + 64] + "\n" for i in range(0, len(text), 64)]


L = lines(file)
full = lines(good + NONCE + chunk(FULL))
assert len(full[-1]) == 65 and L[-1].endswith("=\n") and len(L[-1]) < 65


def armor(name, expect, *parts, **more):
    vector(f"armor_{name}", expect, "".join("".join(p) for p in parts).encode("latin-1"), **more)


armor("plain", OK, BEGIN, L, END)
armor("crlf", OK, (BEGIN + "".join(L) + END).replace("\n", "\r\n"))
armor("blank_around", OK, " \n\r\n\t\n", BEGIN, L, END, "\n \t\r\n", age=H, comment="age's library takes it")
armor("no_last_line_feed", OK, BEGIN, L, END[:-1])
armor("full_last_line", OK, BEGIN, full, END, plain=FULL)
armor("no_match", NO, BEGIN, L, END, identity=OTHER)
armor("bad_header", H, BEGIN, lines(b"x" + file), END)
armor("bad_payload", B, BEGIN, lines(file[:-1]), END)
armor("empty", H, BEGIN, END)
armor("text_before", H, "x\n", BEGIN, L, END, comment="what begins with a letter is taken for a binary file",
      age=H)
A = "armor failure"
armor("text_behind", A, BEGIN, L, END, "x\n")
armor("second_behind", A, BEGIN, L, END, BEGIN, L, END)
armor("blank_before_mark", A, " ", BEGIN, L, END, age=H)
armor("blank_behind_mark", A, BEGIN[:-1] + " \n", L, END)
armor("much_blank_before", A, "\n" * 1025, BEGIN, L, END, age="header failure")
armor("much_blank_behind", A, BEGIN, L, END, " " * 1100)
armor("lower_case", A, BEGIN.lower(), L, END.lower(), age=H)
armor("other_label", A, BEGIN.replace("AGE", "PGP"), L, END.replace("AGE", "PGP"), age=H)
armor("other_end", A, BEGIN, L, END.replace("AGE", "PGP"))
armor("no_end", A, BEGIN, L)
armor("no_end_full_line", A, BEGIN, full)
armor("begin_only", A, BEGIN)
armor("cut_begin", A, BEGIN[:20], age=H)
armor("cut_end", A, BEGIN, L, END[:20])
armor("end_in_line", A, BEGIN, "".join(L)[:-1], END)
armor("header_line", A, BEGIN, "Version: 1\n\n", L, END)
armor("checksum", A, BEGIN, L, "=AAAA\n", END)
armor("empty_line_first", A, BEGIN, "\n", L, END)
armor("empty_line_inside", A, BEGIN, L[0], "\n", L[1:], END)
armor("empty_line_last", A, BEGIN, L, "\n", END)
armor("empty_line_behind_full", A, BEGIN, full, "\n", END, age="success")
armor("long_line", A, BEGIN, L[0][:-1] + L[1], L[2:], END)
armor("long_line_by_4", A, BEGIN, L[0][:-1] + L[1][:4] + "\n", L[1][4:], L[2:], END)
armor("short_line", A, BEGIN, L[0][:60] + "\n", L[0][60:], L[1:], END)
armor("no_padding", A, BEGIN, L[:-1], L[-1].replace("=", ""), END)
armor("much_padding", A, BEGIN, L[:-1], L[-1][:-1] + "=\n", END)
armor("padding_cut", A, BEGIN, L[:-1], L[-1].replace("=\n", "\n=\n"), END)
armor("padding_inside", A, BEGIN, L[0][:62] + "==\n", L[1:], END)
armor("not_canonical", A, BEGIN, L[:-1], loose(L[-1].rstrip("=\n")) + "=" * L[-1].count("=") + "\n", END)
armor("blank_in_line", A, BEGIN, L[0][:9] + " " + L[0][10:], L[1:], END)
armor("blank_at_line_start", A, BEGIN, " " + L[0], L[1:], END)
armor("blank_at_line_end", A, BEGIN, L[0][:-1] + " \n", L[1:], END)
armor("blank_at_last_line_end", A, BEGIN, L[:-1], L[-1][:-1] + " \n", END)
armor("carriage_returns", A, BEGIN, L[0][:-1] + "\r\r\n", L[1:], END)
armor("url_alphabet", A, BEGIN, "_" + L[0][1:], L[1:], END)
armor("not_ascii", A, BEGIN, "\xe4" + L[0][1:], L[1:], END)
armor("nul", A, BEGIN, "\0" + L[0][1:], L[1:], END)
