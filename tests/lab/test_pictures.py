"""The page looks as it did: screenshots of one record that stays, beside those that were looked at.

    DRAW_PICTURES=1 .venv/bin/pytest tests/lab/test_pictures.py

draws them anew, to be looked at before they are committed."""

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.server import BINARY

PICTURES = Path(__file__).parent / "pictures"
LAB = BINARY.parent / "coffer-lab"
SCREENS = [(1400, 900), (390, 844)]

# The share of squares of 20 pixels whose mean colour differs by more than is seen. Letters are
# smoothed otherwise elsewhere; a plot that is drawn otherwise differs in many.
DIFFERENCE = """(async () => {
  const squares = async (data) => {
    const image = new Image();
    image.src = "data:image/webp;base64," + data;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width / 20, image.height / 20].map(Math.round);
    const drawn = canvas.getContext("2d");
    drawn.imageSmoothingQuality = "high";
    drawn.drawImage(image, 0, 0, canvas.width, canvas.height);
    return drawn.getImageData(0, 0, canvas.width, canvas.height).data;
  };
  const [one, other] = await Promise.all(%s.map(squares));
  if (one.length !== other.length) return 1;
  const places = [...Array(one.length / 4).keys()].map((place) => place * 4);
  const differ = places.filter((at) =>
    [0, 1, 2].some((colour) => Math.abs(one[at + colour] - other[at + colour]) > 12));
  return differ.length / places.length;
})()"""
MOST = 0.01


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "page.html"
    subprocess.run([LAB, "report", PICTURES / "record.json", page], check=True, timeout=60)
    return page


def difference(browser, one, other):
    both = json.dumps([base64.b64encode(picture).decode() for picture in (one, other)])
    return browser.run(DIFFERENCE % both)


def shown(browser, page, part, screen, scheme):
    """A part of the page alone, without the line that names the commit that drew it."""
    browser.open(page.as_uri(), *screen, scheme)
    # That of scripts/install-test-tools, whatever else is installed.
    browser.run("""document.body.style.fontFamily = '"DejaVu Sans"';
      document.querySelectorAll("code").forEach(
        (one) => { one.style.fontFamily = '"DejaVu Sans Mono"'; })""")
    browser.run(f"""document.querySelectorAll("header .quiet, nav, main > section").forEach(
      (one) => {{ if (!one.matches("#{part}")) one.remove(); }})""")
    clip = {"x": 0, "y": 0, "width": screen[0], "height": screen[1], "scale": 1}
    taken = browser.ask("Page.captureScreenshot", clip=clip, format="webp", quality=60)
    return base64.b64decode(taken["data"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: str(screen[0]))
@pytest.mark.parametrize("part", ["advice", "sendfile", "server", "raw-aes-128-ctr"])
def test_it_looks_as_it_did(browser, page, part, screen, scheme):
    kept = PICTURES / f"{part}-{screen[0]}-{scheme}.webp"
    picture = shown(browser, page, part, screen, scheme)
    if os.environ.get("DRAW_PICTURES"):
        kept.write_bytes(picture)
    found = difference(browser, kept.read_bytes(), picture)
    assert found <= MOST, f"{found:.1%} of {kept.name} look otherwise: look at it, and draw it anew"


@pytest.mark.parametrize(
    "spoilt, part",
    [
        (".fill { display: none; }", "advice"),
        (".bars .v { padding: .3rem 0; }", "sendfile"),
        (".lines polyline { stroke: none; } .dot { background: none; }", "server"),
        (".user { --hue: #bf4a12; }", "sendfile"),
        (".names { display: none; }", "raw-aes-128-ctr"),
    ],
)
def test_what_is_drawn_otherwise_is_seen(browser, page, tmp_path, spoilt, part):
    other = tmp_path / "page.html"
    other.write_text(page.read_text().replace("</style>", spoilt + "</style>"))
    picture = shown(browser, other, part, SCREENS[0], "light")
    kept = PICTURES / f"{part}-1400-light.webp"
    assert difference(browser, kept.read_bytes(), picture) > MOST
