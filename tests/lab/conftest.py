"""A browser that shows the lab's pages."""

import pytest

from harness.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running
