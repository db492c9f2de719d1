"""Alerts and dashboard: Prometheus understands them, and the server exports what they ask for."""

import json
import re
import shutil

import pytest

from harness import raw
from harness.clients import s3_client
from harness.programs import run
from harness.sealed_copies import replica, url_of
from harness.server import ROOT, clean_environment

MONITORING = ROOT / "packaging/monitoring"


def promtool(*words, **options):
    found = shutil.which("promtool") or ROOT / "target/promtool/usr/bin/promtool"
    return run([found, *words], clean_environment(), **options)


def dashboard_queries():
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


@pytest.fixture(scope="module")
def page(server, tmp_path_factory):
    """The metrics of a server that was asked for something, and has a copy."""
    replica(server, "add", "far", url_of(tmp_path_factory.mktemp("copies") / "far"))
    s3 = s3_client(server)
    s3.create_bucket(Bucket="measured")
    s3.put_object(Bucket="measured", Key="a", Body=b"a")
    s3.get_object(Bucket="measured", Key="a")["Body"].read()
    return raw.get_admin(server, "/metrics")[1]


def test_alerts_fire_when_they_should():
    assert "17 rules found" in promtool("check", "rules", MONITORING / "alerts.yml")
    promtool("test", "rules", "alerts-test.yml", cwd=MONITORING)


def test_the_dashboard_asks_in_prometheus_words(tmp_path):
    queries = [query.replace("$__rate_interval", "5m") for query in dashboard_queries()]
    assert len(queries) > 30
    rules = [{"record": f"q:{n}", "expr": query} for n, query in enumerate(queries)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "q", "rules": rules}]}))
    assert f"{len(queries)} rules found" in promtool("check", "rules", tmp_path / "rules.yml")


def test_the_server_exports_all_that_is_asked_for(page):
    exported = {re.split(r"[{ ]", line)[0] for line in page.splitlines() if line[:1] != "#"}
    alerts = (MONITORING / "alerts.yml").read_text()
    asked = set(re.findall(r"\b(?:coffer|process)_[a-z0-9_]+", alerts))
    for query in dashboard_queries():
        asked |= set(re.findall(r"\b(?:coffer|process)_[a-z0-9_]+", query))
    assert len(asked) > 25
    assert asked <= exported, f"not exported: {asked - exported}"


def test_prometheus_reads_the_page(page, tmp_path):
    (tmp_path / "page").write_text(page)
    with (tmp_path / "page").open() as text:
        promtool("check", "metrics", stdin=text)


def test_times_are_a_histogram(page):
    name = "coffer_s3_request_seconds"
    rows = re.findall(name + r'_bucket\{operation="PutObject",le="([^"]+)"\} (\d+)', page)
    assert [bound for bound, _ in rows][-1] == "+Inf" and len(rows) == 10
    counts = [int(count) for _, count in rows]
    assert counts == sorted(counts) and counts[-1] == 1
    assert f'{name}_count{{operation="PutObject"}} 1' in page


def test_free_space_is_that_of_the_data_folder(page, server):
    free = float(re.search(r"(?m)^coffer_disk_free_bytes (.+)$", page)[1])
    size = float(re.search(r"(?m)^coffer_disk_size_bytes (.+)$", page)[1])
    disk = shutil.disk_usage(server.data)
    assert size == disk.total
    assert abs(free - disk.free) < disk.total / 10
