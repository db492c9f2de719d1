"""The lab's page as people see it: in a browser, wide and on a phone, light and dark."""

import re
import struct
import subprocess
import zlib
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.server import BINARY

RECORDS = Path(__file__).parents[2] / "docs/lab"
LAB = BINARY.parent / "coffer-lab"
SCREENS = [(1400, 900), (390, 844)]

# What is seen of an element; null where it is not.
SEEN = """
const seen = (one) => {
  const box = one.getBoundingClientRect();
  const hidden = one.closest(".spoken, script, style") || !one.checkVisibility();
  return hidden || box.width < 1 || box.height < 1 ? null : box;
};
const texts = (within, selector) => [...within.querySelectorAll(selector)].filter(seen);
"""
SMALL = """(() => {%s
  const own = (one) => [...one.childNodes].some((x) => x.nodeType === 3 && x.data.trim());
  return texts(document.body, "*").filter(own)
    .filter((one) => parseFloat(getComputedStyle(one).fontSize) < 12)
    .map((one) => one.textContent.slice(0, 40));
})()"""
LABELS = ".names li, .place, .key, .bars .name, .bars b, .v > b, .v > small, th > *"
OVERLAPS = """(() => {%s
  const found = [];
  for (const chart of document.querySelectorAll(".chart")) {
    const all = texts(chart, "LABELS").map((one) => [one, one.getBoundingClientRect()]);
    all.forEach(([one, a], index) => all.slice(index + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 3) found.push([one.textContent, other.textContent]);
    }));
  }
  return found;
})()""".replace("LABELS", LABELS)
OUTSIDE = """(() => {%s
  const wide = document.documentElement.clientWidth;
  return texts(document.body, "*").filter((one) => !one.closest(".scroll"))
    .filter((one) => one.getBoundingClientRect().right > wide + 1)
    .map((one) => one.className + ": " + one.textContent.slice(0, 40));
})()"""
SPILLED = """(() => {%s
  return texts(document.body, ".bars b").filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => one.textContent);
})()"""
HUES = """Object.fromEntries(["none", "user", "kernel", "client"].map((where) => [where,
  [...new Set([...document.querySelectorAll(`.v.${where}`)].map((one) =>
    getComputedStyle(one).getPropertyValue("--hue").trim()))]]))"""

# How much each shade stands out from the letters and from the paper (WCAG 2.2, 1.4.11).
SHADES = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const linear = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((x) => x / 255)
      .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const apart = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const one = document.body.appendChild(document.createElement("div"));
  const shown = (background) => {
    one.style.background = background;
    return light(getComputedStyle(one).backgroundColor);
  };
  const found = [];
  for (const where of ["none", "user", "kernel", "client"])
    for (let shade = 0; shade < 8; shade += 1) {
      one.className = `${where} s${shade}`;
      const [own, ink, card] = ["own", "ink", "card"].map((name) => shown(`var(--${name})`));
      found.push([one.className, apart(own, ink), apart(own, card)]);
    }
  return found;
})()"""


class Tags(HTMLParser):
    """Every attribute that stands twice in its tag: browsers drop the second."""

    def __init__(self):
        super().__init__()
        self.twice = []

    def handle_starttag(self, tag, attrs):
        counts = Counter(name for name, _ in attrs)
        self.twice += [(tag, name) for name, count in counts.items() if count > 1]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The committed records, drawn by this lab."""
    folder = tmp_path_factory.mktemp("pages")
    for record in RECORDS.glob("*.json"):
        page = folder / f"{record.stem}.html"
        subprocess.run([LAB, "report", record, page], check=True, timeout=60)
    found = {page.stem: page for page in folder.glob("*.html")}
    assert len(found) >= 4
    return found


def pixels(picture):
    """How many different colours a PNG has, and its commonest one."""
    width, height, depth, kind = struct.unpack(">IIBB", picture[16:26])
    assert depth == 8 and kind in (2, 6), "8 bits of RGB or RGBA"
    wide, rows, at, data = (3 if kind == 2 else 4), [], 8, b""
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        if picture[at + 4 : at + 8] == b"IDAT":
            data += picture[at + 8 : at + 8 + length]
        at += length + 12
    data, stride = zlib.decompress(data), width * wide
    above = bytearray(stride)
    for row in range(height):
        start = row * (stride + 1)
        above = unfiltered(
            data[start], bytearray(data[start + 1 : start + 1 + stride]), above, wide
        )
        rows.append(bytes(above))
    counts = Counter(line[x : x + 3] for line in rows[::4] for x in range(0, stride, 4 * wide))
    return len(counts), tuple(counts.most_common(1)[0][0])


def unfiltered(kind, line, above, wide):
    """A row of a PNG as it was before its filter (PNG, section 9.2)."""
    for x in range(len(line)):
        left = line[x - wide] if x >= wide else 0
        corner = above[x - wide] if x >= wide else 0
        up = above[x]
        if kind == 4:
            guess = left + up - corner
            order = [(abs(guess - one), index, one) for index, one in enumerate((left, up, corner))]
            line[x] = (line[x] + min(order)[2]) & 255
        else:
            line[x] = (line[x] + [0, left, up, (left + up) // 2][kind]) & 255
    return line


def test_no_attribute_stands_twice(pages):
    for name, page in pages.items():
        tags = Tags()
        tags.feed(page.read_text())
        assert tags.twice == [], name


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: str(screen[0]))
def test_everything_can_be_read(pages, browser, screen, scheme):
    for name, page in pages.items():
        browser.open(page.as_uri(), *screen, scheme)
        assert browser.run(SMALL % SEEN) == [], f"{name}: letters below 12 px"
        assert browser.run(OUTSIDE % SEEN) == [], f"{name}: wider than the screen"
        assert browser.run(SPILLED % SEEN) == [], f"{name}: figures wider than their column"
        assert browser.run(OVERLAPS % SEEN) == [], f"{name}: one label over another"
        for where, hues in browser.run(HUES).items():
            assert len(hues) <= 1, f"{name}: {where} has several hues: {hues}"
    # What is drawn, and on which paper.
    browser.open(pages["example"].as_uri(), *screen, scheme)
    colours, paper = pixels(browser.picture(380, 400))
    assert colours > 20, "the page is empty"
    assert (sum(paper) > 600) == (scheme == "light"), f"{scheme}: {paper}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_shade_has_its_hue(pages, browser, scheme):
    """None is nearly as dark as the letters, nor nearly as light as the paper; or the reverse."""
    browser.open(pages["example"].as_uri(), 1400, 900, scheme)
    shades = browser.run(SHADES)
    assert len(shades) == 32
    for name, letters, paper in shades:
        assert letters > 1.3 and paper > 2.6, (name, letters, paper)


def test_the_first_screen_tells_the_advice(pages, browser):
    browser.open(pages["example"].as_uri(), 1400, 900, "light")
    bottom = "document.querySelector('.matrix').getBoundingClientRect().bottom"
    assert browser.run(bottom) <= 900, "jobs by placements are the first screen"
    told = browser.run("[...document.querySelectorAll('.matrix .advice')].map(x => x.textContent)")
    assert len(told) == 8 and all(sentence.endswith(".") for sentence in told), told
    colour = """(() => { const job = [...document.querySelectorAll(".matrix th[scope=row]")]
      .find((one) => one.classList.contains("client"));
      const word = getComputedStyle(job.querySelector(".advice")).color;
      const bar = document.querySelector(".matrix .client .fill");
      return [word, getComputedStyle(bar).backgroundColor]; })()"""
    word, bar = browser.run(colour)
    assert word == bar, "a verdict has the hue of its placement"
    told = browser.run("document.querySelector('.matrix .v').getAttribute('aria-label')")
    assert "–" in told, "what it costs, and within which interval"
    noise = browser.run("document.querySelector('header .warning:last-child').textContent")
    assert re.search(r"[Oo]ther programs used .*% of .* its host took .*%", noise), noise
    order = browser.run("[...document.querySelectorAll('main > section')].map((one) => one.id)")
    wanted = ["advice", "file", "sendfile", "net", "server-upload", "server", "raw-aes-256-cbc"]
    assert order[: len(wanted)] == wanted, "ciphers last"


def test_values_under_the_pointer_and_by_keyboard(pages, browser):
    browser.open(pages["example"].as_uri(), 1400, 900, "light")
    tip = (
        "document.querySelector('#tip').hidden ? null : document.querySelector('#tip').textContent"
    )
    assert browser.run(tip) is None
    scroll = "document.querySelector('#server .dot').scrollIntoView({ block: 'center' })"
    browser.run(scroll)
    # Scrolling hides what was told; it is over after a frame.
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    place = """(() => {
      const box = document.querySelector("#server .dot").getBoundingClientRect();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      const top = document.elementFromPoint(x, y).closest(".v");
      return [x, y, top.getAttribute("aria-label")]; })()"""
    x, y, told = browser.run(place)
    browser.point(x, y)
    assert browser.run(tip) == told and " MB/s" in told
    browser.point(2, 2)
    assert browser.run(tip) is None

    browser.run("document.querySelector('#server .chart').focus()")
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "End"):
        browser.press(key)
        told.append(browser.run(tip))
    labels = browser.run(
        "[...document.querySelector('#server .chart').querySelectorAll('.v')]"
        ".map((one) => one.getAttribute('aria-label'))"
    )
    assert told[:2] == labels[:2] and told[3] == told[1] and told[4] == labels[-1]
    assert told[2] in labels and told[2].split(":")[0] != told[1].split(":")[0]
    assert ", 4 cl.:" in told[1] and ", 4 cl.:" in told[2], "another contender at the same place"
    box = browser.run("(({x, right, y}) => [x, right, y])(tip.getBoundingClientRect())")
    assert box[0] >= 0 and box[1] <= 1400 and box[2] >= 0
    browser.press("Escape")
    assert browser.run(tip) is None


def test_lines_have_three_places_at_least(pages, browser):
    for name, page in pages.items():
        browser.open(page.as_uri(), 1400, 900, "light")
        fewest = browser.run(
            "Math.min(...[...document.querySelectorAll('polyline')]"
            ".map((one) => one.getAttribute('points').split(' ').length), 99)"
        )
        assert fewest >= 3, name


def test_every_plot_says_what_its_axes_are(pages, browser):
    units = """[...document.querySelectorAll("figure")].filter((one) => one.querySelector(".chart"))
      .map((one) => one.querySelector("figcaption .axis")?.textContent ?? "none")"""
    for name in ("example", "kernel-debian-6.1", "sendfile-debian-6.1"):
        browser.open(pages[name].as_uri(), 1400, 900, "light")
        told = browser.run(units)
        assert told and all(unit.endswith((" more is better", " less is better")) for unit in told)
        across = browser.run(
            "[...document.querySelectorAll('.lines')]"
            ".filter((one) => !one.querySelector('.across')?.textContent).length"
        )
        assert across == 0, name
    # What was observed has units of its own.
    counts = browser.run(
        "[...document.querySelectorAll('#sendfile h4')].map((one) => one.textContent)"
        ".filter((told) => told.includes(': '))"
    )
    assert [told.partition(": ")[2] for told in counts] == [
        "bytes copied between kernel and program for each one delivered; less is better",
        "system calls of the server for a transfer; less is better",
    ]


def test_both_directions_of_a_cipher_have_one_scale(pages, browser):
    browser.open(pages["example"].as_uri(), 1400, 900, "light")
    ticks = browser.run(
        "[...document.querySelectorAll('#raw-aes-128-ctr .lines')].map((one) =>"
        " [...one.querySelectorAll('.grid')].map((tick) => tick.textContent))"
    )
    assert len(ticks) == 2 and ticks[0] == ticks[1] and len(ticks[0]) >= 3, ticks


def test_counted_figures_are_not_called_unsure(pages, browser):
    browser.open(pages["kernel-debian-6.1"].as_uri(), 1400, 900, "light")
    cells = browser.run(
        "[...document.querySelectorAll('#file table td')].map((one) => one.textContent)"
    )
    assert "counted" in cells and "0 %" not in cells


def test_what_stays_outside_of_the_virtual_machine_is_not_to_be_unpacked(pages):
    for name in ("kernel-debian-6.1", "kernel-debian-backports"):
        text = pages[name].read_text()
        for program in ("encfs", "ssh", "coffer"):
            assert f"into which {program} does not come along" in text, name
        assert "apt install encfs" not in text and "cargo build" not in text, name


def test_kernels_are_one_waterfall(pages, browser):
    browser.open(pages["configs-debian-6.1"].as_uri(), 1400, 900, "light")
    ends = """[...document.querySelectorAll(".waterfall tbody tr")].map((row) =>
      [...row.querySelectorAll(".fill")].map((one) => {
        const box = one.getBoundingClientRect(), all = one.parentElement.getBoundingClientRect();
        return [(box.left - all.left) / all.width, (box.right - all.left) / all.width];
      }))"""
    rows = browser.run(ends)
    assert len(rows) == 12 and all(len(row) == 4 for row in rows)
    for way in range(4):
        (_, level), *steps, (_, last) = [row[way] for row in rows]
        for low, high in steps:
            assert abs(high - level) < 0.03, "a step begins where the one before it ended"
            level = low
        assert abs(level - last) < 0.03, "and the last one ends where all of them do"
    told = browser.run(
        "[...document.querySelectorAll('.waterfall .v')].map((one) => one.ariaLabel)"
    )
    assert all(" instructions for each byte" in one for one in told), told
