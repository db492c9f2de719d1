"""What is there: each fact of a ledger as a server shows it."""

import hashlib

from harness.server import coffer

from .asking import elements


def short(data):
    """Names some bytes in a ledger."""
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()[:16]}"


class Look:
    """One look at a server, by the facts that somebody could expect."""

    def __init__(self, client, notes):
        self.client = client
        self.notes = notes
        self.tables = {}
        self.tag_counts = {}
        self.erases_tried = set()

    def value(self, fact):
        kind, *rest = fact
        return getattr(self, f"_{kind}")(*rest)

    def table(self, path):
        """A list of the administration, asked for once."""
        if path not in self.tables:
            status, rows = self.client.admin("GET", path)
            assert status == 200, f"{path}: {status} {rows}"
            self.tables[path] = rows
        return self.tables[path]

    def _row(self, path, name, field="name"):
        return next((row for row in self.table(path) if row[field] == name), None)

    def key_of(self, bucket):
        """The access key that may use a bucket."""
        level = self._bucket(bucket)
        return self.notes.get(("key of level", level))

    def is_open(self, bucket):
        """Whether the test has an access key for a bucket."""
        return self._bucket(bucket) in ("default", "arrived") or self.key_of(bucket) is not None

    def _bucket(self, name):
        row = self._row("/v1/buckets", name)
        return row and row["level"]

    def _object(self, bucket, name):
        if self._bucket(bucket) is None:
            return None
        key = self.key_of(bucket)
        status, headers, body = self.client.s3("GET", f"/{bucket}/{name}", key=key)
        assert status in (200, 404), f"GET {bucket}/{name}: {status} {body[:300]}"
        self.tag_counts[bucket, name] = headers.get("x-amz-tagging-count", "0")
        return short(body) if status == 200 else None

    def _version(self, bucket, name, version):
        if self._bucket(bucket) is None:
            return None
        path, query, key = f"/{bucket}/{name}", f"versionId={version}", self.key_of(bucket)
        status, headers, body = self.client.s3("GET", path, query=query, key=key)
        if status == 405 and headers.get("x-amz-delete-marker") == "true":
            return "marker"
        assert status in (200, 404), f"GET {bucket}/{name} {version}: {status} {body[:300]}"
        return short(body) if status == 200 else None

    def _versions(self, bucket):
        """Whether each version is one that was asked for."""
        if self._bucket(bucket) is None:
            return "known"
        query, key = "versions=", self.key_of(bucket)
        status, _, body = self.client.s3("GET", f"/{bucket}", query=query, key=key)
        assert status == 200, f"versions of {bucket}: {status} {body[:300]}"
        listed = zip(elements(body, "Key"), elements(body, "VersionId"), strict=True)
        for name, version in listed:
            found = self._version(bucket, name, version)
            # What rules end is gone between two looks.
            if found is not None and found not in self.notes.get(("tried", bucket, name), ()):
                return f"{name} {version} is {found}, which was never stored"
        return "known"

    def _retention(self, bucket, name, version):
        told = self._lock(bucket, name, version, "retention", ("Mode", "RetainUntilDate"))
        mode, until = told or (None, None)
        if mode:
            self._refuses(bucket, name, version, is_strict=mode == "COMPLIANCE")
        return mode and f"{mode} {until[:10]}"

    def _hold(self, bucket, name, version):
        (status,) = self._lock(bucket, name, version, "legal-hold", ("Status",)) or ("OFF",)
        if status == "ON":
            self._refuses(bucket, name, version, is_strict=True)
        return "ON" if status == "ON" else None

    def _lock(self, bucket, name, version, query, wanted):
        if self._bucket(bucket) is None:
            return None
        path, query = f"/{bucket}/{name}", f"{query}=&versionId={version}"
        status, _, body = self.client.s3("GET", path, query=query, key=self.key_of(bucket))
        assert status in (200, 404), f"{query} of {bucket}/{name}: {status} {body[:300]}"
        return tuple(elements(body, one)[0] for one in wanted) if status == 200 else None

    def _refuses(self, bucket, name, version, *, is_strict):
        """A lock that is there keeps from deleting, and from an erase: no bound is too low."""
        path, query, key = f"/{bucket}/{name}", f"versionId={version}", self.key_of(bucket)
        status, _, body = self.client.s3("DELETE", path, query=query, key=key)
        assert status == 403, f"the locked {bucket}/{name} {version} is deleted: {status} {body}"
        if is_strict and bucket not in self.erases_tried:
            self.erases_tried.add(bucket)
            status, told = self.client.admin("POST", f"/v1/buckets/{bucket}/erase")
            assert status == 409, f"{bucket}, in which {name} is locked, is erased: {status} {told}"

    def _tags(self, bucket, name):
        if self._bucket(bucket) is None or self.tag_counts.get((bucket, name)) == "0":
            return None
        key = self.key_of(bucket)
        status, _, body = self.client.s3("GET", f"/{bucket}/{name}", query="tagging=", key=key)
        assert status in (200, 404), f"tags of {bucket}/{name}: {status} {body[:300]}"
        return ",".join(elements(body, "Value")) or None if status == 200 else None

    def _upload(self, bucket, name, upload):
        if self._bucket(bucket) is None:
            return None
        query, key = f"uploadId={upload}", self.key_of(bucket)
        status, _, body = self.client.s3("GET", f"/{bucket}/{name}", query=query, key=key)
        assert status in (200, 404), f"parts of {bucket}/{name}: {status} {body[:300]}"
        return ",".join(elements(body, "Size")) if status == 200 else None

    def _level(self, name):
        row = self._row("/v1/levels", name)
        return row and f"{row['label']} {row['approvals']} {row['imported']}"

    def _generation(self, level):
        row = self._row("/v1/levels", level)
        return row and row["generation"]

    def _exports(self, level):
        row = self._row("/v1/levels", level)
        return row and row["export_count"]

    def _subject(self, name):
        row = self._row("/v1/subjects", name)
        if row is None:
            return None
        state = "disabled" if row["disabled"] else "enabled"
        return f"{state} {row['clearance']} {','.join(row['roles'])} {len(row['grants'])}"

    def _signin(self, name):
        """Whether a subject's access key counts."""
        status, _, body = self.client.s3("GET", "/", key=self.notes[("key", name)])
        assert status in (200, 403), f"sign-in of {name}: {status} {body[:300]}"
        return status == 200 or None

    def _keys(self, name):
        """The states of a subject's access keys, the oldest first."""
        rows = self.table(f"/v1/subjects/{name}/keys")
        return ",".join(row["state"] for row in rows) or None

    def _quota(self, bucket):
        """How many bytes it may hold, which it holds at most."""
        row = self._row("/v1/quotas", bucket)
        if row is None:
            return None
        limit, used = row["limits"]["bytes"], row["used"]["bytes"]
        return limit if used <= limit else f"{used} are used of {limit}"

    def _backup(self):
        """What `verify` says of the copy, with the root key of the folder it was made of."""
        running = self.client.running
        copy = running.root / "copies/copy"
        if not (copy / "backup.json").exists():
            return None
        # The look changes nothing of it.
        source = f"file:{running.data}/root.key"
        done = coffer("verify", "--data", copy, "--root-key", source)
        told = done.stdout.decode() + done.stderr.decode()
        return "sound" if done.returncode == 0 else f"not sound: {told}"

    def _receipt(self, level):
        rows = [row for row in self.table("/v1/receipts") if row["level"] == level]
        return len(rows) or None

    def _request(self, level):
        rows = [row for row in self.table("/v1/requests") if row["level"] == level]
        return len(rows) or None

    def _source(self):
        return self.table("/v1/keystore")["source"]

    def _authority(self):
        return short(self.client.running.ca.read_bytes())

    def _record(self, sequence):
        """The hash of a record of the audit log."""
        hashed = self.notes[("hash", sequence)]
        body = {"sequence": sequence, "hash": hashed}
        status, report = self.client.admin("POST", "/v1/audit/verify", body)
        return hashed if status == 200 and report["sound"] else None

    def names(self, bucket):
        """All names that a bucket lists."""
        query, key = "list-type=2", self.key_of(bucket)
        status, _, body = self.client.s3("GET", f"/{bucket}", query=query, key=key)
        assert status == 200, f"list of {bucket}: {status} {body[:300]}"
        return elements(body, "Key")


def damage(client):
    """What `verify` finds, of data and of the audit log."""
    status, lines = client.admin("POST", "/v1/verify", {})
    assert status == 200, lines
    found = [line for line in lines if line["event"] == "damage"]
    assert lines[-1]["event"] == "done", lines[-1]
    status, report = client.admin("POST", "/v1/audit/verify", {})
    assert status == 200, report
    return found + report["findings"]


def compare(client, ledger, marks, whole=True):
    """Looks at all facts; what is there against what was acknowledged or refused, as texts.

    `whole`: what was begun is done wholly or not at all.
    """
    wrong, found = [], {}
    look = Look(client, ledger.notes)
    standing = ledger.standing(marks)
    for fact, allowed in standing.items():
        try:
            found[fact] = look.value(fact)
        except (AssertionError, OSError) as error:
            wrong.append(f"{fact}: {error}")
            continue
        if found[fact] not in allowed:
            wrong.append(f"{fact} is {found[fact]}, allowed {allowed}")
    for act, told in ledger.halves(marks, found) if whole else ():
        wrong.append(f"done by halves: {told}, wanted {act.changes}")
    expected = {fact[1] for fact in found if fact[0] == "bucket" and found[fact]}
    for row in look.table("/v1/buckets"):
        if row["name"] not in expected:
            wrong.append(f"bucket {row['name']} is there, of which nothing was known")
    certain = [bucket for bucket in expected if len(standing["bucket", bucket]) == 1]
    for bucket in filter(look.is_open, certain):
        known = {fact[2] for fact in found if fact[0] == "object" and fact[1] == bucket}
        strangers = set(look.names(bucket)) - known
        if strangers:
            wrong.append(f"{bucket} lists {sorted(strangers)}, which were never stored")
    return wrong, found
