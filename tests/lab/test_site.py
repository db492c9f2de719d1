"""Many machines beside each other: what `coffer-lab site` makes, in a browser."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.browser import Browser
from harness.server import BINARY

RECORDS = Path(__file__).parents[2] / "docs/lab"
LAB = BINARY.parent / "coffer-lab"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The example's machine, another that takes a hundredth of its time, and one that counts."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "machines").mkdir()
    example = json.loads((RECORDS / "example.json").read_text())
    (folder / "machines/first.json").write_text(json.dumps(example))
    for one in example["experiments"]:
        for series in one["series"]:
            for point in series["points"]:
                # Without scatter, so that intervals can't hide the factor.
                middle = sorted(point["samples"], key=lambda x: x["bytes"] / x["wall_seconds"])
                middle = dict(middle[len(middle) // 2])
                middle["wall_seconds"] /= 100
                point["samples"] = [middle for _ in point["samples"]]
    (folder / "machines/swift.json").write_text(json.dumps(example))
    counted = (RECORDS / "kernel-debian-6.1.json").read_text()
    (folder / "machines/counted.json").write_text(counted)
    command = [LAB, "site", folder / "out", "--machines", folder / "machines"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert said.stdout.startswith("4 pages")
    return folder / "out"


def test_figures_are_relative_to_the_machine_that_is_picked(site, tmp_path):
    with Browser(tmp_path) as browser:
        browser.open((site / "index.html").as_uri(), 1400, 900, "light")
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        columns = ["counted", "first", "swift"]
        pick = """(() => { const picker = document.querySelector("#picker");
          picker.elements.base.value = "%d";
          picker.dispatchEvent(new Event("change", { bubbles: true })); })()"""
        ratio = """(() => { const cell = [...document.querySelectorAll("td[data-machine='%d']")]
          .find((one) => one.dataset.median && one.closest("#file-write"));
          return cell.querySelector("b")?.textContent ?? null; })()"""
        browser.run(pick % columns.index("first"))
        told = browser.run(ratio % columns.index("swift"))
        assert told.endswith(" ×") and 60 < float(told.split()[0]) < 160, told
        assert browser.run(ratio % columns.index("first")) is None
        browser.run(pick % columns.index("swift"))
        told = browser.run(ratio % columns.index("first"))
        assert told.endswith(" ×") and 0.005 < float(told.split()[0]) < 0.02, told
        # Instructions and time are never divided.
        mixed = browser.run(
            "[...document.querySelectorAll(\"td[data-machine='0'] b\")]"
            ".map((one) => one.textContent).filter((one) => one.endsWith('×'))"
        )
        assert mixed == []
        # A machine that is not wanted goes.
        hide = """(() => { const box = document.querySelector("[name=shown][value='0']");
          box.click(); return [...document.querySelectorAll("[data-machine='0']")]
            .every((one) => !one.checkVisibility()); })()"""
        assert browser.run(hide) is True
        for width, height in [(1400, 900), (390, 844)]:
            browser.open((site / "index.html").as_uri(), width, height, "dark")
            wide = browser.run("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} px on {width}"


def test_the_same_is_no_difference_where_it_can_be_told(tmp_path):
    """What is counted is the same each time; time is told to be only where intervals are narrow."""
    (tmp_path / "machines").mkdir()
    records = {"a": "example", "b": "example", "c": "kernel-debian-6.1", "d": "kernel-debian-6.1"}
    for name, record in records.items():
        text = (RECORDS / f"{record}.json").read_text()
        (tmp_path / f"machines/{name}.json").write_text(text)
    command = [LAB, "site", tmp_path / "out", "--machines", tmp_path / "machines"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    told = """(() => { const picker = document.querySelector("#picker");
      picker.elements.base.value = "%d";
      picker.dispatchEvent(new Event("change", { bubbles: true }));
      return [...document.querySelectorAll("td[data-median][data-machine='%d']")]
        .map((one) => [one.querySelector("b").textContent, one.dataset.high / one.dataset.low,
          one.querySelector("small").textContent]); })()"""
    with Browser(tmp_path) as browser:
        browser.open((tmp_path / "out/index.html").as_uri(), 1400, 900, "light")
        timed = browser.run(told % (0, 1))
        assert {mark for mark, _, _ in timed} == {"no difference", "can’t tell"}
        for mark, width, small in timed:
            assert (mark == "no difference") == (width <= 1.05), (mark, width)
            assert "–" in small or width < 1.05, "each figure tells its interval"
        assert {mark for mark, _, _ in browser.run(told % (2, 3))} == {"no difference"}


def test_other_amounts_of_work_are_not_divided(tmp_path):
    """Counts of a shorter run, and files of another size, stand without a ratio, and say why."""
    (tmp_path / "machines").mkdir()
    for name in ("example", "kernel-debian-6.1"):
        record = json.loads((RECORDS / f"{name}.json").read_text())
        (tmp_path / f"machines/{name}.json").write_text(json.dumps(record))
        for one in record["experiments"]:
            for series in one["series"]:
                for sample in (x for point in series["points"] for x in point["samples"]):
                    # Half of the work in half of the time.
                    sample["bytes"] //= 2
                    sample["wall_seconds"] /= 2
                    if sample.get("counts"):
                        sample["counts"]["transfers"] = max(1, sample["counts"]["transfers"] // 2)
        (tmp_path / f"machines/half-{name}.json").write_text(json.dumps(record))
    command = [LAB, "site", tmp_path / "out", "--machines", tmp_path / "machines"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    told = """(() => { const picker = document.querySelector("#picker");
      picker.elements.base.value = "%d";
      picker.dispatchEvent(new Event("change", { bubbles: true }));
      return [...document.querySelectorAll("td[data-median][data-machine='%d']")].map((one) =>
        [one.closest("details").id.split("-")[0], one.querySelector("b")?.textContent]); })()"""
    machines = ["example", "half-example", "half-kernel-debian-6.1", "kernel-debian-6.1"]
    with Browser(tmp_path) as browser:
        browser.open((tmp_path / "out/index.html").as_uri(), 1400, 900, "light")
        option = "[...document.querySelector('#picker [name=base]').options].map((x) => x.text)"
        assert browser.run(option)[1:] == machines
        timed = browser.run(told % (0, 1))
        counted = browser.run(told % (3, 2))
        mixed = browser.run(told % (0, 3))
    other = "– {} did another amount of work"
    for family, mark in timed:
        # Rates of what goes on for as long as each other are divided.
        assert family not in ("file", "net") or mark == other.format("example"), (family, mark)
    assert any(family == "raw" and "–" not in mark for family, mark in timed)
    left = [mark for _, mark in counted if mark != other.format("kernel-debian-6.1")]
    # A single request has no half.
    assert len(left) < len(counted) / 20, left
    assert {mark for _, mark in mixed if mark} == {"– example has another unit"}


def test_what_is_no_record_is_refused_by_name(tmp_path):
    (tmp_path / "strange.json").write_text('{"format": 1}')
    command = [LAB, "site", tmp_path / "out", "--machines", tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 1 and "strange.json" in said.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wall, cpu", [(0.0, 0.1), (-1.0, 0.1), (0.1, -0.1), (1e308, 0.1)])
def test_figures_that_can_not_be_are_refused_by_name(tmp_path, wall, cpu):
    """What others send may hold anything: no page divides by no time."""
    record = json.loads((RECORDS / "example.json").read_text())
    sample = record["experiments"][0]["series"][0]["points"][0]["samples"][0]
    sample.update(wall_seconds=wall, cpu_seconds=cpu, bytes=0 if wall > 1 else 1000)
    (tmp_path / "strange.json").write_text(json.dumps(record))
    command = [LAB, "site", tmp_path / "out", "--machines", tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 1 and "strange.json" in said.stderr
    assert record["experiments"][0]["id"] in said.stderr and not (tmp_path / "out").exists()


def steers_the_terminal(record):
    record["experiments"][0]["series"][0]["contender"]["name"] = "a\x1b[2Jname"


def names_a_field_that_steers(record):
    record["machine"]["\x1b]0;title\x07"] = 1
    del record["date"]


def transfers_nothing(record):
    samples = [
        sample
        for one in record["experiments"]
        for series in one["series"]
        for point in series["points"]
        for sample in point["samples"]
    ]
    next(one for one in samples if one.get("counts"))["counts"]["transfers"] = 0


def has_no_place_on_its_axis(record):
    one = next(one for one in record["experiments"] if one["axis"] == "clients")
    one["series"][0]["points"][0]["x"] = 0


def has_a_million_samples(record):
    point = record["experiments"][0]["series"][0]["points"][0]
    point["samples"] = point["samples"][:1] * 1001


def has_a_thousand_contenders(record):
    one = record["experiments"][0]
    one["series"] = one["series"][:1] * 1000


def waited_for_ever(record):
    one = next(one for one in record["experiments"] if one["axis"] == "clients")
    series = next(series for series in one["series"] if series["points"])
    series["points"][0]["samples"][0]["latency"]["half"] = 1e308


def forges_a_line(record):
    record["experiments"][0]["series"][0]["contender"]["name"] = "x\n  OpenSSL  1 KiB  A is 9 × B"


def forges_a_line_by_its_machine(record):
    record["machine"]["kernel"] = "6.1\n  OpenSSL  1 KiB  A is 9 × B"


def forges_a_line_by_its_date(record):
    record["date"] += "\n  OpenSSL  1 KiB  A is 9 × B"


def hides_letters(record):
    record["experiments"][0]["title"] += "\u200b"


def has_an_endless_name(record):
    record["experiments"][0]["series"][0]["contender"]["name"] = "W" * 200_000


def measured_it_twice(record):
    record["experiments"] *= 2


def is_of_a_newer_lab(record):
    record["experiments"][0]["version"] = 99


def worked_for_ever(record):
    one = next(one for one in record["experiments"] if one["id"] == "file/write")
    series = next(series for series in one["series"] if series["points"])
    series["points"][0]["samples"][0]["cpu_seconds"] = 1e308


def takes_minutes_to_draw(record):
    one = next(one for one in record["experiments"] if one["axis"] == "clients")
    series = next(series for series in one["series"] if series["points"])
    point = {**series["points"][0], "samples": series["points"][0]["samples"][:1]}
    series["points"] = [{**point, "x": x + 1} for x in range(20)]
    one["series"] = [series] * 50
    record["experiments"] = [{**one, "id": f"server/{at}"} for at in range(20)]


HOSTILE = [
    takes_minutes_to_draw,
    forges_a_line,
    forges_a_line_by_its_machine,
    forges_a_line_by_its_date,
    hides_letters,
    has_an_endless_name,
    measured_it_twice,
    is_of_a_newer_lab,
    worked_for_ever,
    steers_the_terminal,
    names_a_field_that_steers,
    transfers_nothing,
    has_no_place_on_its_axis,
    has_a_million_samples,
    has_a_thousand_contenders,
    waited_for_ever,
]


@pytest.mark.parametrize("spoil", HOSTILE, ids=lambda one: one.__name__)
def test_what_no_lab_writes_is_refused_and_steers_nothing(tmp_path, spoil):
    record = json.loads((RECORDS / "example.json").read_text())
    spoil(record)
    (tmp_path / "strange.json").write_text(json.dumps(record))
    strange = tmp_path / "strange.json"
    for command in (
        ["site", tmp_path / "out", "--machines", tmp_path],
        ["compare", strange, strange],
        ["report", strange, tmp_path / "page.html"],
    ):
        said = subprocess.run(
            [LAB, *command], capture_output=True, text=True, timeout=20, check=False
        )
        assert said.returncode == 1 and "strange.json" in said.stderr, said
        assert "\x1b" not in said.stdout + said.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["strange.json"]


def test_counts_beyond_all_counting_are_drawn(tmp_path):
    """Sums of what others counted may be greater than any count."""
    record = json.loads((RECORDS / "sendfile-debian-6.1.json").read_text())
    for series in record["experiments"][0]["series"]:
        for point in series["points"]:
            for tally in point["observed"]["calls"].values():
                tally.update(count=2**64 - 1, bytes=2**64 - 1)
    (tmp_path / "strange.json").write_text(json.dumps(record))
    command = [LAB, "report", tmp_path / "strange.json", tmp_path / "page.html"]
    subprocess.run(command, check=True, capture_output=True, timeout=20)
    assert "NaN" not in (tmp_path / "page.html").read_text()


def test_what_is_no_file_is_not_read(tmp_path):
    """A link to what never ends, as a commit may hold it."""
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    command = [LAB, "site", tmp_path / "out", "--machines", tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert said.returncode == 1 and "endless.json: is no file" in said.stderr


def test_one_round_makes_no_ratio_of_time(tmp_path):
    """One sample on each side tells nothing of two machines, however far apart they are."""
    (tmp_path / "machines").mkdir()
    record = json.loads((RECORDS / "example.json").read_text())
    for name, factor in (("a", 1), ("b", 2)):
        for one in record["experiments"]:
            for series in one["series"]:
                for point in series["points"]:
                    point["samples"] = [dict(point["samples"][0])]
                    point["samples"][0]["wall_seconds"] *= factor
        (tmp_path / f"machines/{name}.json").write_text(json.dumps(record))
    command = [LAB, "site", tmp_path / "out", "--machines", tmp_path / "machines"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with Browser(tmp_path) as browser:
        browser.open((tmp_path / "out/index.html").as_uri(), 1400, 900, "light")
        told = browser.run(
            "[...new Set([...document.querySelectorAll('#file-write td b')]"
            ".map((one) => one.textContent))]"
        )
        assert told == ["can’t tell"], told


def test_the_submitted_machines_make_a_site(tmp_path):
    command = [LAB, "site", tmp_path, "--machines", RECORDS / "machines"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    names = {path.stem for path in (RECORDS / "machines").glob("*.json")}
    assert names and {path.stem for path in tmp_path.glob("*.html")} == names | {"index"}
