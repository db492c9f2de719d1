"""A server to do things to: what is asked for and answered goes into its ledger."""

import base64
import hashlib
import http.client
import random
import shutil
from pathlib import Path

from .asking import Client, elements
from .ledger import DOUBT, NO, YES, Ledger, outcome_of
from .looking import short
from .preload import Running


def body_of(size_bytes, seed):
    return random.Random(f"{seed}/{size_bytes}").randbytes(size_bytes)


class World:
    """A running server, its client and its ledger."""

    def __init__(self, root, ledger=None, **options):
        self.running = Running(root, **options)
        self.ledger = ledger or Ledger()
        self.ledger.marks = self.running.marks
        self.client = Client(self.running)
        self.count = 0

    def start(self):
        self.running.start()
        return self

    def close(self):
        self.client.close()
        self.running.close()

    @property
    def notes(self):
        return self.ledger.notes

    def asking(self, answer, ask, **more):
        """Asks; the outcome of what is answered, or doubt when nothing is."""
        try:
            status, *rest = ask()
        except (OSError, http.client.HTTPException):
            return answer.is_(DOUBT), None
        answer.status = f"{status} {rest[-1] if status >= 300 else ''}"
        return answer.is_(outcome_of(status), **more), rest[-1]

    # Objects.

    def key_of(self, bucket):
        return self.notes.get(("key of level", self.notes.get(("level of", bucket))))

    def s3(self, bucket, *words, **options):
        return self.client.s3(*words, key=self.key_of(bucket), **options)

    def put(self, bucket, name, size_bytes, *, headers=None):
        self.count += 1
        body = body_of(size_bytes, f"{bucket}/{name}/{self.count}")
        headers = dict(headers or {})
        changes = {("object", bucket, name): short(body), ("tags", bucket, name): None}
        if "x-amz-tagging" in headers:
            changes["tags", bucket, name] = headers["x-amz-tagging"].split("=")[1]
        with self.ledger.trying(changes) as answer:
            path = f"/{bucket}/{name}"

            def put():
                return self.s3(bucket, "PUT", path, body=body, headers=headers)

            return self.asking(answer, put)[0]

    def copy(self, bucket, name, to):
        """Copies an object, if it is certain what that is."""
        value, *others = self.ledger.standing(self.ledger.log)["object", bucket, name]
        if others:
            return
        source = {"x-amz-copy-source": f"/{bucket}/{name}"}
        changes = {("object", bucket, to): value}
        with self.ledger.trying(changes) as answer:
            self.asking(answer, lambda: self.s3(bucket, "PUT", f"/{bucket}/{to}", headers=source))

    def rename(self, bucket, name, to):
        """Renames an object, if it is certain what that is: both names change, or none. How that
        ended."""
        standing = self.ledger.standing(self.ledger.log)
        kinds = ("object", "tags")
        found = {kind: standing.get((kind, bucket, name), [None]) for kind in kinds}
        if any(len(values) > 1 for values in found.values()):
            return None
        changes = {(kind, bucket, to): values[0] for kind, values in found.items()}
        changes |= {(kind, bucket, name): None for kind in kinds}
        source = {"x-amz-rename-source": name}
        with self.ledger.trying(changes) as answer:
            path = f"/{bucket}/{to}"
            ask = {"query": "renameObject=", "headers": source}
            return self.asking(answer, lambda: self.s3(bucket, "PUT", path, **ask))[0]

    def delete(self, bucket, name):
        changes = {("object", bucket, name): None, ("tags", bucket, name): None}
        with self.ledger.trying(changes) as answer:
            path = f"/{bucket}/{name}"
            return self.asking(answer, lambda: self.s3(bucket, "DELETE", path))[0]

    def delete_many(self, bucket, names):
        rows = "".join(f"<Object><Key>{name}</Key></Object>" for name in names)
        body = f"<Delete>{rows}</Delete>".encode()
        digest = hashlib.sha256(body).digest()
        headers = {"x-amz-checksum-sha256": base64.b64encode(digest).decode()}
        changes = {("object", bucket, name): None for name in names}
        changes |= {("tags", bucket, name): None for name in names}
        with self.ledger.trying(changes, apart=True) as answer:

            def ask():
                return self.s3(
                    bucket, "POST", f"/{bucket}", query="delete=", body=body, headers=headers
                )

            outcome, told = self.asking(answer, ask)
            if outcome == YES and elements(told, "Error"):
                answer.is_(DOUBT)

    def tag(self, bucket, name, value):
        """Gives an object one tag, or takes its tags away."""
        path, query = f"/{bucket}/{name}", "tagging="
        tag = f"<Tag><Key>k</Key><Value>{value}</Value></Tag>"
        body = f"<Tagging><TagSet>{tag}</TagSet></Tagging>".encode() if value else b""
        method = "PUT" if value else "DELETE"
        with self.ledger.trying({("tags", bucket, name): value}) as answer:
            self.asking(answer, lambda: self.s3(bucket, method, path, query=query, body=body))

    # Uploads.

    def upload(self, bucket, name):
        """Begins one; its id, if that is known."""
        with self.ledger.trying({}) as answer:

            def ask():
                return self.s3(bucket, "POST", f"/{bucket}/{name}", query="uploads=")

            outcome, told = self.asking(answer, ask)
            if outcome != YES:
                return None
            upload = elements(told, "UploadId")[0]
            answer.is_(YES, more={("upload", bucket, name, upload): ""})
            return upload

    def part(self, bucket, name, upload, number, size_bytes):
        """Stores a part, which is to be the upload's only one; its entity tag and bytes."""
        body = body_of(size_bytes, f"{upload}/{number}")
        query, path = f"partNumber={number}&uploadId={upload}", f"/{bucket}/{name}"
        tags = []

        def ask():
            answered = self.s3(bucket, "PUT", path, query=query, body=body)
            tags.append(answered[1].get("etag"))
            return answered

        with self.ledger.trying({("upload", bucket, name, upload): str(size_bytes)}) as answer:
            self.asking(answer, ask)
        return (tags or [None])[0], body

    def complete(self, bucket, name, upload, part):
        tag, body = part
        row = f"<Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part>"
        text = f"<CompleteMultipartUpload>{row}</CompleteMultipartUpload>".encode()
        changes = {
            ("object", bucket, name): short(body),
            ("tags", bucket, name): None,
            ("upload", bucket, name, upload): None,
        }
        query = f"uploadId={upload}"
        with self.ledger.trying(changes) as answer:

            def ask():
                return self.s3(bucket, "POST", f"/{bucket}/{name}", query=query, body=text)

            outcome, told = self.asking(answer, ask)
            if outcome == YES and b"<Error>" in told:
                answer.is_(DOUBT)

    def abort(self, bucket, name, upload):
        with self.ledger.trying({("upload", bucket, name, upload): None}) as answer:
            path, query = f"/{bucket}/{name}", f"uploadId={upload}"
            self.asking(answer, lambda: self.s3(bucket, "DELETE", path, query=query))

    # Administration.

    def admin(self, changes, method, path, body=None):
        """Asks administration for something that makes these facts; what it answered."""
        with self.ledger.trying(changes) as answer:
            outcome, told = self.asking(answer, lambda: self.client.admin(method, path, body))
            return told if outcome == YES else None

    def bucket(self, name, level="default"):
        self.notes["level of", name] = level
        body = {"name": name, "level": level}
        return self.admin({("bucket", name): level}, "POST", "/v1/buckets", body)

    def drop_bucket(self, name):
        self.admin({("bucket", name): None}, "DELETE", f"/v1/buckets/{name}")

    def level(self, name, rank, approvals=1):
        body = {"name": name, "rank": rank, "approvals": approvals, "same_label": True}
        facts = {
            ("level", name): f"s{rank} {approvals} False",
            ("generation", name): 1,
            ("exports", name): 0,
        }
        self.admin(facts, "POST", "/v1/levels", body)

    def subject(self, name, clearance, label, roles=("data-user",)):
        body = {"name": name, "clearance": clearance, "roles": list(roles)}
        told = f"enabled {label} {','.join(roles)} 0"
        with self.ledger.trying({("subject", name): told}) as answer:

            def ask():
                return self.client.admin("POST", "/v1/subjects", body)

            outcome, made = self.asking(answer, ask)
            if outcome == YES:
                self.notes["key", name] = (made["access_key_id"], made["secret_access_key"])
                answer.is_(YES, more={("signin", name): True} if "data-user" in roles else {})
            return made if outcome == YES else None

    def record(self):
        """Remembers the last record of the audit log, which must not be lost any more."""
        status, report = self.client.admin("POST", "/v1/audit/verify", {})
        if status == 200 and report["sound"]:
            fact = ("record", report["last_sequence"])
            self.notes["hash", report["last_sequence"]] = report["last_hash"]
            with self.ledger.trying({fact: report["last_hash"]}) as answer:
                answer.is_(YES)


def copy_tree(source, target):
    """A folder as it is, holes and all; what is no file or folder is left out."""
    Path(target).mkdir(mode=0o700)
    for entry in sorted(Path(source).iterdir()):
        to = Path(target) / entry.name
        if entry.is_dir():
            copy_tree(entry, to)
        elif entry.is_file():
            shutil.copyfile(entry, to)
            to.chmod(0o600)


__all__ = ["DOUBT", "NO", "YES", "World", "body_of", "copy_tree"]
