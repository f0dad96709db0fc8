"""Encrypts the key of a new restic repository again so that each command takes milliseconds: restic chooses a cost of scrypt that
takes half a second.

usage: cheap_restic_key.py REPOSITORY PASSWORD

Format: https://restic.readthedocs.io/en/stable/100_references.html#keys-encryption-and-mac
"""

import base64
import hashlib
import json
import os
import sys

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.poly1305 import Poly1305

repository, password = sys.argv[1:]
[name] = os.listdir(f"{repository}/keys")
with open(f"{repository}/keys/{name}") as file:
    key = json.load(file)


def derived():
    material = hashlib.scrypt(
        password.encode(), salt=base64.b64decode(key["salt"]), n=key["N"], r=key["r"], p=key["p"], maxmem=1 << 30, dklen=64)
    return material[:32], material[32:48], material[48:]


def crypt(secret, nonce, data):
    return Cipher(algorithms.AES(secret), modes.CTR(nonce)).encryptor().update(data)


data = base64.b64decode(key["data"])
plain = crypt(derived()[0], data[:16], data[16:-16])
key["N"] = 2
secret, k, r = derived()
nonce = os.urandom(16)
sealed = crypt(secret, nonce, plain)
mask = Cipher(algorithms.AES(k), modes.ECB()).encryptor().update(nonce)
key["data"] = base64.b64encode(nonce + sealed + Poly1305.generate_tag(r + mask, sealed)).decode()
text = json.dumps(key).encode()
os.remove(f"{repository}/keys/{name}")
with open(f"{repository}/keys/{hashlib.sha256(text).hexdigest()}", "wb") as file:
    file.write(text)
