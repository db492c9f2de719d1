"""docs/SCALE.md says what its numbers give, and their sizes are those of FORMAT and of the lists of
limits."""

import importlib.util
import re

from harness.server import ROOT


def computed():
    spec = importlib.util.spec_from_file_location("compute", ROOT / "bench/scale/compute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_tables_that_are_computed():
    page = (ROOT / "docs/SCALE.md").read_text()
    assert computed().BETWEEN.search(page)[0] == (
        f"<!-- computed -->\n{computed().tables()}\n<!-- end -->"
    )


def test_it_counts_with_the_limits_of_the_program():
    compute = computed()
    limits = (ROOT / "crates/coffer-replica/src/limits.rs").read_text()

    def limit(name):
        product = re.search(rf"pub const {name}: \w+ = ([0-9_* ]+);", limits)[1]
        return eval(product)

    assert limit("CHAIN_SEGMENTS_MAX") == compute.CHAIN_SEGMENTS
    assert limit("CHAIN_SPARE_BYTES") == compute.CHAIN_SPARE_BYTES
    assert limit("HEAD_MAX_BYTES") == compute.HEAD_MAX_BYTES
    assert limit("PAGE_BYTES") == compute.PAGE_BYTES
