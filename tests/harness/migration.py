"""coffer migrate, as it is run beside a source and a target."""

import json

from harness.mover import Mover


class Migrator(Mover):
    """Moves from one server, or from a folder, to another."""

    def __init__(self, target, home, *, source=None, endpoint=None, credentials=None):
        super().__init__(target, home)
        self.options = []
        if source is not None:
            endpoint, credentials = source.endpoint, source.credentials()
            self.options = ["--source-ca", source.ca]
        if endpoint is not None:
            access_key_id, secret = credentials
            self.environment |= {
                "COFFER_SOURCE_ACCESS_KEY_ID": access_key_id,
                "COFFER_SOURCE_SECRET_ACCESS_KEY": secret,
            }
        self.source = endpoint
        self.report = home / "report.jsonl"

    def migrate(self, *arguments, source=None, code=0, **options):
        """Runs it; what it says of each bucket, and the lines of its report."""
        out, told = self.run(
            "migrate",
            source or self.source,
            *arguments,
            *self.options,
            "--report",
            self.report,
            "--json",
            code=code,
            **options,
        )
        events = [json.loads(line) for line in out.splitlines()]
        buckets = {event["to"]: event for event in events if event["event"] == "bucket"}
        lines = [json.loads(line) for line in self.report.read_text().splitlines()]
        versions = [line for line in lines if "outcome" in line]
        failed = {event["what"]: event for event in events if event["event"] == "failed"}
        assert events, told
        return Run(buckets, versions, failed)

    def ledgers(self):
        return sorted((self.home / "coffer/migrations").glob("*.jsonl"))


class Run:
    """What a run said."""

    def __init__(self, buckets, versions, failed):
        self.buckets = buckets
        self.versions = versions
        self.failed = failed

    def counts(self, bucket):
        """What moved, was there, and did not come."""
        of = self.buckets[bucket]
        return of["moved"], of["there"], of["missing"]

    def codes(self):
        return sorted(event["code"] for event in self.failed.values())
