"""The list of what the program is built from."""

import json
import tomllib

import pytest

from harness.programs import run
from harness.server import ROOT, clean_environment


def sbom():
    options = {"SOURCE_DATE_EPOCH": "1700000000"}
    return run([ROOT / "scripts/sbom"], clean_environment() | options)


@pytest.fixture(scope="module")
def bom():
    return json.loads(sbom())


def test_it_has_what_is_linked_and_nothing_of_the_lab(bom):
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    assert bom["metadata"]["component"]["name"] == "coffer"
    assert bom["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    by_name = {row["name"]: row for row in bom["components"]}
    assert {"aws-lc-sys", "rustls", "libsqlite3-sys", "s3s", "coffer-vault"} <= set(by_name)
    assert not {"openssl", "proptest", "coffer-lab", "coffer"} & set(by_name)


def test_components_are_those_of_the_lock_file(bom):
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    sums = {(row["name"], row["version"]): row.get("checksum") for row in lock}
    for row in bom["components"]:
        assert row["purl"] == f"pkg:cargo/{row['name']}@{row['version']}"
        assert row["licenses"][0]["expression"]
        if row["name"].startswith("coffer-"):
            continue
        assert row["hashes"] == [{"alg": "SHA-256", "content": sums[row["name"], row["version"]]}]


def test_dependencies_name_components(bom):
    refs = [row["bom-ref"] for row in bom["components"] + [bom["metadata"]["component"]]]
    assert len(refs) == len(set(refs))
    assert {row["ref"] for row in bom["dependencies"]} == set(refs)
    reached, left = set(), [bom["metadata"]["component"]["bom-ref"]]
    edges = {row["ref"]: row["dependsOn"] for row in bom["dependencies"]}
    while left:
        ref = left.pop()
        if ref not in reached:
            reached.add(ref)
            left += edges[ref]
    assert reached == set(refs), "all are there for the program's sake"


def test_it_is_the_same_twice(bom):
    assert json.loads(sbom()) == bom
