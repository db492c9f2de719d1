"""S3's checksums, by implementations that are not coffer's."""

import base64
import hashlib
import zlib

from awscrt import checksums

NEWER = ("MD5", "SHA512", "XXHASH128", "XXHASH3", "XXHASH64")
ALGORITHMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256", *NEWER)
COMPOSITE = ("CRC32", "CRC32C", "SHA1", "SHA256", *NEWER)
FULL_OBJECT = ("CRC32", "CRC32C", "CRC64NVME")


def raw_checksum(algorithm, data):
    """The big-endian value."""
    match algorithm:
        case "CRC32":
            return zlib.crc32(data).to_bytes(4, "big")
        case "CRC32C":
            return checksums.crc32c(data).to_bytes(4, "big")
        case "CRC64NVME":
            return checksums.crc64nvme(data).to_bytes(8, "big")
        case "SHA1":
            return hashlib.sha1(data).digest()
        case "SHA256":
            return hashlib.sha256(data).digest()
        case "SHA512":
            return hashlib.sha512(data).digest()
        case "MD5":
            return hashlib.md5(data).digest()
        case "XXHASH64":
            return checksums.XXHash.compute_xxhash64(data)
        case "XXHASH3":
            return checksums.XXHash.compute_xxhash3_64(data)
        case "XXHASH128":
            return checksums.XXHash.compute_xxhash3_128(data)
    raise ValueError(algorithm)


def checksum(algorithm, data):
    """The value as S3 writes it."""
    return base64.b64encode(raw_checksum(algorithm, data)).decode()


def composite(algorithm, parts):
    """The checksum of the parts' checksums, with their number."""
    joined = b"".join(raw_checksum(algorithm, part) for part in parts)
    return f"{checksum(algorithm, joined)}-{len(parts)}"
